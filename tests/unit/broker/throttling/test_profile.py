"""The throttling mode of each quota profile; test_throttler and test_request_timer test the effects on clients."""

import pytest

from sluice.broker.exchange.registry import HANDLERS
from sluice.broker.throttling.profile import HOLD, MUTE, PROFILES, WITHHOLD
from sluice.config.kafka_releases import RELEASES
from sluice.protocol.apis import API_KEYS

# The first version of each API whose clients wait for the throttle time themselves (KIP-219).
FIRST_WAITING_VERSION = {
    "Produce": 6, "Fetch": 8, "ListOffsets": 3, "Metadata": 6, "OffsetCommit": 4, "OffsetFetch": 4,
    "FindCoordinator": 2, "JoinGroup": 3, "Heartbeat": 2, "LeaveGroup": 2, "SyncGroup": 2, "DescribeGroups": 2,
    "ListGroups": 2, "ApiVersions": 2, "CreateTopics": 3, "DeleteTopics": 2, "DeleteRecords": 1, "InitProducerId": 1,
    "AddPartitionsToTxn": 1, "AddOffsetsToTxn": 1, "EndTxn": 1, "TxnOffsetCommit": 1, "DescribeAcls": 1,
    "CreateAcls": 1, "DeleteAcls": 1, "DescribeConfigs": 2, "AlterConfigs": 1, "AlterReplicaLogDirs": 1,
    "DescribeLogDirs": 1, "CreatePartitions": 1, "CreateDelegationToken": 1, "RenewDelegationToken": 1,
    "ExpireDelegationToken": 1, "DescribeDelegationToken": 1, "DeleteGroups": 1, "ElectLeaders": 0,
    "IncrementalAlterConfigs": 0, "AlterPartitionReassignments": 0, "ListPartitionReassignments": 0, "OffsetDelete": 0,
    "DescribeUserScramCredentials": 0, "AlterUserScramCredentials": 0, "UnregisterBroker": 0,
    "DescribeTopicPartitions": 0,
}  # fmt: skip


@pytest.mark.parametrize("api_key", sorted({*API_KEYS, *HANDLERS}), ids=lambda key: API_KEYS[key].name)
def test_by_version_holds_the_versions_whose_clients_do_not_wait(api_key: int) -> None:
    api, profile = API_KEYS[api_key], PROFILES["by-version"]
    versions = range(api.min_version, api.max_version + 1)
    muted = [version for version in versions if profile.throttling_of(api_key, version) is MUTE]
    held = [version for version in versions if profile.throttling_of(api_key, version) is HOLD]
    first_muted = FIRST_WAITING_VERSION.get(api.name, api.max_version + 1)
    assert (held, muted) == (list(range(first_muted)), list(range(first_muted, api.max_version + 1)))


@pytest.mark.parametrize(
    ("profile", "throttling"),
    [("kip-13", HOLD), ("kafka-0.9", WITHHOLD), ("kafka-1.1", WITHHOLD), ("kafka-2.0", MUTE), ("kafka-4.4", MUTE)],
)
def test_other_profiles_throttle_all_versions_alike(profile: str, throttling: object) -> None:
    assert {PROFILES[profile].throttling_of(key, version) for key in API_KEYS for version in (0, 20)} == {throttling}


def test_every_release_has_a_profile() -> None:
    assert list(PROFILES) == ["by-version", "kip-13", *(f"kafka-{release}" for release in RELEASES)]
