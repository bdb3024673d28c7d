"""The topics, partitions, groups and transactional ids named in requests."""

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from sluice.broker.exchange.registry import HANDLERS
from sluice.protocol.apis import API_KEYS, api_of
from sluice.protocol.entities import NamedTopic, all_topics_selector, entities_of, reader_of
from sluice.protocol.message import Message, fields_of
from sluice.protocol.types import GROUP_ID, PARTITION, TOPIC_ID, TOPIC_NAME, TRANSACTIONAL_ID
from tests.support.messages import request
from tests.support.streams_groups import word_count

KEYS = {api.name: api.key for api in API_KEYS.values()}
SERVED = [pytest.param(API_KEYS[key].request, id=API_KEYS[key].name) for key in HANDLERS]


class Known(NamedTuple):
    """A topic with an id."""

    name: str


TOPICS: Mapping[bytes, NamedTopic] = {b"i" * 16: Known("known")}
NODES = [{"source_topics": ["t", "u"]}, {"sink_topic": "v"}]
TOPOLOGY = {"subtopologies": [{"nodes": NODES}]}
Found = tuple[list[tuple[str, int]], list[str], list[str]]
CASES: dict[str, tuple[Message, Found]] = {
    "StreamsGroupHeartbeat": (
        request("StreamsGroupHeartbeat", group_id="g", topology=word_count()),
        ([("t", -1), ("words", -1), ("counts", -1), ("words", -1)], ["g"], []),
    ),
    "StreamsGroupHeartbeat without topology": (request("StreamsGroupHeartbeat", group_id="g"), ([], ["g"], [])),
    "StreamsGroupTopologyDescriptionUpdate": (
        request("StreamsGroupTopologyDescriptionUpdate", topology_description=TOPOLOGY),
        ([("t", -1), ("u", -1), ("v", -1)], [], []),
    ),
    "Produce": (
        request(
            "Produce",
            transactional_id="tx",
            topic_data=[
                {"name": "t", "partition_data": [{"index": 1}, {"index": 0}]},
                {"topic_id": b"i" * 16, "partition_data": [{"index": 2}]},
            ],
        ),
        ([("t", 1), ("t", 0), ("known", 2)], [], ["tx"]),
    ),
    "Fetch, without forgotten topics": (
        request(
            "Fetch",
            topics=[{"topic_id": b"j" * 16, "partitions": [{"partition": 3}]}],
            forgotten_topics_data=[{"topic": "f", "partitions": [0]}],
        ),
        ([("6a" * 16, 3)], [], []),
    ),
    "Metadata by name and by id": (
        request("Metadata", topics=[{"name": "t"}, {"name": None, "topic_id": b"i" * 16}]),
        ([("t", -1), ("known", -1)], [], []),
    ),
    "Metadata of all topics": (request("Metadata", topics=None), ([], [], [])),
    "OffsetFetch of one group": (
        request("OffsetFetch", group_id="g", topics=[{"name": "t", "partition_indexes": [0, 1]}]),
        ([("t", 0), ("t", 1)], ["g"], []),
    ),
    "OffsetFetch of two groups": (
        request(
            "OffsetFetch",
            groups=[
                {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]},
                {"group_id": "h", "topics": None},
            ],
        ),
        ([("t", 0)], ["g", "h"], []),
    ),
    "FindCoordinator of a group": (request("FindCoordinator", key="g"), ([], ["g"], [])),
    "FindCoordinator of transactions": (
        request("FindCoordinator", key_type=1, coordinator_keys=["a", "b"]),
        ([], [], ["a", "b"]),
    ),
    "FindCoordinator of a share partition": (
        request("FindCoordinator", key_type=2, coordinator_keys=["g:id:0"]),
        ([], [], []),
    ),
    "Heartbeat": (request("Heartbeat", group_id="g"), ([], ["g"], [])),
    "InitProducerId of an idempotent producer": (request("InitProducerId", transactional_id=None), ([], [], [])),
    "DeleteGroups": (request("DeleteGroups", groups_names=["g", "", "h"]), ([], ["g", "h"], [])),
    "CreateTopics with assignments": (
        request("CreateTopics", topics=[{"name": "t", "assignments": [{}]}]),
        ([("t", -1)], [], []),
    ),
    "DeleteTopics by name and by id": (
        request("DeleteTopics", topic_names=["old"], topics=[{"name": "t"}, {"topic_id": b"i" * 16}], timeout_ms=1000),
        ([("t", -1), ("known", -1), ("old", -1)], [], []),
    ),
    "AddPartitionsToTxn v3": (
        request(
            "AddPartitionsToTxn",
            v3_and_below_transactional_id="tx",
            v3_and_below_topics=[{"name": "t", "partitions": [3]}],
        ),
        ([("t", 3)], [], ["tx"]),
    ),
    "AddPartitionsToTxn v4": (
        request(
            "AddPartitionsToTxn",
            transactions=[
                {"transactional_id": name, "topics": [{"name": "t", "partitions": [index]}]}
                for index, name in enumerate(["a", "b"])
            ],
        ),
        ([("t", 0), ("t", 1)], [], ["a", "b"]),
    ),
    "AlterReplicaLogDirs": (
        request("AlterReplicaLogDirs", dirs=[{"path": "/d", "topics": [{"name": "t", "partitions": [1]}]}]),
        ([("t", 1)], [], []),
    ),
    "ConsumerGroupHeartbeat": (
        request(
            "ConsumerGroupHeartbeat",
            group_id="g",
            subscribed_topic_names=["t"],
            topic_partitions=[{"topic_id": b"i" * 16, "partitions": [5]}],
        ),
        ([("t", -1), ("known", 5)], ["g"], []),
    ),
    "ConsumerGroupHeartbeat with unchanged topics": (request("ConsumerGroupHeartbeat", group_id="g"), ([], ["g"], [])),
    "ListGroups": (request("ListGroups"), ([], [], [])),
}


@pytest.mark.parametrize(("request_", "expected"), CASES.values(), ids=CASES)
def test_entities_of_a_request(request_: Message, expected: Found) -> None:
    partitions, groups, transactional_ids = reader_of(api_of(type(request_)).key)(request_, TOPICS)
    assert (list(partitions), list(groups), list(transactional_ids)) == expected


ALL_TOPICS = {
    "Metadata v1, null": (request("Metadata", topics=None), 1, True),
    "Metadata v1, empty": (request("Metadata", topics=[]), 1, False),
    "Metadata v0, empty": (request("Metadata", topics=[]), 0, True),
    "Metadata v0, one": (request("Metadata", topics=[{"name": "t"}]), 0, False),
    "DescribeTopicPartitions, empty": (request("DescribeTopicPartitions"), 0, True),
    "DescribeLogDirs, null": (request("DescribeLogDirs", topics=None), 1, True),
    "DescribeLogDirs, empty": (request("DescribeLogDirs", topics=[]), 1, False),
    "ElectLeaders, null": (request("ElectLeaders", topic_partitions=None), 2, True),
    "ListPartitionReassignments, null": (request("ListPartitionReassignments"), 0, True),
    "OffsetFetch v5, null": (request("OffsetFetch", topics=None), 5, True),
    "OffsetFetch v8, null in one of two groups": (request("OffsetFetch", groups=[{}, {"topics": None}]), 8, True),
    "ConsumerGroupHeartbeat, null means unchanged": (request("ConsumerGroupHeartbeat"), 0, False),
}


@pytest.mark.parametrize(("request_", "version", "expected"), ALL_TOPICS.values(), ids=ALL_TOPICS)
def test_request_for_all_topics(request_: Message, version: int, expected: bool) -> None:
    assert all_topics_selector(api_of(type(request_)).key)(request_, version) == expected


DIFFERING_FIELDS = [
    ("Produce", {TOPIC_NAME, PARTITION, TRANSACTIONAL_ID}),
    ("Metadata", {TOPIC_NAME, PARTITION}),
    ("DescribeTopicPartitions", {TOPIC_NAME, PARTITION}),
    ("CreateTopics", {TOPIC_NAME}),
    ("DeleteTopics", {TOPIC_NAME}),
    ("FindCoordinator", {GROUP_ID, TRANSACTIONAL_ID}),
    ("TxnOffsetCommit", {TOPIC_NAME, PARTITION, GROUP_ID, TRANSACTIONAL_ID}),
    ("ConsumerGroupHeartbeat", {TOPIC_NAME, PARTITION, GROUP_ID}),
    ("LeaveGroup", {GROUP_ID}),
    ("DescribeConfigs", set()),
    ("ApiVersions", set()),
]


@pytest.mark.parametrize(("api", "expected"), DIFFERING_FIELDS)
def test_differing_fields_of_an_apis_requests(api: str, expected: set[str]) -> None:
    assert entities_of(KEYS[api]) == expected


def check(cls: type[Message]) -> None:
    for field in fields_of(cls):
        meaning = field.meaning
        entities = [*meaning.entity.values()] if isinstance(meaning.entity, Mapping) else [meaning.entity]
        assert {*entities} <= {TOPIC_NAME, TOPIC_ID, PARTITION, GROUP_ID, TRANSACTIONAL_ID, None}, field.name
        assert isinstance(meaning.entity, Mapping) == (meaning.entity_by in {each.name for each in fields_of(cls)})
        if field.struct is not None:
            check(field.struct)


@pytest.mark.parametrize("request_class", SERVED)
def test_every_declared_entity_exists(request_class: type[Message]) -> None:
    check(request_class)
