"""CreatePartitions: added partitions, validate_only and errors."""

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis import create_partitions as api
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from tests.support.records import produce
from tests.support.virtual_broker import VirtualBroker


def increase(name: str, count: int, *assignments: list[int]) -> api.CreatePartitionsTopic:
    """Return a topic to extend, with the brokers of each new partition; without assignments, the broker assigns."""
    assigned = [api.CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
    return api.CreatePartitionsTopic(name=name, count=count, assignments=assigned or None)


def create(
    broker: VirtualBroker, *topics: api.CreatePartitionsTopic, validate_only: bool = False
) -> dict[str, tuple[int, str | None]]:
    """Return error code and message of each topic."""
    request = api.CreatePartitionsRequest(topics=list(topics), validate_only=validate_only, timeout_ms=1000)
    results = broker.client().call(request, 3).results
    assert len(results) == len({result.name for result in results})
    return {result.name: (result.error_code, result.error_message) for result in results}


def partitions_of(broker: VirtualBroker, name: str) -> list[int]:
    return [partition.index for partition in broker.broker.cluster.topics[name].partitions]


def test_topic_gets_the_requested_partitions_and_keeps_its_records(broker: VirtualBroker) -> None:
    broker.topic(partitions=2, max_message_bytes="5000")
    client = broker.client()
    client.call(produce(9), 9)
    assert create(broker, increase("t", 4)) == {"t": (0, None)}
    assert partitions_of(broker, "t") == [0, 1, 2, 3]
    assert client.call(produce(9, partition=3), 9).responses[0].partition_responses[0].error_code == 0
    assert [broker.partition("t", index).log.log_end_offset for index in range(4)] == [1, 0, 0, 1]
    assert broker.partition("t", 3).log.config.append.max_message_bytes == 5000
    (topic,) = client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9).topics
    assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2, 3]


def test_validate_only_creates_nothing(topic: Topic, broker: VirtualBroker) -> None:
    assert create(broker, increase("t", 4, [1], [1], [1]), validate_only=True) == {"t": (0, None)}
    assert partitions_of(broker, "t") == [0]


ASSIGNMENT = "The manual partition assignment includes "
INVALID, COUNT = ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.INVALID_PARTITIONS
INVALID_REQUESTS = {
    "unknown topic": (increase("nowhere", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    "unchanged partition count": (increase("t", 2), COUNT, "Topic already has 2 partition(s)."),
    "lower partition count": (
        increase("t", 1),
        COUNT,
        "The topic t currently has 2 partition(s); 1 would not be an increase.",
    ),
    "too few assignments": (
        increase("t", 4, [1]),
        INVALID,
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
    ),
    "empty replica list": (increase("t", 3, []), INVALID, ASSIGNMENT + "an empty replica list."),
    "unknown broker": (increase("t", 3, [9, 1]), INVALID, ASSIGNMENT + "broker 9, but no such broker is registered."),
    "duplicate broker": (increase("t", 3, [1, 1]), INVALID, ASSIGNMENT + "the broker 1 more than once."),
    "more than 10,000 new partitions": (
        increase("t", 10_003),
        ErrorCode.POLICY_VIOLATION,
        "Excessively large number of additional partitions per request.",
    ),
}


@pytest.mark.parametrize(("topic", "code", "message"), INVALID_REQUESTS.values(), ids=INVALID_REQUESTS)
def test_invalid_request_is_rejected_with_kafkas_error(
    broker: VirtualBroker, topic: api.CreatePartitionsTopic, code: ErrorCode, message: str | None
) -> None:
    broker.topic(partitions=2)
    assert create(broker, topic) == {topic.name: (code, message)}
    assert partitions_of(broker, "t") == [0, 1]


def test_duplicate_topic_is_rejected_without_affecting_others(broker: VirtualBroker) -> None:
    broker.topic("a")
    broker.topic("b")
    assert create(broker, increase("a", 3), increase("a", 4), increase("b", 2)) == {
        "a": (ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        "b": (0, None),
    }
    assert (partitions_of(broker, "a"), partitions_of(broker, "b")) == ([0], [0, 1])


def test_too_many_new_partitions_reject_all_topics(broker: VirtualBroker) -> None:
    broker.topic("a")
    broker.topic("b")
    codes = {name: code for name, (code, _) in create(broker, increase("a", 6000), increase("b", 6000)).items()}
    assert codes == {"a": ErrorCode.POLICY_VIOLATION, "b": ErrorCode.POLICY_VIOLATION}
