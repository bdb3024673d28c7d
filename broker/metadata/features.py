"""Features and their levels in ApiVersions (KIP-584).

Names and ranges are Kafka's (Feature, MetadataVersion, BrokerFeatures), by release, with the levels of a new cluster.
As with `kafka-storage format --feature`, `sluice.features` sets other levels, and a lower metadata.version lowers the
defaults of the features that are newer. UpdateFeatures changes the levels in use; a feature of level 0 is disabled.
"""

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from sluice.config.broker_config import Config
from sluice.config.kafka_releases import ALL
from sluice.protocol.apis import ApiKey


class Feature(Struct, frozen=True):
    name: str
    min_level: int
    max_level: int
    finalized_level: int
    since: tuple[int, ...] = ()  # metadata versions whose new clusters have level 1, 2, ...
    needed_metadata_version: int = 0  # for any level above 0
    needed_api: int | None = None  # key of the API that the feature requires

    def default_level(self, metadata_version: int) -> int:
        """Return the level of a new cluster with this metadata.version (Feature.defaultLevel)."""
        return min(self.finalized_level, sum(first <= metadata_version for first in self.since))


GROUP_VERSION, TRANSACTION_VERSION = "group.version", "transaction.version"
METADATA_VERSION, KRAFT_VERSION = "metadata.version", "kraft.version"
SHARE_VERSION, STREAMS_VERSION = "share.version", "streams.version"
GROUP_FEATURES = {"consumer": GROUP_VERSION, "streams": STREAMS_VERSION}
# Metadata versions that changed records, so that no lower one can be downgraded to (didMetadataChange).
_CHANGED_RECORDS = (1, 3, 5, 6, 7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33)
_FEATURES = "sluice.features"
_KAFKA_4_4 = (
    Feature("eligible.leader.replicas.version", 0, 1, 1, since=(26,), needed_metadata_version=23),  # 4.1-IV0, 4.0-IV1
    Feature(GROUP_VERSION, 0, 1, 1, since=(22,), needed_api=ApiKey.CONSUMER_GROUP_HEARTBEAT),  # 4.0-IV0
    Feature(KRAFT_VERSION, 0, 1, 1, since=(21,)),  # 3.9-IV0
    Feature(METADATA_VERSION, 7, 33, 33),  # 3.3-IV3 to 4.4-IV2
    Feature(SHARE_VERSION, 0, 2, 2, since=(28, 31), needed_api=ApiKey.SHARE_GROUP_HEARTBEAT),  # 4.2-IV0, 4.4-IV0
    Feature(STREAMS_VERSION, 0, 1, 1, since=(29,), needed_api=ApiKey.STREAMS_GROUP_HEARTBEAT),  # 4.2-IV1
    Feature(TRANSACTION_VERSION, 0, 2, 2, since=(24, 24)),  # 4.0-IV2
)
# Releases before 3.4 list none here; those with ZooKeeper have none.
_OF_RELEASE = {
    ALL: _KAFKA_4_4,
    "kafka-4.4": _KAFKA_4_4,
    # 3.0-IV1 to 3.9-IV0
    "kafka-3.9": (Feature(KRAFT_VERSION, 0, 1, 0), Feature(METADATA_VERSION, 1, 21, 21)),
    "kafka-3.4": (Feature(METADATA_VERSION, 1, 8, 8),),  # to 3.4-IV0
}


def features_of_new_cluster(config: Config, release: str, served_apis: Collection[int]) -> dict[str, Feature]:
    """Return the features of a release with the levels of a new cluster. Raises ConfigError."""
    listed = {
        feature.name: feature
        for feature in _OF_RELEASE.get(release, ())
        if feature.needed_api is None or feature.needed_api in served_apis
    }
    levels = {name: int(level) for name, _, level in (item.partition("=") for item in config.names(_FEATURES))}
    if METADATA_VERSION in levels:
        metadata_version = levels[METADATA_VERSION]
        levels = {
            name: feature.default_level(metadata_version) for name, feature in listed.items() if feature.since
        } | levels
    for name, level in levels.items():
        feature = listed.get(name)
        if feature is None or not feature.min_level <= level <= feature.max_level:
            ranges = (f"{each.name} {each.min_level} to {each.max_level}" for each in listed.values())
            words = f"levels of the features of release {release} ({', '.join(ranges) or 'none'})"
            raise config.wrong(_FEATURES, f"{name}={level}", words)
        if not is_metadata_version_enough(feature, level, levels):
            words = f"{METADATA_VERSION} of at least {feature.needed_metadata_version} for this level"
            raise config.wrong(_FEATURES, f"{name}={level}", words)
        listed[name] = replace(feature, finalized_level=level)
    return listed


def is_metadata_version_enough(feature: Feature, level: int, levels: Mapping[str, int]) -> bool:
    """Return whether metadata.version in `levels` (default: the newest) allows the level (Feature.validateVersion)."""
    needed = feature.needed_metadata_version
    return not level or levels.get(METADATA_VERSION, needed) >= needed


def changes_records(low: int, high: int) -> bool:
    """Return whether a metadata version above `low`, up to `high`, changed records."""
    return any(low < version <= high for version in _CHANGED_RECORDS)


class Features:
    def __init__(self) -> None:
        self.by_name: dict[str, Feature] = {}
        self.epoch = 0

    def level(self, name: str) -> int:
        feature = self.by_name.get(name)
        return 0 if feature is None else feature.finalized_level

    def max_level(self, name: str) -> int:
        feature = self.by_name.get(name)
        return 0 if feature is None else feature.max_level

    def is_enabled(self, name: str) -> bool:
        """Return whether the level is above 0, or the release lacks the feature."""
        return name not in self.by_name or self.level(name) > 0

    def set_level(self, name: str, level: int) -> None:
        self.by_name[name] = replace(self.by_name[name], finalized_level=level)
        self.epoch += 1
