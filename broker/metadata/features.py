"""Features and their levels in ApiVersions (KIP-584).

Names and ranges are Kafka's (Feature, MetadataVersion, BrokerFeatures), by release, with the levels of a new cluster.
UpdateFeatures changes the levels in use; a feature of level 0 is disabled.
"""

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from sluice.config.kafka_releases import ALL
from sluice.protocol.apis import ApiKey


class Feature(Struct, frozen=True):
    name: str
    min_level: int
    max_level: int
    finalized_level: int
    needed_api: int | None = None  # key of the API that the feature requires


GROUP_VERSION, TRANSACTION_VERSION = "group.version", "transaction.version"
METADATA_VERSION, KRAFT_VERSION = "metadata.version", "kraft.version"
SHARE_VERSION, STREAMS_VERSION = "share.version", "streams.version"
GROUP_FEATURES = {"consumer": GROUP_VERSION, "streams": STREAMS_VERSION}
_KAFKA_4_4 = (
    Feature("eligible.leader.replicas.version", 0, 1, 1),
    Feature(GROUP_VERSION, 0, 1, 1, needed_api=ApiKey.CONSUMER_GROUP_HEARTBEAT),
    Feature(KRAFT_VERSION, 0, 1, 1),
    Feature(METADATA_VERSION, 7, 33, 33),  # 3.3-IV3 to 4.4-IV2
    Feature(SHARE_VERSION, 0, 2, 2, needed_api=ApiKey.SHARE_GROUP_HEARTBEAT),
    Feature(STREAMS_VERSION, 0, 1, 1, needed_api=ApiKey.STREAMS_GROUP_HEARTBEAT),
    Feature(TRANSACTION_VERSION, 0, 2, 2),
)
# Releases before 3.4 list none here; those with ZooKeeper have none.
_OF_RELEASE = {
    ALL: _KAFKA_4_4,
    "kafka-4.4": _KAFKA_4_4,
    # 3.0-IV1 to 3.9-IV0
    "kafka-3.9": (Feature(KRAFT_VERSION, 0, 1, 0), Feature(METADATA_VERSION, 1, 21, 21)),
    "kafka-3.4": (Feature(METADATA_VERSION, 1, 8, 8),),  # to 3.4-IV0
}


def listed_features(release: str, served_apis: Collection[int]) -> dict[str, Feature]:
    return {
        feature.name: feature
        for feature in _OF_RELEASE.get(release, ())
        if feature.needed_api is None or feature.needed_api in served_apis
    }


class Features:
    __slots__ = ("by_name", "epoch")

    def __init__(self) -> None:
        self.by_name: dict[str, Feature] = {}
        self.epoch = 0

    def level(self, name: str) -> int:
        feature = self.by_name.get(name)
        return 0 if feature is None else feature.finalized_level

    def is_enabled(self, name: str) -> bool:
        """Return whether the level is above 0, or the release lacks the feature."""
        return name not in self.by_name or self.level(name) > 0

    def set_level(self, name: str, level: int) -> None:
        self.by_name[name] = replace(self.by_name[name], finalized_level=level)
        self.epoch += 1
