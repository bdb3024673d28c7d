"""Transactional Produce: partition verification and adding, and the error codes per version (KIP-890)."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from sluice.broker.coordinator.common.coordinator_log import coordinator_of
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import TRANSACTION_STATE_TOPIC, Topic, TopicPartition
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import ATTRIBUTES_AT, TRANSACTIONAL_FLAG
from sluice.protocol.records.build import stamp_checksum
from sluice.protocol.records.legacy import build_message_set
from sluice.protocol.records.record import Record
from tests.support.records import batch, fetch, fetched_bytes, produce
from tests.support.transactions import (
    LEGACY,
    NEW,
    Producer,
    add_request,
    begun,
    end_request,
    init_request,
    produce_request,
    stored,
)
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic

BY_NAME = range(3, 13)  # versions with transactions and topic names
ADDS_SINCE = 12
PRODUCER_ID_AT = 43  # in a batch


def codes(response: Any) -> list[int]:
    """Return the error code of each partition."""
    return [partition.error_code for topic in response.responses for partition in topic.partition_responses]


def transaction(broker: VirtualBroker) -> tuple[str, set[TopicPartition]]:
    metadata = broker.broker.transactions.get("tx")
    assert metadata is not None
    return metadata.state.label, set(metadata.partitions)


def initialized(*overrides: str, partitions: int = 1) -> tuple[VirtualBroker, Client]:
    """Return a broker where "tx" has producer id 0, epoch 0 and no transaction, and a client."""
    broker = broker_with_topic(*overrides, partitions=partitions)
    client = broker.client()
    client.call(init_request(), 5)
    return broker, client


# -- partitions outside the transaction --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", BY_NAME)
def test_partition_outside_the_transaction_is_rejected_or_added(version: int) -> None:
    broker, client = initialized()
    (response,) = client.call(produce_request(version, 0, 0), version).responses[0].partition_responses
    if version >= ADDS_SINCE:
        assert response.error_code == 0
        assert transaction(broker) == ("Ongoing", {("t", 0)})
    else:
        expected = ErrorCode.TRANSACTION_ABORTABLE if version >= 11 else ErrorCode.INVALID_TXN_STATE
        assert (response.error_code, response.base_offset, response.log_start_offset) == (expected, -1, -1)
        assert stored(broker) == []
        if 8 <= version < 11:
            assert response.error_message == "Partition was not added to the transaction"


@pytest.mark.parametrize("version", [*BY_NAME, 13])
def test_partition_in_the_transaction_accepts_records(version: int) -> None:
    broker, client = initialized()
    client.call(add_request(3, 0, 0), 3)
    topic_id = broker.broker.cluster.topics["t"].topic_id
    for sequence in range(2):
        assert codes(client.call(produce_request(version, 0, 0, sequence, topic_id=topic_id), version)) == [0]
    log = broker.partition().log
    assert (log.log_end_offset, log.last_stable_offset) == (2, 0)


PRODUCERS = {
    "unknown transactional id": ("unknown", 0, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    "other producer id": ("tx", 7, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    "newer epoch": ("tx", 0, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
    "empty transactional id": ("", 0, 0, ErrorCode.INVALID_REQUEST),
}


@pytest.mark.parametrize("version", BY_NAME)
@pytest.mark.parametrize(("transactional_id", "producer_id", "epoch", "code"), PRODUCERS.values(), ids=PRODUCERS)
def test_produce_requires_the_producer_of_the_transactional_id(
    version: int, transactional_id: str, producer_id: int, epoch: int, code: ErrorCode
) -> None:
    broker, client = initialized()
    request = produce_request(version, producer_id, epoch, transactional_id=transactional_id)
    assert codes(client.call(request, version)) == [code]
    assert stored(broker) == []


@pytest.mark.parametrize("version", BY_NAME)
def test_older_epoch_is_rejected_by_the_partition(topic: Topic, broker: VirtualBroker, version: int) -> None:
    begun(broker)
    for _ in range(2):
        Producer(broker).init()
    assert codes(broker.client().call(produce_request(version, 0, 0, 1), version)) == [ErrorCode.INVALID_PRODUCER_EPOCH]


@pytest.mark.parametrize("version", range(3, 12))
def test_produce_without_verification_needs_no_transaction(version: int) -> None:
    _, client = initialized("transaction.partition.verification.enable=false")
    assert codes(client.call(produce_request(version, 0, 0), version)) == [0]


def test_version_12_adds_the_partition_even_without_verification() -> None:
    broker, client = initialized("transaction.partition.verification.enable=false")
    assert codes(client.call(produce_request(12, 0, 0), 12)) == [0]
    assert transaction(broker) == ("Ongoing", {("t", 0)})


# -- whole requests ----------------------------------------------------------------------------------------------------


def many(*records: bytes, transactional_id: str | None = "tx", acks: int = 1) -> ProduceRequest:
    """Return a request with one batch for each of the first partitions of "t"."""
    data = [PartitionProduceData(index=index, records=item) for index, item in enumerate(records)]
    topic_data = [TopicProduceData(name="t", partition_data=data)]
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=30_000, topic_data=topic_data)


def of_producer(producer_id: int, *, epoch: int = 0, sequence: int = 0) -> bytes:
    return batch(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True)


@pytest.mark.parametrize("version", BY_NAME)
def test_transactional_records_without_a_transactional_id_fail_the_whole_request(version: int) -> None:
    broker, client = initialized(partitions=2)
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert codes(client.call(many(batch(), of_producer(0), transactional_id=None), version)) == [code, code]
    assert broker.partition().log.log_end_offset == 0


@pytest.mark.parametrize("version", BY_NAME)
def test_several_producer_ids_fail_the_whole_request(version: int) -> None:
    broker, client = initialized(partitions=3)
    response = client.call(many(of_producer(0), of_producer(7), batch()), version)
    assert codes(response) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 3
    if version >= 8:
        message = response.responses[0].partition_responses[0].error_message
        assert message == "Transactional records contained more than one producer ID"
    assert broker.partition("t", 2).log.log_end_offset == 0


@pytest.mark.parametrize(("version", "code"), [(10, 48), (11, 120), (12, 0)])
def test_partitions_are_verified_independently(version: int, code: int) -> None:
    _, client = initialized(partitions=4)
    client.call(add_request(3, 0, 0, (("t", 1),)), 3)
    request = many(of_producer(0), of_producer(0), batch(), b"broken")
    assert codes(client.call(request, version)) == [code, 0, 0, ErrorCode.INVALID_RECORD]


def test_non_transactional_records_need_no_transaction() -> None:
    _, client = initialized()
    assert codes(client.call(many(batch()), 9)) == [0]


@pytest.mark.parametrize("version", range(3))
def test_old_message_sets_are_never_transactional(topic: Topic, broker: VirtualBroker, version: int) -> None:
    # At the offset of the attributes, magic 1 has its timestamp and magic 0 its key.
    record = Record(0, 0x10 << 24, b"\x10", b"v")
    data = build_message_set([record], 1 if version == 2 else 0)
    assert data[ATTRIBUTES_AT + 1] == TRANSACTIONAL_FLAG
    assert codes(broker.client().call(produce(version, data), version)) == [0]


@pytest.mark.parametrize(
    ("records", "transactional_id"),
    [((of_producer(0),), None), ((of_producer(0), of_producer(7)), "tx"), ((of_producer(0),), "tx")],
    ids=["no transactional id", "two producers", "partition outside the transaction"],
)
def test_rejected_produce_with_acks_0_closes_the_connection(
    records: tuple[bytes, ...], transactional_id: str | None
) -> None:
    _, client = initialized(partitions=2)
    client.send(many(*records, transactional_id=transactional_id, acks=0), 9)
    assert not client.is_open


# -- while the previous transaction completes --------------------------------------------------------------------------

Prepare = Callable[[VirtualBroker], None]


def completing(*overrides: str) -> tuple[VirtualBroker, Client]:
    """Return a broker whose transaction of epoch 0 waits for the replicas of its marker (1000 ms by default)."""
    broker = broker_with_topic("sluice.replication.delay.ms=1000", *overrides, partitions=2)
    client = broker.client()
    for request, version in ((init_request(), 5), (add_request(3, 0, 0), 3), (end_request(0, 0), 5)):
        client.send(request, version)
        broker.advance(1000)
        assert client.response().message is not None
    return broker, client


@pytest.mark.parametrize(("version", "code"), [(3, 19), (10, 19), (11, 19), (12, 51)])
def test_completing_transaction_returns_a_retriable_error_of_the_version(version: int, code: int) -> None:
    broker, client = completing()
    started_ms = broker.now_ms
    client.send(produce_request(version, 0, 1), version)
    broker.advance(200)
    response = client.response()
    assert codes(response.message) == [code]
    waited_ms = 100 if version >= ADDS_SINCE else 0
    assert response.at_ms == started_ms + waited_ms, "versions that add partitions retry for 100 ms"
    if 8 <= version < ADDS_SINCE:
        assert response.message.responses[0].partition_responses[0].error_message == (
            "Unable to verify the partition has been added to the transaction. Underlying error: "
            "CONCURRENT_TRANSACTIONS"
        )


def test_produce_that_adds_its_partition_retries_until_the_transaction_completes() -> None:
    broker, client = completing()
    broker.advance(1970)  # completes in 30 ms
    value = b"kept while it waits"
    client.send_together((produce_request(12, 0, 1, 0, value, acks=-1), 12), (init_request("other"), 5))
    broker.advance(39)
    assert client.take_responses() == []
    assert transaction(broker)[0] == "CompleteCommit"
    broker.advance(1)  # retried after 20 and 40 ms; now the new transaction is appended
    broker.advance(1000)
    assert stored(broker)[-1][1] == [value]
    assert client.take_responses() == [], "the record is not replicated yet"
    broker.advance(1000)
    first, *_ = client.take_responses()
    assert codes(first.message) == [0]


def test_pending_produce_of_a_disconnected_client_appends_nothing() -> None:
    broker, client = completing()
    end = broker.partition().log.log_end_offset
    broker.advance(1970)
    client.send(produce_request(12, 0, 1), 12)
    client.leave()
    broker.advance(5000)
    assert broker.partition().log.log_end_offset == end


def test_partition_in_the_transaction_waits_for_those_that_are_added() -> None:
    broker, client = initialized("sluice.replication.delay.ms=0", partitions=2)
    client.call(produce_request(12, 0, 0), 12)
    entry = broker.broker.transactions._entries["tx"]
    entry.pending = entry.current.state  # a state change is being appended
    client.send(many(of_producer(0, sequence=1), of_producer(0)), 12)
    assert client.take_responses() == []
    entry.pending = None
    broker.advance(20)
    assert codes(client.response().message) == [0, 0]


# -- sequence numbers of verified producers ----------------------------------------------------------------------------


def test_later_batch_is_rejected_until_the_first_verified_batch_is_appended() -> None:
    broker, client = initialized()
    entry = broker.broker.transactions._entries["tx"]
    client.call(add_request(3, 0, 0), 3)
    entry.current = replace(entry.current, partitions=frozenset())  # the first batch must be rejected
    assert codes(client.call(produce_request(11, 0, 0, 0), 11)) == [ErrorCode.TRANSACTION_ABORTABLE]
    client.call(add_request(3, 0, 0), 3)
    assert codes(client.call(produce_request(11, 0, 0, 1), 11)) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert codes(client.call(produce_request(11, 0, 0, 0), 11)) == [0]
    assert codes(client.call(produce_request(11, 0, 0, 1), 11)) == [0]


@pytest.mark.parametrize(("versions", "code"), [(LEGACY, 0), (NEW, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)])
def test_transaction_version_2_must_start_with_sequence_0(versions: dict[str, int], code: int) -> None:
    _, client = initialized()
    if versions is LEGACY:
        client.call(add_request(3, 0, 0), 3)
    assert codes(client.call(produce_request(versions["produce"], 0, 0, 5), versions["produce"])) == [code]


def test_duplicate_batch_in_a_transaction_gets_the_same_response() -> None:
    broker, client = initialized()
    for _ in range(2):
        (response,) = client.call(produce_request(12, 0, 0, 0, b"a", b"b"), 12).responses[0].partition_responses
        assert (response.error_code, response.base_offset) == (0, 0)
    assert broker.partition().log.log_end_offset == 2


@pytest.mark.parametrize("version", [11, 12])
def test_batch_without_producer_id_is_not_verified(version: int) -> None:
    broker, client = initialized()
    data = bytearray(of_producer(0))
    data[PRODUCER_ID_AT : PRODUCER_ID_AT + 14] = b"\xff" * 14  # id, epoch and sequence: none
    stamp_checksum(data)
    assert codes(client.call(many(bytes(data)), version)) == [0]
    log = broker.partition().log
    assert (log.log_end_offset, log.last_stable_offset) == (1, 1)


def test_pending_fetch_returns_records_that_waited_for_a_remote_coordinator() -> None:
    """The records are appended outside a request, and wait for no replica."""
    overrides = ("sluice.brokers=3", "sluice.replication.delay.ms=100", "transaction.state.log.num.partitions=1")
    cluster = VirtualBroker(*overrides)
    cluster.cluster.create(NewTopic("t", assignments=((0, (1,)),)))
    cluster.cluster.internal_topic(TRANSACTION_STATE_TOPIC)
    cluster.cluster_server.move_leader(TRANSACTION_STATE_TOPIC, 0, 2)
    coordinator_client, producer, consumer = (cluster.client(node_id=node_id) for node_id in (2, 1, 1))
    coordinator_client.send(init_request(), 5)
    cluster.advance(100)
    response = coordinator_client.response().message
    consumer.send(fetch(0, max_wait_ms=10_000, min_bytes=1), 12)
    producer.send(produce_request(12, response.producer_id, response.producer_epoch), 12)
    cluster.advance(99)
    assert consumer.responses == producer.responses == []
    cluster.advance(1)
    assert codes(producer.response().message) == [0]
    assert fetched_bytes(consumer.response().message)


def test_other_broker_adds_no_partition_to_the_transaction() -> None:
    """Follows ReplicaManager.maybeStartTransactionVerificationForPartition."""
    broker = VirtualBroker("sluice.brokers=3")
    broker.topic(assignments={0: (1,)})
    coordinator = coordinator_of(broker.broker, TRANSACTION_STATE_TOPIC, "tx")
    assert coordinator is not None
    broker.client(node_id=coordinator.node_id).call(init_request(), 5)
    for version in (11, 12):
        response = broker.client(node_id=2).call(produce_request(version, 0, 0), version)
        assert codes(response) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert response.responses[0].partition_responses[0].current_leader.leader_id == 1
    metadata = coordinator.transactions.get("tx")
    assert metadata is not None
    assert (metadata.state.label, metadata.partitions) == ("Empty", frozenset())
