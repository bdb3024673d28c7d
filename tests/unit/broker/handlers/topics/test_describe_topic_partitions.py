"""DescribeTopicPartitions: order, pages, cursors and errors."""

from typing import Any

import pytest

from sluice.protocol.apis.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID
from tests.support.virtual_broker import VirtualBroker

TOPIC_OPERATIONS = 0xDF8  # the value of Kafka without an authorizer
Page = tuple[dict[str, list[int]], tuple[str, int] | None]


def broker_with(*overrides: str, **topics: int) -> VirtualBroker:
    broker = VirtualBroker(*overrides)
    for name, partitions in topics.items():
        broker.topic(name, partitions)
    return broker


def call(broker: VirtualBroker, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None,
    )
    return broker.client().call(request, 0)


def page(response: Any) -> Page:
    assert [topic.error_code for topic in response.topics if topic.error_code] == []
    topics = {topic.name: [partition.partition_index for partition in topic.partitions] for topic in response.topics}
    cursor = response.next_cursor
    return topics, (cursor.topic_name, cursor.partition_index) if cursor else None


def test_topic_is_described_with_its_replica() -> None:
    broker = broker_with(t=1)
    (topic,) = call(broker, "t").topics
    assert (topic.name, topic.topic_id) == ("t", broker.broker.cluster.topics["t"].topic_id)
    assert (topic.is_internal, topic.topic_authorized_operations) == (False, TOPIC_OPERATIONS)
    (partition,) = topic.partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 0)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [1], [])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


def test_journal_topic_is_not_internal_because_spark_skips_internal_topics() -> None:
    broker = broker_with(__consumer_offsets=1, __sluice_journal=1)
    internal = {topic.name: topic.is_internal for topic in call(broker).topics}
    assert internal == {"__consumer_offsets": True, "__sluice_journal": False}


PAGES = {
    "empty list requests all topics": ((), 9, None, ({"a": [0, 1], "b": [0, 1, 2], "c": [0]}, None)),
    "sorted by name without duplicates": (("c", "a", "c"), 9, None, ({"a": [0, 1], "c": [0]}, None)),
    "page ends within a topic": ((), 3, None, ({"a": [0, 1], "b": [0]}, ("b", 1))),
    "page ends after a topic": ((), 2, None, ({"a": [0, 1]}, ("b", 0))),
    "next page": ((), 3, ("b", 1), ({"b": [1, 2], "c": [0]}, None)),
    "page of the requested topics": (("b", "c"), 1, ("b", 2), ({"b": [2]}, ("c", 0))),
    "cursor at a deleted topic continues with the next": ((), 9, ("bb", 5), ({"c": [0]}, None)),
    "cursor after the last partition": (("a",), 9, ("a", 7), ({"a": []}, None)),
    "limit 0 counts as 1": (("a",), 0, None, ({"a": [0]}, ("a", 1))),
    "negative limit counts as 1": (("a",), -5, None, ({"a": [0]}, ("a", 1))),
}


@pytest.mark.parametrize(("names", "limit", "cursor", "expected"), PAGES.values(), ids=PAGES)
def test_pages_follow_limit_and_cursor(
    names: tuple[str, ...], limit: int, cursor: tuple[str, int] | None, expected: Page
) -> None:
    assert page(call(broker_with(b=3, c=1, a=2), *names, limit=limit, cursor=cursor)) == expected


def test_page_contains_at_most_2000_partitions() -> None:
    broker = broker_with(t=2001)
    topics, cursor = page(call(broker, limit=9999))
    assert (len(topics["t"]), cursor) == (2000, ("t", 2000))
    assert page(call(broker, limit=9999, cursor=cursor)) == ({"t": [2000]}, None)


@pytest.mark.parametrize(("limit", "described"), [(1, 1), (2, 2), (9999, 2)])
def test_page_is_limited_by_max_request_partition_size_limit(limit: int, described: int) -> None:
    broker = broker_with("max.request.partition.size.limit=2", t=3)
    topics, cursor = page(call(broker, limit=limit))
    assert (len(topics["t"]), cursor) == (described, ("t", described))


INVALID_TOPICS = {
    "unknown topic": ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "invalid name": ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
}


@pytest.mark.parametrize(("name", "code"), INVALID_TOPICS.values(), ids=INVALID_TOPICS)
def test_invalid_topic_is_rejected_without_affecting_others(name: str, code: ErrorCode) -> None:
    topics = {topic.name: topic for topic in call(broker_with(t=1), "t", name).topics}
    assert (topics["t"].error_code, len(topics["t"].partitions)) == (0, 1)
    rejected = topics[name]
    assert (rejected.error_code, rejected.topic_id, rejected.partitions) == (code, ZERO_UUID, [])


def test_empty_name_without_a_cursor_fails_the_whole_request_as_in_kafka() -> None:
    broker = broker_with(t=1)
    assert {topic.name: topic.error_code for topic in call(broker, "t", "").topics} == dict.fromkeys(("t", ""), -1)
    topics = {topic.name: topic.error_code for topic in call(broker, "t", "", cursor=("", 0)).topics}
    assert topics == {"t": ErrorCode.NONE, "": ErrorCode.INVALID_TOPIC_EXCEPTION}


INVALID_CURSORS = {"topic that is not requested": (("b",), ("a", 0)), "negative partition": (("a", "b"), ("a", -1))}


@pytest.mark.parametrize(("names", "cursor"), INVALID_CURSORS.values(), ids=INVALID_CURSORS)
def test_invalid_cursor_is_rejected(names: tuple[str, ...], cursor: tuple[str, int]) -> None:
    response = call(broker_with(a=1, b=1), *names, cursor=cursor)
    assert [(topic.name, topic.error_code, topic.partitions) for topic in response.topics] == [
        (name, ErrorCode.INVALID_REQUEST, []) for name in names
    ]
