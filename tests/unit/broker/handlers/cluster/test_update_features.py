"""UpdateFeatures: levels of features, and their effects."""

import pytest

from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from sluice.protocol.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker
from tests.support.wire import error_codes

UPGRADE, SAFE, UNSAFE = 1, 2, 3
INVALID = ErrorCode.INVALID_UPDATE_VERSION
Update = tuple[str, int, int]


def update(
    broker: VirtualBroker, *updates: Update, version: int = 1, validate_only: bool = False
) -> UpdateFeaturesResponse:
    keys = [
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind if version else UPGRADE)
        for name, level, kind in updates
    ]
    response = broker.client().call(UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only), version)
    assert isinstance(response, UpdateFeaturesResponse)
    return response


def finalized(broker: VirtualBroker) -> dict[str, int]:
    response = broker.client().call(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    return {feature.name: feature.max_version_level for feature in response.finalized_features}


# As Kafka 4.4.0 responds.
INVALID_UPDATES: list[tuple[Update, str]] = [
    (("foo", 1, UPGRADE), "Local controller 1 does not support this feature."),
    (
        ("group.version", 0, UPGRADE),
        "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
        "downgrade.",
    ),
    (("group.version", 2, UPGRADE), "Local controller 1 only supports versions 0-1"),
    (("transaction.version", -1, UPGRADE), "A feature version cannot be less than 0."),
    (("metadata.version", 6, SAFE), "Local controller 1 only supports versions 7-33"),
    (("kraft.version", 0, SAFE), "Can't downgrade the version of this feature."),
    (("group.version", 0, 7), "The controller does not support the given upgrade type."),
]


@pytest.mark.parametrize(
    ("invalid", "message"), INVALID_UPDATES, ids=[" ".join(map(str, invalid)) for invalid, _ in INVALID_UPDATES]
)
def test_one_invalid_level_fails_the_whole_request(broker: VirtualBroker, invalid: Update, message: str) -> None:
    before = finalized(broker)
    response = update(broker, ("transaction.version", 1, SAFE), invalid)
    assert (response.error_code, response.results) == (INVALID, [])
    assert response.error_message == (
        "The update failed for all features since the following feature had an error: "
        f"Invalid update version {invalid[1]} for feature {invalid[0]}. {message}"
    )
    assert finalized(broker) == before


def test_upgrade_type_must_match_the_direction(broker: VirtualBroker) -> None:
    update(broker, ("transaction.version", 1, SAFE))
    message = update(broker, ("transaction.version", 2, SAFE)).error_message
    assert message is not None
    assert message.endswith("Can't downgrade to a newer version.")


REFUSED = "Refusing to perform the requested downgrade because it might delete metadata information."


LOWERED = {
    "4.4-IV2 to 3.3-IV3": (33, 7, SAFE, REFUSED),
    "3.4-IV0 to 3.3-IV3": (8, 7, SAFE, REFUSED),
    "unsafe": (8, 7, UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
    "4.0-IV1 to 4.0-IV0": (23, 22, SAFE, REFUSED),
    "3.8-IV0 to 3.7-IV3, which have the same records": (20, 18, SAFE, None),
    "4.2-IV1 to 4.0-IV1, which have the same records": (29, 23, UNSAFE, None),
    "3.3-IV3 to 3.7-IV1": (7, 16, UPGRADE, None),
    "the same version": (21, 21, UPGRADE, None),
}


@pytest.mark.parametrize(("before", "level", "kind", "reason"), LOWERED.values(), ids=LOWERED)
def test_metadata_version_is_lowered_only_to_one_with_the_same_records(
    before: int, level: int, kind: int, reason: str | None
) -> None:
    broker = VirtualBroker(f"sluice.features=metadata.version={before}")
    message = update(broker, ("metadata.version", level, kind)).error_message
    if reason is None:
        assert (message, finalized(broker)["metadata.version"]) == (None, level)
    else:
        assert message is not None
        assert message.endswith(f"Unsupported metadata.version downgrade from {before} to {level}. {reason}")


@pytest.mark.parametrize(("metadata_version", "succeeds"), [(22, False), (23, True)])
def test_feature_can_depend_on_metadata_version(metadata_version: int, succeeds: bool) -> None:
    broker = VirtualBroker("sluice.features=metadata.version=22")
    elr = "eligible.leader.replicas.version"
    response = update(broker, ("metadata.version", metadata_version, UPGRADE), (elr, 1, UPGRADE))
    if not succeeds:
        assert response.error_message is not None
        assert response.error_message.endswith(
            f"Invalid update version 1 for feature {elr}. {elr} could not be set to 1 because it depends on "
            "metadata.version level 23"
        )
    assert finalized(broker).get(elr, 0) == int(succeeds)


@pytest.mark.parametrize("version", range(3))
def test_valid_update_returns_results_up_to_version_1(broker: VirtualBroker, version: int) -> None:
    response = update(broker, ("group.version", 1, UPGRADE), version=version)
    assert (response.error_code, response.error_message) == (0, None)
    results = [(result.feature, result.error_code, result.error_message) for result in response.results]
    assert results == [("group.version", 0, "NONE")][: 2 - version]


def test_version_0_cannot_downgrade(broker: VirtualBroker) -> None:
    key = FeatureUpdateKey(feature="group.version", allow_downgrade=True)
    assert broker.client().call(UpdateFeaturesRequest(feature_updates=[key]), 0).error_code == INVALID


def test_feature_of_level_0_is_disabled_until_its_upgrade(broker: VirtualBroker) -> None:
    describe = ConsumerGroupDescribeRequest(group_ids=["g"])
    assert update(broker, ("group.version", 0, SAFE), validate_only=True).error_code == 0
    assert finalized(broker)["group.version"] == 1, "only validated"
    update(broker, ("group.version", 0, SAFE), ("transaction.version", 1, SAFE))
    after = finalized(broker)
    assert ("group.version" in after, after["transaction.version"]) == (False, 1)
    assert error_codes(broker.client().call(describe, 1)) == [ErrorCode.UNSUPPORTED_VERSION]
    update(broker, ("group.version", 1, UPGRADE))
    assert error_codes(broker.client().call(describe, 1)) != [ErrorCode.UNSUPPORTED_VERSION]
