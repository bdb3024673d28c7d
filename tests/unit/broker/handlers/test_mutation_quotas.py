"""Controller mutation quotas (KIP-599) of CreateTopics, CreatePartitions, DeleteTopics and auto-creation.

With 1 partition/s and eleven samples of 1 s, a client has 11 tokens for partitions. Each partition above that adds one
second of throttle time.
"""

from typing import Any

import pytest

from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.quotas.mutation_quota import MutationUsage
from tests.support.virtual_broker import Client, VirtualBroker

EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
BURST = 11


def broker_with_quota(*topics: tuple[str, int]) -> VirtualBroker:
    broker = VirtualBroker("quota.profile=kafka-4.4")
    for name, partitions in topics:
        broker.topic(name, partitions)
    broker.broker.cluster.client_quotas.alter({"client-id": None}, {"controller_mutation_rate": 1.0})
    return broker


def tokens(broker: VirtualBroker) -> float:
    manager = broker.broker.cluster.controller_quotas.mutation
    assert manager is not None
    (usage,) = manager.snapshot(broker.clock.wall_ms())
    assert isinstance(usage, MutationUsage)
    return usage.tokens


def create(*sizes: int, validate_only: bool = False) -> CreateTopicsRequest:
    """Return a request for topics "n0", "n1", ... with these partition counts."""
    topics = [CreatableTopic(f"n{number}", size, replication_factor=1) for number, size in enumerate(sizes)]
    return CreateTopicsRequest(topics=topics, validate_only=validate_only)


def extend(*counts: tuple[str, int], validate_only: bool = False) -> CreatePartitionsRequest:
    topics = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in counts]
    return CreatePartitionsRequest(topics=topics, validate_only=validate_only, timeout_ms=1000)


def delete(*names: str) -> DeleteTopicsRequest:
    topics = [DeleteTopicState(name=name) for name in names]
    return DeleteTopicsRequest(topic_names=list(names), topics=topics, timeout_ms=1000)


def results_of(response: Any) -> list[tuple[str, int]]:
    """Return names and error codes, sorted by name."""
    message = response.message
    results = getattr(message, "topics", None) or getattr(message, "results", None) or message.responses
    return sorted((result.name, result.error_code) for result in results)


def reads(client: Client) -> bool:
    return client.transport.reading


# API -> existing topics, a request for 14, 2 and 1 partitions, and the last permissive version.
APIS: dict[str, tuple[list[tuple[str, int]], Message, int]] = {
    "CreateTopics": ([], create(14, 2, 1), 5),
    "CreatePartitions": ([("n0", 1), ("n1", 1), ("n2", 1)], extend(("n0", 15), ("n1", 3), ("n2", 2)), 2),
    "DeleteTopics": ([("n0", 14), ("n1", 2), ("n2", 1)], delete("n0", "n1", "n2"), 4),
}
each_api = pytest.mark.parametrize("api", APIS)


@each_api
def test_permissive_versions_are_accepted_and_throttled(api: str) -> None:
    topics, request_, permissive = APIS[api]
    broker = broker_with_quota(*topics)
    client = broker.client()
    client.send(request_, permissive)
    response = client.response()
    assert results_of(response) == [("n0", 0), ("n1", 0), ("n2", 0)]
    assert (response.at_ms, response.throttle_time_ms, tokens(broker)) == (0, 6_000, -6.0)
    assert not reads(client)
    broker.advance(6_000)
    assert reads(client)


@each_api
def test_strict_versions_reject_topics_without_tokens(api: str) -> None:
    topics, request_, permissive = APIS[api]
    broker = broker_with_quota(*topics)
    before = {topic.name: len(topic.partitions) for topic in broker.broker.cluster.topics.values()}
    client = broker.client()
    client.send(request_, permissive + 1)
    response = client.response()
    assert results_of(response) == [("n0", 0), ("n1", EXCEEDED), ("n2", EXCEEDED)]
    assert (response.at_ms, response.throttle_time_ms, tokens(broker)) == (0, 3_000, -3.0)
    after = {topic.name: len(topic.partitions) for topic in broker.broker.cluster.topics.values()}
    assert [after.get(name) == before.get(name) for name in ("n0", "n1", "n2")] == [False, True, True]
    assert not reads(client)


@pytest.mark.parametrize("request_", [create(14, validate_only=True), extend(("t", 15), validate_only=True)])
def test_validate_only_is_charged_as_in_kafka(request_: Message) -> None:
    broker = broker_with_quota(("t", 1))
    client = broker.client()
    client.send(request_, 3)
    client.response()
    assert tokens(broker) == -3.0
    assert list(broker.broker.cluster.topics) == ["t"]


INVALID_REQUESTS = {
    "topic without partitions": (create(0), 7),
    "unchanged partition count": (extend(("t", 1)), 3),
    "partitions of an unknown topic": (extend(("nowhere", 5)), 3),
    "unknown topic": (delete("nowhere"), 6),
}


@pytest.mark.parametrize(("request_", "version"), INVALID_REQUESTS.values(), ids=INVALID_REQUESTS)
def test_invalid_request_is_not_charged(request_: Message, version: int) -> None:
    broker = broker_with_quota(("t", 1))
    client = broker.client()
    client.send(request_, version)
    ((_, code),) = results_of(client.response())
    assert code != 0
    assert tokens(broker) == BURST


def test_throttled_topic_has_no_error_message() -> None:
    (_, topic) = broker_with_quota().client().call(create(12, 1), 7).topics
    assert (topic.error_code, topic.error_message) == (EXCEEDED, None), "as in Kafka, the error code has no message"


def request_metadata(client: Client, name: str) -> int:
    (topic,) = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 9).topics
    assert isinstance(topic.error_code, int)
    return topic.error_code


def test_auto_created_topic_is_charged_and_rejected_like_others() -> None:
    broker = broker_with_quota()
    client = broker.client()
    client.call(create(11), 7)
    for name in ("a", "b"):
        assert request_metadata(client, name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert request_metadata(client, "a") == 0, "zero tokens left were enough"
    assert "b" not in broker.broker.cluster.topics
    broker.advance(1_000)
    request_metadata(client, "b")
    assert request_metadata(client, "b") == 0, "a retry succeeds"


def test_mutations_without_a_quota_are_not_counted(client: Client, broker: VirtualBroker) -> None:
    client.send(create(5_000), 7)
    response = client.response()
    assert (results_of(response), response.throttle_time_ms) == ([("n0", 0)], 0)
    assert broker.broker.cluster.controller_quotas.mutation is None
