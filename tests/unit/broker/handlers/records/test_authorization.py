"""Topic authorization of Produce, Fetch, ListOffsets and Metadata: errors and unaffected topics."""

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
UNKNOWN_ID = b"?" * 16


def broker_with(*entries: Acl) -> VirtualBroker:
    broker = secured_broker()
    broker.topic()
    broker.topic("secret")
    broker.broker.cluster.acls.create(entries)
    return broker


def codes(response: Any) -> dict[str, int]:
    """Return the error code of the only partition of each topic."""
    return {topic.name: partition.error_code for topic in response.responses for partition in topic.partition_responses}


# -- Produce -----------------------------------------------------------------------------------------------------------


def produce_to(*names: str) -> ProduceRequest:
    request = produce(12)
    request.topic_data = [
        TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=batch())]) for name in names
    ]
    return request


def test_produce_hides_whether_unauthorized_topics_exist() -> None:
    broker = broker_with(WRITE_T)
    response = alice(broker).call(produce_to("t", "secret", "none"), 12)
    assert codes(response) == {"t": 0, "secret": DENIED, "none": DENIED}
    assert (broker.partition().log.log_end_offset, broker.partition("secret").log.log_end_offset) == (1, 0)


def test_single_batch_produce_is_authorized() -> None:
    broker = broker_with()
    assert codes(alice(broker).call(produce_to("secret"), 12)) == {"secret": DENIED}
    assert broker.partition("secret").log.log_end_offset == 0


def test_unknown_topic_id_is_reported_without_authorization() -> None:
    broker = broker_with()
    response = alice(broker).call(produce(13, topic_id=UNKNOWN_ID), 13)
    (topic,) = response.responses
    assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_unauthorized_produce_with_acks_0_closes_the_connection() -> None:
    broker = broker_with()
    request = produce_to("secret")
    request.acks = 0
    client = alice(broker)
    client.send(request, 12)
    assert (client.take_responses(), client.is_open) == ([], False)


def transactional_produce(broker: VirtualBroker) -> dict[str, int]:
    assert not broker.client().call(init_request(), 5).error_code
    return codes(alice(broker).call(produce_request(12, 0, 0), 12))


def test_transactional_produce_requires_access_to_the_transactional_id() -> None:
    broker = broker_with(WRITE_T)
    assert transactional_produce(broker) == {"t": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


def test_unauthorized_topic_is_not_added_to_the_transaction() -> None:
    broker = broker_with(WRITE_TX)
    assert transactional_produce(broker) == {"t": DENIED}
    transaction = broker.broker.transactions.get("tx")
    assert transaction is not None
    assert transaction.partitions == set()


def test_authorized_transactional_produce_succeeds() -> None:
    assert transactional_produce(broker_with(WRITE_T, WRITE_TX)) == {"t": 0}


# -- Fetch -------------------------------------------------------------------------------------------------------------


def fetch_of(*names: str, **fields: Any) -> FetchRequest:
    topics = [
        FetchTopic(topic=name, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)]) for name in names
    ]
    known: dict[str, Any] = {"max_bytes": 1 << 20, "topics": topics}
    return FetchRequest(**(known | fields))


def fetch_codes(response: Any) -> dict[str, int]:
    return {topic.topic: partition.error_code for topic in response.responses for partition in topic.partitions}


def test_fetch_hides_whether_unauthorized_topics_exist() -> None:
    broker = broker_with(READ_T)
    broker.client().call(produce_to("t", "secret"), 12)
    response = alice(broker).call(fetch_of("secret", "none", "t"), 12)
    assert fetch_codes(response) == {"t": 0, "secret": DENIED, "none": DENIED}
    assert [bool(topic.partitions[0].records) for topic in response.responses] == [True, False, False]


def test_unauthorized_topics_do_not_complete_a_pending_fetch() -> None:
    broker = broker_with(READ_T)
    client = alice(broker)
    client.send(fetch_of("t", "secret", min_bytes=1, max_wait_ms=500), 12)
    assert client.take_responses() == []
    broker.client().call(produce_to("t"), 12)
    assert fetch_codes(client.response().message) == {"t": 0, "secret": DENIED}


def test_fetch_of_only_unauthorized_topics_returns_immediately() -> None:
    client = alice(broker_with())
    assert fetch_codes(client.call(fetch_of("t", min_bytes=1, max_wait_ms=500), 12)) == {"t": DENIED}


def test_fetch_session_follows_acl_changes() -> None:
    broker = broker_with(READ_T)
    client, acls = alice(broker), broker.broker.cluster.acls
    opened = client.call(fetch_of("t", session_epoch=0), 12)
    received = [fetch_codes(opened)]
    for epoch, change in enumerate((acls.delete, None, acls.create, None), 1):
        if change is not None:
            change([READ_T])
        response = client.call(fetch_of(session_id=opened.session_id, session_epoch=epoch), 12)
        received.append(fetch_codes(response))
    assert received == [{"t": 0}, {"t": DENIED}, {"t": DENIED}, {"t": 0}, {}]


def test_fetch_by_topic_id_authorizes_the_topic_name() -> None:
    broker = broker_with(READ_T)
    by_id = {name: broker.broker.cluster.topics[name].topic_id for name in ("t", "secret")} | {"none": UNKNOWN_ID}
    client = alice(broker)
    responses = {name: fetched(client.call(fetch(topic_id=id_), 18)).error_code for name, id_ in by_id.items()}
    assert responses == {"t": 0, "secret": DENIED, "none": ErrorCode.UNKNOWN_TOPIC_ID}


# -- ListOffsets and Metadata ------------------------------------------------------------------------------------------


def test_list_offsets_hides_whether_unauthorized_topics_exist() -> None:
    broker = broker_with(acl(AclOperation.DESCRIBE))
    requested = [
        ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
        for name in ("t", "secret", "none")
    ]
    for version in (0, 5):
        response = alice(broker).call(ListOffsetsRequest(replica_id=-1, topics=requested), version)
        listed = {topic.name: topic.partitions[0].error_code for topic in response.topics}
        assert listed == {"t": 0, "secret": DENIED, "none": DENIED}, f"version {version}"


def test_metadata_describes_and_creates_only_authorized_topics() -> None:
    broker = broker_with(
        acl(AclOperation.DESCRIBE), acl(AclOperation.DESCRIBE, name="new"), acl(AclOperation.ALL, name="mine")
    )
    topics = broker.broker.cluster.topics
    names = [MetadataRequestTopic(name=name) for name in ("t", "secret", "none", "new", "mine")]
    ids = [MetadataRequestTopic(name=None, topic_id=id_) for id_ in (topics["secret"].topic_id, UNKNOWN_ID)]
    found = [topic for some in (names, ids) for topic in alice(broker).call(MetadataRequest(topics=some), 12).topics]
    assert [(topic.name, topic.error_code, topic.topic_id != bytes(16)) for topic in found] == [
        ("t", 0, True),
        ("secret", DENIED, False),
        ("none", DENIED, False),
        ("new", DENIED, False),
        ("mine", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),  # created
        (None, DENIED, True),
        (None, ErrorCode.UNKNOWN_TOPIC_ID, True),
    ]
    assert sorted(topics) == ["mine", "secret", "t"]
