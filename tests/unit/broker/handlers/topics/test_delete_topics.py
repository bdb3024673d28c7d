"""DeleteTopics: by name, by id, and each refusal with Kafka's error."""

import pytest

from sluice.protocol.apis.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID
from tests.support.records import produce
from tests.support.virtual_broker import VirtualBroker
from tests.support.wire import error_codes

VERSIONS = range(7)
NOBODY = bytes(15) + b"\7"


def delete(broker: VirtualBroker, version: int, *topics: str | bytes | DeleteTopicState) -> list[DeletableTopicResult]:
    """Asks for topics by name (str), id (bytes), or whatever the state says."""
    names = [name for name in topics if isinstance(name, str)]
    states = [
        DeleteTopicState(name=one)
        if isinstance(one, str)
        else DeleteTopicState(topic_id=one)
        if isinstance(one, bytes)
        else one
        for one in topics
    ]
    results = broker.client().ask(DeleteTopicsRequest(topic_names=names, topics=states), version).responses
    assert isinstance(results, list)
    return results


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_gone_once_it_is_deleted(version: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    (result,) = delete(broker, version, "t")
    assert (result.name, result.error_code) == ("t", 0)
    assert result.topic_id == (topic.topic_id if version >= 6 else ZERO_UUID)
    client = broker.client()
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    assert error_codes(client.ask(request, 9)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert error_codes(client.ask(produce(9), 9)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_topic_may_be_deleted_by_its_id() -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    (result,) = delete(broker, 6, topic.topic_id)
    assert (result.name, result.topic_id, result.error_code) == ("t", topic.topic_id, 0)
    assert broker.broker.cluster.topics == {}


def test_a_topic_of_the_same_name_begins_anew() -> None:
    broker = VirtualBroker()
    first = broker.topic()
    broker.client().ask(produce(9), 9)
    delete(broker, 6, "t")
    assert broker.topic().topic_id != first.topic_id
    assert broker.partition().log.log_end_offset == 0


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        pytest.param(("nowhere",), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="unknown name"),
        pytest.param(("",), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no name"),
        pytest.param((NOBODY,), ErrorCode.UNKNOWN_TOPIC_ID, id="unknown id"),
        pytest.param((ZERO_UUID,), ErrorCode.INVALID_REQUEST, id="neither name nor id"),
        pytest.param(("t", "t"), ErrorCode.INVALID_REQUEST, id="name twice"),
        pytest.param((NOBODY, NOBODY), ErrorCode.INVALID_REQUEST, id="id twice"),
        pytest.param((DeleteTopicState(name="t", topic_id=NOBODY),), ErrorCode.INVALID_REQUEST, id="name and id"),
    ],
)
def test_what_cannot_be_deleted_is_refused_with_kafkas_error(
    wanted: tuple[str | bytes | DeleteTopicState, ...], code: ErrorCode
) -> None:
    broker = VirtualBroker()
    broker.topic()
    (result,) = delete(broker, 6, *wanted)
    assert result.error_code == code
    assert result.error_message
    assert list(broker.broker.cluster.topics) == ["t"]


@pytest.mark.parametrize("times_by_id", [1, 2], ids=["once", "twice"])
def test_a_topic_given_by_name_and_by_id_stays(times_by_id: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    results = delete(broker, 6, DeleteTopicState(name="t"), *[topic.topic_id] * times_by_id)
    expected: list[tuple[str | None, bytes, str]] = [
        ("t", topic.topic_id, "The provided topic name maps to an ID that was already supplied.")
    ]
    if times_by_id > 1:
        expected.insert(0, (None, topic.topic_id, "Duplicate topic id."))
    assert [(result.name, result.topic_id, result.error_message) for result in results] == expected
    assert {result.error_code for result in results} == {ErrorCode.INVALID_REQUEST}
    assert list(broker.broker.cluster.topics) == ["t"]


def test_a_name_given_twice_keeps_nobody_from_deleting_by_id() -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    codes = [result.error_code for result in delete(broker, 6, "t", "t", topic.topic_id)]
    assert sorted(codes) == [0, ErrorCode.INVALID_REQUEST]
    assert broker.broker.cluster.topics == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_delete_topic_enable_false_refuses_all(version: int) -> None:
    broker = VirtualBroker("delete.topic.enable=false")
    broker.topic()
    (result,) = delete(broker, version, "t")
    expected = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
    assert result.error_code == expected
    assert list(broker.broker.cluster.topics) == ["t"]


def test_one_topic_that_fails_keeps_no_other_from_being_deleted() -> None:
    broker = VirtualBroker()
    broker.topic("a")
    broker.topic("b")
    results = delete(broker, 5, "a", "nowhere", "b")
    assert {result.name: result.error_code for result in results} == {"a": 0, "nowhere": 3, "b": 0}
