"""Error responses of every API and version, at the right level."""

from typing import Any

import pytest

from sluice.broker.exchange.registry import HANDLERS
from sluice.protocol.apis import API_KEYS, ApiKey, api_of
from sluice.protocol.apis.produce import ProduceRequest, ProduceResponse
from sluice.protocol.codec.compile import decoder, encoder
from sluice.protocol.error_codes import PARTITION, TOP, codes_of
from sluice.protocol.error_response import ResponseItem, fail, level_of, levels_of, merge, overwrite, split, whole
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message, fields_of
from tests.support.messages import request, response
from tests.support.wire import error_codes


def every(_: ResponseItem) -> bool:
    return True


each_api = pytest.mark.parametrize("key", HANDLERS, ids=lambda key: API_KEYS[key].name)


def served_versions(key: int) -> range:
    return range(HANDLERS[key].min_version, HANDLERS[key].max_version + 1)


def sample(cls: type[Message], version: int) -> Message:
    """Return a message with an item in every list."""
    message = cls()
    for field in fields_of(cls):
        if version not in field.versions:
            continue
        if field.is_array and field.struct is not None:
            setattr(message, field.name, [sample(field.struct, version)])
        elif field.is_array and field.type is not None:
            values = ["a", "b"] if "string" in field.type.name else [0, 1] if "int" in field.type.name else []
            setattr(message, field.name, values)
        elif getattr(message, field.name) == "":
            setattr(message, field.name, "t")
    return message


def round_trip(message: Message, version: int) -> Message:
    parts: list[bytes | memoryview] = []
    encoder(type(message), version)(message, parts)
    data = memoryview(b"".join(parts))
    return decoder(type(message), version)(data, 0, len(data))


@each_api
def test_each_possible_code_is_in_a_decodable_response(key: int) -> None:
    for version in served_versions(key):
        check_each_code(key, version)


def check_each_code(key: int, version: int) -> None:
    sent = sample(API_KEYS[key].request, version)
    found_codes = 0
    for code, name in codes_of(key).items():
        level = level_of(key, version, name)
        if level is None:
            continue
        found_codes += 1
        if level.name == TOP:
            answer = whole(key, sent, code)
        else:
            divided = split(key, version, level, sent, code, every, {})
            if divided is None:
                assert not level.is_in_request
                continue
            assert divided.rest is None
            answer = divided.failed
        assert set(error_codes(round_trip(answer, version))) == {code}, f"v{version}: {name}"
    assert found_codes, f"v{version}"


@each_api
def test_existing_response_fails_at_the_selected_level(key: int) -> None:
    for version in served_versions(key):
        for level in levels_of(key, version).values():
            answer = sample(API_KEYS[key].response, version)
            if level.name != TOP:
                assert overwrite(level, answer, ErrorCode.UNKNOWN_SERVER_ERROR, every, {}), f"v{version}"
                assert ErrorCode.UNKNOWN_SERVER_ERROR in error_codes(round_trip(answer, version)), f"v{version}"


def test_only_selected_partitions_fail_and_the_request_order_is_kept() -> None:
    requested = [("a", (0, 1)), ("b", (1,)), ("c", (1, 0, 2))]
    topics = [{"name": name, "partition_data": [{"index": i} for i in at]} for name, at in requested]
    request_ = request("Produce", topic_data=topics)
    level = levels_of(ApiKey.PRODUCE, 9)[PARTITION]
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    divided = split(ApiKey.PRODUCE, 9, level, request_, code, lambda item: item.partition == 1, {})
    assert divided is not None
    assert isinstance(divided.rest, ProduceRequest)
    assert [(t.name, [p.index for p in t.partition_data]) for t in divided.rest.topic_data] == [
        ("a", [0]),
        ("c", [0, 2]),
    ]
    assert request_ == request("Produce", topic_data=topics), "the request is unchanged"
    handled = split(ApiKey.PRODUCE, 9, level, divided.rest, ErrorCode.NONE, every, {})
    assert handled is not None
    merged = handled.failed
    merge(level, request_, merged, divided.failed)
    assert isinstance(merged, ProduceResponse)
    assert [(t.name, [(p.index, p.error_code) for p in t.partition_responses]) for t in merged.responses] == [
        ("a", [(0, 0), (1, code)]),
        ("b", [(1, code)]),
        ("c", [(1, code), (0, 0), (2, 0)]),
    ]


def test_partition_of_one_of_several_groups_fails() -> None:
    topics = [{"name": "t", "partition_indexes": [0, 1]}]
    request_ = request("OffsetFetch", groups=[{"group_id": group, "topics": topics} for group in ("g", "h")])
    level = levels_of(9, 8)[PARTITION]
    code = ErrorCode.UNSTABLE_OFFSET_COMMIT
    divided = split(9, 8, level, request_, code, lambda item: item.group == "h" and item.partition == 0, {})
    assert divided is not None
    handled = split(9, 8, level, divided.rest, ErrorCode.NONE, every, {})  # type: ignore[arg-type]  # there is a rest
    assert handled is not None
    merge(level, request_, handled.failed, divided.failed)
    found = [
        (group.group_id, [p.error_code for topic in group.topics for p in topic.partitions])
        for group in handled.failed.groups  # type: ignore[attr-defined]  # it is an OffsetFetchResponse
    ]
    assert found == [("g", [0, 0]), ("h", [code, 0])]


def test_failed_metadata_partition_keeps_its_replicas_and_has_no_leader() -> None:
    partitions = [{"partition_index": i, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]} for i in range(2)]
    metadata: Any = response("Metadata", topics=[{"name": "t", "partitions": partitions}])
    level = levels_of(3, 9)[PARTITION]
    code = ErrorCode.LEADER_NOT_AVAILABLE
    assert overwrite(level, metadata, code, lambda item: item == ResponseItem("t", 1), {}) == 1
    first, second = metadata.topics[0].partitions
    assert (first.error_code, first.leader_id) == (0, 1)
    assert (second.error_code, second.leader_id, second.replica_nodes) == (code, -1, [1])


FORMER_LEVELS = [
    ("OffsetFetch", 8, "group", "group"),
    ("OffsetFetch", 7, "group", "top"),
    ("OffsetFetch", 1, "group", "partition"),
    ("FindCoordinator", 3, "item", "top"),
    ("LeaveGroup", 2, "item", "top"),
    ("ElectLeaders", 0, "top", "partition"),
    ("AddPartitionsToTxn", 3, "top", "partition"),
    ("Fetch", 6, "top", None),
    ("Metadata", 12, "top", None),
]


@pytest.mark.parametrize(("api", "version", "name", "stands_on"), FORMER_LEVELS)
def test_version_without_a_level_reports_errors_at_the_former_level(
    api: str, version: int, name: str, stands_on: str | None
) -> None:
    key = next(key for key, each in API_KEYS.items() if each.name == api)
    level = level_of(key, version, name)
    assert (None if level is None else level.name) == stands_on


def test_null_lists_have_no_items() -> None:
    for request_, version in (
        (request("ElectLeaders", topic_partitions=None), 2),
        (request("ListPartitionReassignments"), 0),
    ):
        failed = fail(api_of(type(request_)).key, version, request_, ErrorCode.REQUEST_TIMED_OUT)
        assert error_codes(failed) == [ErrorCode.REQUEST_TIMED_OUT]


FAILED = ErrorCode.REQUEST_TIMED_OUT
NOT_WRITTEN = {"index": 2, "error_code": FAILED, "base_offset": -1}
NOT_ADDED = {"partition_index": 1, "partition_error_code": FAILED}
ALICE = {"entity_type": "user", "entity_name": "a"}
RESPONSES: dict[str, tuple[Message, int, dict[str, Any]]] = {
    "Produce": (
        request("Produce", topic_data=[{"name": "t", "partition_data": [{"index": 2}]}]),
        9,
        {"responses": [{"name": "t", "partition_responses": [NOT_WRITTEN]}]},
    ),
    "FindCoordinator v3": (
        request("FindCoordinator", key="g"),
        3,
        {"error_code": FAILED, "error_message": FAILED.message, "node_id": -1, "port": -1},
    ),
    "FindCoordinator v4": (
        request("FindCoordinator", coordinator_keys=["g"]),
        4,
        {
            "error_code": FAILED,
            "error_message": FAILED.message,
            "node_id": -1,
            "port": -1,
            "coordinators": [
                {"key": "g", "error_code": FAILED, "error_message": FAILED.message, "node_id": -1, "port": -1}
            ],
        },
    ),
    "AddPartitionsToTxn v3": (
        request("AddPartitionsToTxn", v3_and_below_topics=[{"name": "t", "partitions": [1]}]),
        3,
        {"error_code": FAILED, "results_by_topic_v3_and_below": [{"name": "t", "results_by_partition": [NOT_ADDED]}]},
    ),
    "DeleteTopics v5": (
        request("DeleteTopics", topic_names=["t"], timeout_ms=1000),
        5,
        {"responses": [{"name": "t", "error_code": FAILED}]},
    ),
    "DeleteTopics v6": (
        request("DeleteTopics", topics=[{"topic_id": b"i" * 16}], timeout_ms=1000),
        6,
        {"responses": [{"name": None, "topic_id": b"i" * 16, "error_code": FAILED}]},
    ),
    "CreateTopics, whose returned configs are not those of the request": (
        request("CreateTopics", topics=[{"name": "t", "configs": [{"name": "retention.ms"}]}]),
        7,
        {"topics": [{"name": "t", "error_code": FAILED, "error_message": None}]},
    ),
    "AlterClientQuotas": (
        request("AlterClientQuotas", entries=[{"entity": [ALICE]}]),
        1,
        {"entries": [{"error_code": FAILED, "error_message": FAILED.message, "entity": [ALICE]}]},
    ),
    "DescribeUserScramCredentials": (
        request("DescribeUserScramCredentials", users=[{"name": "a"}]),
        0,
        {
            "error_code": FAILED,
            "error_message": None,
            "results": [{"user": "a", "error_code": FAILED, "error_message": None}],
        },
    ),
    "ListPartitionReassignments": (
        request("ListPartitionReassignments", topics=[{"name": "t", "partition_indexes": [1]}]),
        0,
        {
            "error_code": FAILED,
            "error_message": None,
            "topics": [{"name": "t", "partitions": [{"partition_index": 1}]}],
        },
    ),
}


@pytest.mark.parametrize(("request_", "version", "expected"), RESPONSES.values(), ids=RESPONSES)
def test_fully_failed_request_is_answered(request_: Message, version: int, expected: dict[str, Any]) -> None:
    api = api_of(type(request_))
    assert fail(api.key, version, request_, FAILED) == response(api.name, **expected)


def test_rejected_member_receives_its_id() -> None:
    rejected = whole(11, request("JoinGroup", member_id="m"), ErrorCode.MEMBER_ID_REQUIRED)
    assert rejected == response("JoinGroup", error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m")


def test_replicas_of_other_topics_are_moved() -> None:
    results: list[dict[str, Any]] = [{"topic_name": name, "partitions": [{}]} for name in ("a", "b")]
    altered: Any = response("AlterReplicaLogDirs", results=results)
    level = levels_of(34, 2)[PARTITION]
    code = ErrorCode.LOG_DIR_NOT_FOUND
    assert overwrite(level, altered, code, lambda item: item.topic == "b", {}) == 1
    assert [topic.partitions[0].error_code for topic in altered.results] == [0, code]
