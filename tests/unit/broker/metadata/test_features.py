"""Levels of features in a new cluster."""

import pytest

from sluice.errors import ConfigError
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from tests.support.virtual_broker import VirtualBroker

NAMES = (
    *("eligible.leader.replicas.version", "group.version", "kraft.version", "metadata.version", "share.version"),
    *("streams.version", "transaction.version"),
)


def levels(release: str, features: str) -> dict[str, int]:
    broker = VirtualBroker(f"sluice.kafka.release={release}", f"sluice.features={features}")
    response = broker.client().call(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    return {feature.name: feature.max_version_level for feature in response.finalized_features}


FEATURES = {
    "none: the newest levels": ("", (1, 1, 1, 33, 2, 1, 2)),
    "one feature: the others have the newest levels": ("group.version=0", (1, 0, 1, 33, 2, 1, 2)),
    "3.3-IV3": ("metadata.version=7", (0, 0, 0, 7, 0, 0, 0)),
    "3.8-IV0": ("metadata.version=20", (0, 0, 0, 20, 0, 0, 0)),
    "3.9-IV0": ("metadata.version=21", (0, 0, 1, 21, 0, 0, 0)),
    "4.0-IV0": ("metadata.version=22", (0, 1, 1, 22, 0, 0, 0)),
    "4.0-IV3": ("metadata.version=25", (0, 1, 1, 25, 0, 0, 2)),
    "4.1-IV0": ("metadata.version=26", (1, 1, 1, 26, 0, 0, 2)),
    "4.2-IV0": ("metadata.version=28", (1, 1, 1, 28, 1, 0, 2)),
    "4.3-IV0": ("metadata.version=30", (1, 1, 1, 30, 1, 1, 2)),
    "3.8-IV0 and another": ("metadata.version=20, transaction.version=1", (0, 0, 0, 20, 0, 0, 1)),
}


@pytest.mark.parametrize(("features", "expected"), FEATURES.values(), ids=FEATURES)
def test_features_follow_metadata_version_as_in_kafka_4_4(features: str, expected: tuple[int, ...]) -> None:
    assert levels("kafka-4.4", features) == {name: level for name, level in zip(NAMES, expected, strict=True) if level}


def test_metadata_version_is_that_of_the_release() -> None:
    assert levels("kafka-3.9", "metadata.version=1") == {"metadata.version": 1}


RANGES = (
    "eligible.leader.replicas.version 0 to 1, group.version 0 to 1, kraft.version 0 to 1, metadata.version 7 to 33, "
    "share.version 0 to 2, streams.version 0 to 1, transaction.version 0 to 2"
)


MISSING_LEVELS = {
    "unknown feature": ("all", "foo.version=1", RANGES),
    "below the range": ("all", "metadata.version=6", RANGES),
    "above the range": ("all", "share.version=3", RANGES),
    "a release with ZooKeeper": ("kafka-2.8", "metadata.version=7", "(none)"),
    "a feature that needs a newer metadata.version": (
        "all",
        "metadata.version=22,eligible.leader.replicas.version=1",
        "expected metadata.version of at least 23 for this level, got eligible.leader.replicas.version=1",
    ),
    "no equals sign": ("all", "metadata.version:7", "FEATURE=LEVEL, separated by commas"),
    "twice": ("all", "group.version=0,group.version=1", "FEATURE=LEVEL"),
}


@pytest.mark.parametrize(("release", "features", "expected"), MISSING_LEVELS.values(), ids=MISSING_LEVELS)
def test_levels_that_the_release_lacks_are_an_error(release: str, features: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=r"sluice\.features: ") as raised:
        levels(release, features)
    assert expected in str(raised.value)
