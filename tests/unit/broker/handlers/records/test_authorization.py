"""Records that must not be written or read: what is answered for them, and that all others are as ever."""

from typing import Any

from sluice.broker.security.acl.acl import Acl, AclOperation, ResourceType
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.errors import ErrorCode
from tests.support.acls import acl, alice, secured_broker
from tests.support.records import batch, fetch, fetched, produce
from tests.support.transactions import init_request, produce_request
from tests.support.virtual_broker import VirtualBroker

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
READ_T, WRITE_T = acl(AclOperation.READ), acl(AclOperation.WRITE)
WRITE_TX = acl(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx")
NOBODYS_ID = b"?" * 16


def broker_with(*entries: Acl) -> VirtualBroker:
    """One with topics "t" and "secret", and what alice may do."""
    broker = secured_broker()
    broker.topic()
    broker.topic("secret")
    broker.broker.cluster.acls.create(entries)
    return broker


def codes(response: Any) -> dict[str, int]:
    """The error code of each topic's one partition."""
    return {topic.name: partition.error_code for topic in response.responses for partition in topic.partition_responses}


# -- writing -----------------------------------------------------------------------------------------------------------


def produce_to(*names: str) -> ProduceRequest:
    request = produce(12)
    request.topic_data = [
        TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=batch())]) for name in names
    ]
    return request


def test_what_may_be_written_is_written_and_of_the_rest_nobody_learns_whether_it_is_there() -> None:
    broker = broker_with(WRITE_T)
    answer = alice(broker).ask(produce_to("t", "secret", "none"), 12)
    assert codes(answer) == {"t": 0, "secret": DENIED, "none": DENIED}
    assert (broker.partition().log.log_end_offset, broker.partition("secret").log.log_end_offset) == (1, 0)


def test_a_single_batch_is_asked_about_too() -> None:
    broker = broker_with()
    assert codes(alice(broker).ask(produce_to("secret"), 12)) == {"secret": DENIED}
    assert broker.partition("secret").log.log_end_offset == 0


def test_an_id_that_nobody_has_is_unknown_to_whoever_asks() -> None:
    broker = broker_with()
    answer = alice(broker).ask(produce(13, topic_id=NOBODYS_ID), 13)
    (topic,) = answer.responses
    assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_without_an_answer_the_connection_is_closed() -> None:
    broker = broker_with()
    request = produce_to("secret")
    request.acks = 0
    client = alice(broker)
    client.send(request, 12)
    assert (client.take_answers(), client.is_open) == ([], False)


def transactional_produce(broker: VirtualBroker) -> dict[str, int]:
    assert not broker.client().ask(init_request(), 5).error_code
    return codes(alice(broker).ask(produce_request(12, 0, 0), 12))


def test_a_transactional_write_needs_its_transactional_id() -> None:
    broker = broker_with(WRITE_T)
    assert transactional_produce(broker) == {"t": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


def test_a_topic_that_must_not_be_written_is_not_added_to_the_transaction() -> None:
    broker = broker_with(WRITE_TX)
    assert transactional_produce(broker) == {"t": DENIED}
    transaction = broker.broker.transactions.get("tx")
    assert transaction is not None
    assert transaction.partitions == set()


def test_with_both_the_transactional_write_is_done() -> None:
    assert transactional_produce(broker_with(WRITE_T, WRITE_TX)) == {"t": 0}


# -- reading -----------------------------------------------------------------------------------------------------------


def fetch_of(*names: str, **fields: Any) -> FetchRequest:
    topics = [
        FetchTopic(topic=name, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)]) for name in names
    ]
    known: dict[str, Any] = {"max_bytes": 1 << 20, "topics": topics}
    return FetchRequest(**(known | fields))


def fetch_codes(response: Any) -> dict[str, int]:
    return {topic.topic: partition.error_code for topic in response.responses for partition in topic.partitions}


def test_what_may_be_read_is_read_and_of_the_rest_nobody_learns_whether_it_is_there() -> None:
    broker = broker_with(READ_T)
    broker.client().ask(produce_to("t", "secret"), 12)
    answer = alice(broker).ask(fetch_of("secret", "none", "t"), 12)
    assert fetch_codes(answer) == {"t": 0, "secret": DENIED, "none": DENIED}
    assert [bool(topic.partitions[0].records) for topic in answer.responses] == [True, False, False]


def test_what_must_not_be_read_is_no_reason_to_answer_before_there_are_records() -> None:
    broker = broker_with(READ_T)
    client = alice(broker)
    client.send(fetch_of("t", "secret", min_bytes=1, max_wait_ms=500), 12)
    assert client.take_answers() == []
    broker.client().ask(produce_to("t"), 12)
    assert fetch_codes(client.answer().message) == {"t": 0, "secret": DENIED}


def test_if_nothing_may_be_read_the_answer_comes_at_once() -> None:
    client = alice(broker_with())
    assert fetch_codes(client.ask(fetch_of("t", min_bytes=1, max_wait_ms=500), 12)) == {"t": DENIED}


def test_a_session_follows_the_entries() -> None:
    broker = broker_with(READ_T)
    client, acls = alice(broker), broker.broker.cluster.acls
    opened = client.ask(fetch_of("t", session_epoch=0), 12)
    told = [fetch_codes(opened)]
    for epoch, change in enumerate((acls.delete, None, acls.create, None), 1):
        if change is not None:
            change([READ_T])
        answer = client.ask(fetch_of(session_id=opened.session_id, session_epoch=epoch), 12)
        told.append(fetch_codes(answer))
    assert told == [{"t": 0}, {"t": DENIED}, {"t": DENIED}, {"t": 0}, {}]


def test_by_id_it_is_the_name_that_counts() -> None:
    broker = broker_with(READ_T)
    by_id = {name: broker.broker.cluster.topics[name].topic_id for name in ("t", "secret")} | {"none": NOBODYS_ID}
    client = alice(broker)
    answers = {name: fetched(client.ask(fetch(topic_id=id_), 18)).error_code for name, id_ in by_id.items()}
    assert answers == {"t": 0, "secret": DENIED, "none": ErrorCode.UNKNOWN_TOPIC_ID}


# -- what is told of topics --------------------------------------------------------------------------------------------


def test_offsets_are_listed_of_no_topic_that_the_client_must_not_know_of() -> None:
    broker = broker_with(acl(AclOperation.DESCRIBE))
    wanted = [
        ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
        for name in ("t", "secret", "none")
    ]
    for version in (0, 5):
        answer = alice(broker).ask(ListOffsetsRequest(replica_id=-1, topics=wanted), version)
        listed = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
        assert listed == {"t": 0, "secret": DENIED, "none": DENIED}, f"version {version}"


def test_topics_are_told_of_by_name_and_id_and_created_as_far_as_the_client_may() -> None:
    broker = broker_with(
        acl(AclOperation.DESCRIBE), acl(AclOperation.DESCRIBE, name="new"), acl(AclOperation.ALL, name="mine")
    )
    topics = broker.broker.cluster.topics
    wanted = [MetadataRequestTopic(name=name) for name in ("t", "secret", "none", "new", "mine")]
    wanted += [MetadataRequestTopic(name=None, topic_id=id_) for id_ in (topics["secret"].topic_id, NOBODYS_ID)]
    answer = alice(broker).ask(MetadataRequest(topics=wanted), 12)
    assert [(topic.name, topic.error_code, topic.topic_id != bytes(16)) for topic in answer.topics] == [
        ("t", 0, True),
        ("secret", DENIED, False),
        ("none", DENIED, False),
        ("new", DENIED, False),
        ("mine", 0, True),
        (None, DENIED, True),
        (None, ErrorCode.UNKNOWN_TOPIC_ID, True),
    ]
    assert sorted(topics) == ["mine", "secret", "t"]
