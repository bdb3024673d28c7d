"""Features and their levels in ApiVersions (KIP-584).

Names and ranges are Kafka's (Feature, MetadataVersion, BrokerFeatures), by release. The features of KRaft and of
eligible leader replicas in 4.4 are not listed.
"""

from collections.abc import Collection, Mapping

from msgspec import Struct

from sluice.config.kafka_releases import ALL
from sluice.protocol.apis import ApiKey


class Feature(Struct, frozen=True):
    """Supported levels, both inclusive, and the level in use."""

    name: str
    min_level: int
    max_level: int
    finalized_level: int
    needed_api: int | None = None  # key of the API that the feature requires


SHARE_VERSION, STREAMS_VERSION, TRANSACTION_VERSION = "share.version", "streams.version", "transaction.version"
_KAFKA_4_4 = (
    Feature("group.version", 0, 1, 1, needed_api=ApiKey.CONSUMER_GROUP_HEARTBEAT),
    Feature("metadata.version", 7, 33, 33),  # 3.3-IV3 to 4.4-IV2
    Feature(SHARE_VERSION, 0, 2, 2, needed_api=ApiKey.SHARE_GROUP_HEARTBEAT),
    Feature(STREAMS_VERSION, 0, 1, 1, needed_api=ApiKey.STREAMS_GROUP_HEARTBEAT),
    Feature(TRANSACTION_VERSION, 0, 2, 2),
)
# Releases before 3.4 have none here; those with ZooKeeper never do.
_OF_RELEASE = {
    ALL: _KAFKA_4_4,
    "kafka-4.4": _KAFKA_4_4,
    "kafka-3.9": (Feature("metadata.version", 1, 21, 21),),  # 3.0-IV1 to 3.9-IV0
    "kafka-3.4": (Feature("metadata.version", 1, 8, 8),),  # to 3.4-IV0
}


def supports_share_groups(features: Mapping[str, Feature]) -> bool:
    feature = features.get(SHARE_VERSION)
    return feature is not None and feature.finalized_level > 0


def listed_features(release: str, served_apis: Collection[int]) -> dict[str, Feature]:
    return {
        feature.name: feature
        for feature in _OF_RELEASE.get(release, ())
        if feature.needed_api is None or feature.needed_api in served_apis
    }
