"""DeleteTopics: deletion by name and by id, and Kafka's errors."""

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID
from tests.support.records import produce
from tests.support.virtual_broker import VirtualBroker, broker_with_topic
from tests.support.wire import error_codes

VERSIONS = range(7)
UNKNOWN_ID = bytes(15) + b"\7"


def delete(broker: VirtualBroker, version: int, *topics: str | bytes | DeleteTopicState) -> list[DeletableTopicResult]:
    """Delete topics by name (str), id (bytes) or state."""
    names = [name for name in topics if isinstance(name, str)]
    states = [
        DeleteTopicState(name=topic)
        if isinstance(topic, str)
        else DeleteTopicState(topic_id=topic)
        if isinstance(topic, bytes)
        else topic
        for topic in topics
    ]
    request = DeleteTopicsRequest(topic_names=names, topics=states, timeout_ms=1000)
    results = broker.client().call(request, version).responses
    assert isinstance(results, list)
    return results


@pytest.mark.parametrize("version", VERSIONS)
def test_deleted_topic_is_unknown(topic: Topic, broker: VirtualBroker, version: int) -> None:
    (result,) = delete(broker, version, "t")
    assert (result.name, result.error_code) == ("t", 0)
    assert result.topic_id == (topic.topic_id if version >= 6 else ZERO_UUID)
    client = broker.client()
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    assert error_codes(client.call(request, 9)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert error_codes(client.call(produce(9), 9)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_topic_is_deleted_by_id(topic: Topic, broker: VirtualBroker) -> None:
    (result,) = delete(broker, 6, topic.topic_id)
    assert (result.name, result.topic_id, result.error_code) == ("t", topic.topic_id, 0)
    assert broker.broker.cluster.topics == {}


def test_recreated_topic_is_empty_and_has_a_new_id(broker: VirtualBroker) -> None:
    first = broker.topic()
    broker.client().call(produce(9), 9)
    delete(broker, 6, "t")
    assert broker.topic().topic_id != first.topic_id
    assert broker.partition().log.log_end_offset == 0


INVALID_DELETIONS = {
    "unknown name": (("nowhere",), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "empty name": (("",), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown id": ((UNKNOWN_ID,), ErrorCode.UNKNOWN_TOPIC_ID),
    "neither name nor id": ((ZERO_UUID,), ErrorCode.INVALID_REQUEST),
    "duplicate name": (("t", "t"), ErrorCode.INVALID_REQUEST),
    "duplicate id": ((UNKNOWN_ID, UNKNOWN_ID), ErrorCode.INVALID_REQUEST),
    "name and id": ((DeleteTopicState(name="t", topic_id=UNKNOWN_ID),), ErrorCode.INVALID_REQUEST),
}


@pytest.mark.parametrize(("targets", "code"), INVALID_DELETIONS.values(), ids=INVALID_DELETIONS)
def test_invalid_deletion_is_rejected_with_kafkas_error(
    topic: Topic, broker: VirtualBroker, targets: tuple[str | bytes | DeleteTopicState, ...], code: ErrorCode
) -> None:
    (result,) = delete(broker, 6, *targets)
    assert result.error_code == code
    assert result.error_message
    assert list(broker.broker.cluster.topics) == ["t"]


@pytest.mark.parametrize("times_by_id", [1, 2], ids=["once", "twice"])
def test_topic_named_by_name_and_id_is_not_deleted(topic: Topic, broker: VirtualBroker, times_by_id: int) -> None:
    results = delete(broker, 6, DeleteTopicState(name="t"), *[topic.topic_id] * times_by_id)
    by_id = (None, topic.topic_id, "Duplicate topic id.")
    by_name = ("t", topic.topic_id, "The provided topic name maps to an ID that was already supplied.")
    expected = [by_name] if times_by_id == 1 else [by_id, by_name]
    assert [(result.name, result.topic_id, result.error_message) for result in results] == expected
    assert {result.error_code for result in results} == {ErrorCode.INVALID_REQUEST}
    assert list(broker.broker.cluster.topics) == ["t"]


def test_duplicate_name_does_not_affect_deletion_by_id(topic: Topic, broker: VirtualBroker) -> None:
    codes = [result.error_code for result in delete(broker, 6, "t", "t", topic.topic_id)]
    assert sorted(codes) == [0, ErrorCode.INVALID_REQUEST]
    assert broker.broker.cluster.topics == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_delete_topic_enable_false_rejects_all_deletions(version: int) -> None:
    broker = broker_with_topic("delete.topic.enable=false")
    (result,) = delete(broker, version, "t")
    expected = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
    assert (result.name, result.error_code, result.error_message or None) == ("t", expected, None)
    assert list(broker.broker.cluster.topics) == ["t"]


def test_failed_topic_does_not_affect_others(broker: VirtualBroker) -> None:
    broker.topic("a")
    broker.topic("b")
    results = delete(broker, 5, "a", "nowhere", "b")
    assert {result.name: result.error_code for result in results} == {"a": 0, "nowhere": 3, "b": 0}
