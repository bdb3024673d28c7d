"""CreateTopics: created topics, and Kafka's errors."""

from typing import Any

import pytest

from sluice.broker.metadata.new_topic import MAX_PARTITIONS
from sluice.protocol.apis import create_topics as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID
from tests.support.virtual_broker import VirtualBroker
from tests.support.wire import error_codes


def create(
    broker: VirtualBroker, *topics: api.CreatableTopic, version: int = 7, **more: Any
) -> list[api.CreatableTopicResult]:
    response = broker.client().call(api.CreateTopicsRequest(topics=list(topics), **more), version)
    results = response.topics
    assert isinstance(results, list)
    return results


def creatable(
    name: str = "new",
    partitions: int = 2,
    replicas: int = 1,
    assignments: dict[int, list[int]] | None = None,
    **configs: str | None,
) -> api.CreatableTopic:
    """Return a topic to create; config names have underscores for dots."""
    return api.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            api.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignments or {}).items()
        ],
        configs=[api.CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()],
    )


def assigned(assignments: dict[int, list[int]], partitions: int = -1, replicas: int = -1) -> api.CreatableTopic:
    return creatable(partitions=partitions, replicas=replicas, assignments=assignments)


@pytest.mark.parametrize("version", range(8))
def test_topic_is_created_with_the_requested_partitions_and_configs(broker: VirtualBroker, version: int) -> None:
    topic_to_create = creatable(partitions=3, retention_ms="1234", cleanup_policy=" compact , delete")
    (result,) = create(broker, topic_to_create, version=version)
    topic = broker.broker.cluster.topics["new"]
    assert len(topic.partitions) == 3
    assert topic.config.integer("retention.ms") == 1234
    assert (result.name, result.error_code, result.error_message or None) == ("new", 0, None)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        configs = {config.name: (config.value, config.config_source) for config in result.configs or []}
        assert configs["retention.ms"] == ("1234", 1), "source 1 is a topic config"
        assert configs["cleanup.policy"] == (" compact , delete", 1), "as in the request"
        assert configs["segment.ms"] == ("604800000", 5), "source 5 is a default"
        assert [*configs] == sorted(configs)
    assert result.topic_id == (topic.topic_id if version >= 7 else ZERO_UUID)


def test_minus_1_selects_the_brokers_defaults() -> None:
    broker = VirtualBroker("num.partitions=4")
    (result,) = create(broker, creatable(partitions=-1, replicas=-1))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 4, 1)


def test_partitions_may_be_assigned_to_brokers() -> None:
    broker = VirtualBroker("node.id=3")
    (result,) = create(broker, assigned({1: [3], 0: [3]}))
    assert (result.error_code, result.num_partitions) == (0, 2)


INVALID_TOPICS = {
    ErrorCode.INVALID_TOPIC_EXCEPTION: {
        "empty name": creatable(""),
        "single dot": creatable("."),
        "two dots": creatable(".."),
        "name of 250 characters": creatable("a" * 250),
        "blank in the name": creatable("a b"),
        "newline in the name": creatable("a\n"),
        "non-ASCII letter": creatable("ä"),
        "name that collides in metric names": creatable("there_is"),
    },
    ErrorCode.TOPIC_ALREADY_EXISTS: {"existing topic": creatable("there.is")},
    ErrorCode.INVALID_PARTITIONS: {"0 partitions": creatable(partitions=0), "-2 partitions": creatable(partitions=-2)},
    ErrorCode.INVALID_REPLICATION_FACTOR: {
        "0 replicas": creatable(replicas=0),
        "-2 replicas": creatable(replicas=-2),
        "more replicas than brokers": creatable(replicas=2),
        "replication factor precedes partitions": creatable(partitions=0, replicas=0),
    },
    ErrorCode.INVALID_CONFIG: {
        "unknown config": creatable(no_such_config="1"),
        "invalid value": creatable(retention_ms="soon"),
        "value out of range": creatable(retention_ms="-2"),
        "null value": creatable(retention_ms=None),
        "configs precede partitions": creatable(partitions=0, retention_ms="soon"),
    },
    ErrorCode.INVALID_REQUEST: {
        "name of the metadata log": creatable("__cluster_metadata"),
        "assignments and partition count": assigned({0: [1]}, partitions=1),
        "assignments and replication factor": assigned({0: [1]}, replicas=1),
    },
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: {
        "assignments with a gap": assigned({0: [1], 2: [1]}),
        "assignment to an unknown broker": assigned({0: [2]}),
        "empty replica list": assigned({0: []}),
        "duplicate broker in an assignment": assigned({0: [1, 1]}),
    },
    ErrorCode.POLICY_VIOLATION: {"partitions above the limit": creatable(partitions=MAX_PARTITIONS + 1)},
}


@pytest.mark.parametrize(
    ("topic", "code"),
    [pytest.param(topic, code, id=title) for code, those in INVALID_TOPICS.items() for title, topic in those.items()],
)
def test_invalid_topic_is_rejected_with_kafkas_error_and_message(topic: api.CreatableTopic, code: ErrorCode) -> None:
    broker = VirtualBroker()
    broker.topic("there.is")
    (result,) = create(broker, topic)
    assert (result.name, result.error_code) == (topic.name, code)
    assert result.error_message
    assert list(broker.broker.cluster.topics) == ["there.is"]


def test_duplicate_partition_assignment_is_rejected(broker: VirtualBroker) -> None:
    topic = assigned({0: [1]})
    topic.assignments *= 2
    (result,) = create(broker, topic)
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_duplicate_topic_name_is_rejected_once(broker: VirtualBroker) -> None:
    results = create(broker, creatable("twice"), creatable("once"), creatable("twice"))
    assert {result.name: result.error_code for result in results} == {"twice": ErrorCode.INVALID_REQUEST, "once": 0}
    assert len(results) == 2
    assert list(broker.broker.cluster.topics) == ["once"]


def test_total_partitions_above_the_request_limit_create_nothing(broker: VirtualBroker) -> None:
    results = create(broker, *[creatable(f"topic-{number}", partitions=1_000) for number in range(11)])
    assert {result.error_code for result in results} == {ErrorCode.POLICY_VIOLATION}
    assert broker.broker.cluster.topics == {}


@pytest.mark.parametrize("version", range(1, 8))
def test_validate_only_returns_the_results_and_creates_nothing(broker: VirtualBroker, version: int) -> None:
    good, bad = create(broker, creatable("good"), creatable("bad", partitions=0), version=version, validate_only=True)
    assert (good.error_code, bad.error_code) == (0, ErrorCode.INVALID_PARTITIONS)
    assert broker.broker.cluster.topics == {}
    assert error_codes(broker.client().call(api.CreateTopicsRequest(topics=[creatable("good")]), version)) == []


def test_failed_topic_does_not_affect_others(broker: VirtualBroker) -> None:
    results = create(broker, creatable("bad", partitions=0), creatable("good"))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_PARTITIONS, 0]
    assert list(broker.broker.cluster.topics) == ["good"]
