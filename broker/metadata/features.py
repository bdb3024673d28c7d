"""What the cluster can do and does, beyond its APIs (KIP-584): the features that ApiVersions lists, with their levels.

Names and ranges are Kafka's (Feature, MetadataVersion, BrokerFeatures), by release. Listed is only what is there: of
4.4's not those of KRaft, of eligible leader replicas, and of share and streams groups.
"""

from collections.abc import Collection
from typing import NamedTuple

from sluice.config.kafka_releases import ALL
from sluice.protocol.apis import ApiKey


class Feature(NamedTuple):
    """The levels that the broker could run, both inclusive, and the one that the cluster runs."""

    name: str
    min_level: int
    max_level: int
    finalized_level: int
    needed_api: int | None = None  # key of the API without which the feature is nothing


TRANSACTION_VERSION = "transaction.version"
_KAFKA_4_4 = (
    Feature("group.version", 0, 1, 1, needed_api=ApiKey.CONSUMER_GROUP_HEARTBEAT),
    Feature("metadata.version", 7, 33, 33),  # 3.3-IV3 to 4.4-IV2
    Feature(TRANSACTION_VERSION, 0, 2, 2),
)
# Releases before 3.4 have none; those with ZooKeeper never had one.
_OF_RELEASE = {
    ALL: _KAFKA_4_4,
    "kafka-4.4": _KAFKA_4_4,
    "kafka-3.9": (Feature("metadata.version", 1, 21, 21),),  # 3.0-IV1 to 3.9-IV0
    "kafka-3.4": (Feature("metadata.version", 1, 8, 8),),  # to 3.4-IV0
}


def listed_features(release: str, served_apis: Collection[int]) -> dict[str, Feature]:
    """The features of a broker that is like `release` and serves these API keys, by name."""
    return {
        feature.name: feature
        for feature in _OF_RELEASE.get(release, ())
        if feature.needed_api is None or feature.needed_api in served_apis
    }
