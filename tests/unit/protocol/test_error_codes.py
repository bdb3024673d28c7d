"""Error codes of responses: declared levels, and the codes that a response contains."""

import pytest

from sluice.broker.exchange.registry import HANDLERS
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from sluice.protocol.apis.delete_acls import DeleteAclsFilterResult, DeleteAclsMatchingAcl, DeleteAclsResponse
from sluice.protocol.apis.heartbeat import HeartbeatResponse
from sluice.protocol.apis.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from sluice.protocol.error_codes import apis_of, codes_in, codes_of
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message, fields_of

KEYS = {api.name: api.key for api in API_KEYS.values()}
NAMES = [api.name for api in API_KEYS.values() if api.key in HANDLERS]
# The reason of a null list, which does not fail its topic; the error of acknowledgements, which does not fail a fetch.
NOT_AN_ERROR_OF_ITS_ITEM = {
    ("CreatableTopicResult", "topic_config_error_code"),
    ("PartitionData", "acknowledge_error_code"),
}


def structs(cls: type[Message]) -> set[type[Message]]:
    below = [structs(field.struct) for field in fields_of(cls) if field.struct is not None]
    return {cls}.union(*below)


@pytest.mark.parametrize("api", NAMES)
def test_every_error_code_of_a_served_response_is_declared(api: str) -> None:
    for struct in structs(API_KEYS[KEYS[api]].response):
        named = {field.name for field in fields_of(struct) if field.name.endswith("error_code")}
        declared = {field.name for field in fields_of(struct) if field.meaning.errors is not None}
        assert {(struct.__name__, name) for name in named ^ declared} <= NOT_AN_ERROR_OF_ITS_ITEM


@pytest.mark.parametrize("api", NAMES)
def test_every_served_api_can_return_unknown_server_error_at_one_level(api: str) -> None:
    levels = {level for code, level in codes_of(KEYS[api]).items() if code == ErrorCode.UNKNOWN_SERVER_ERROR}
    assert len(levels) == 1
    words = [
        word
        for struct in structs(API_KEYS[KEYS[api]].response)
        for field in fields_of(struct)
        for word in (field.meaning.errors or "").split()
    ]
    assert words.count("any") == 1


LEVELS = [
    ("Produce", "NOT_LEADER_OR_FOLLOWER", "partition"),
    ("Produce", "REQUEST_TIMED_OUT", "partition"),
    ("Fetch", "OFFSET_OUT_OF_RANGE", "partition"),
    ("Fetch", "FETCH_SESSION_ID_NOT_FOUND", "top"),
    ("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", "topic"),
    ("Metadata", "REPLICA_NOT_AVAILABLE", "partition"),
    ("Metadata", "REBOOTSTRAP_REQUIRED", "top"),
    ("OffsetFetch", "NOT_COORDINATOR", "group"),
    ("OffsetFetch", "UNSTABLE_OFFSET_COMMIT", "partition"),
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", "item"),
    ("JoinGroup", "MEMBER_ID_REQUIRED", "top"),
    ("LeaveGroup", "NOT_COORDINATOR", "top"),
    ("LeaveGroup", "UNKNOWN_MEMBER_ID", "item"),
    ("DescribeGroups", "GROUP_ID_NOT_FOUND", "group"),
    ("DescribeTransactions", "TRANSACTIONAL_ID_NOT_FOUND", "transaction"),
    ("CreateTopics", "TOPIC_ALREADY_EXISTS", "topic"),
    ("AddPartitionsToTxn", "OPERATION_NOT_ATTEMPTED", "partition"),
    ("AddPartitionsToTxn", "CLUSTER_AUTHORIZATION_FAILED", "top"),
    ("DescribeLogDirs", "KAFKA_STORAGE_ERROR", "item"),
    ("ElectLeaders", "ELECTION_NOT_NEEDED", "partition"),
    ("OffsetDelete", "NON_EMPTY_GROUP", "top"),
    ("Produce", "MEMBER_ID_REQUIRED", None),
    ("Heartbeat", "NOT_LEADER_OR_FOLLOWER", None),
    ("DeleteAcls", "SECURITY_DISABLED", "item"),
]


@pytest.mark.parametrize(("api", "code", "level"), LEVELS)
def test_code_has_kafkas_level(api: str, code: str, level: str | None) -> None:
    assert codes_of(KEYS[api]).get(ErrorCode[code]) == level


def test_apis_of_a_code() -> None:
    found = [API_KEYS[key].name for key in apis_of(ErrorCode.REBALANCE_IN_PROGRESS)]
    assert found == ["OffsetCommit", "JoinGroup", "Heartbeat", "SyncGroup", "TxnOffsetCommit"]
    assert apis_of(ErrorCode.DELEGATION_TOKEN_EXPIRED) == []


PRODUCED = [PartitionProduceResponse(index=index, error_code=code) for index, code in enumerate([3, 0, 3, 6])]
ADDED_PARTITIONS = [
    AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
    for index, code in enumerate([55, 0, 29])
]
ADDED = [AddPartitionsToTxnTopicResult(name="t", results_by_partition=ADDED_PARTITIONS)]
IN_TRANSACTION = [AddPartitionsToTxnResult(topic_results=ADDED)]
DELETED = DeleteAclsFilterResult(matching_acls=[DeleteAclsMatchingAcl(error_code=41)])
CODES: dict[str, tuple[Message, list[int]]] = {
    "Produce": (ProduceResponse(responses=[TopicProduceResponse(partition_responses=PRODUCED)]), [3, 3, 6]),
    "Heartbeat": (HeartbeatResponse(error_code=27), [27]),
    "no error": (HeartbeatResponse(), []),
    "AddPartitionsToTxn v3": (AddPartitionsToTxnResponse(results_by_topic_v3_and_below=ADDED), [55, 29]),
    "AddPartitionsToTxn v4": (
        AddPartitionsToTxnResponse(error_code=31, results_by_transaction=IN_TRANSACTION),
        [31, 55, 29],
    ),
    "a single deletion of DeleteAcls": (DeleteAclsResponse(filter_results=[DELETED]), [41]),
}


@pytest.mark.parametrize(("response", "expected"), CODES.values(), ids=CODES)
def test_codes_in_a_response(response: Message, expected: list[int]) -> None:
    assert list(codes_in(response)) == expected
