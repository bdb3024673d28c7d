"""Produce with transactional records: what is verified or added first, and what each version is told (KIP-890)."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import TRANSACTION_STATE_TOPIC
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
from tests.support.virtual_broker import Client, VirtualBroker

BY_NAME = range(3, 13)  # versions with transactions and topic names
ADDS_SINCE = 12
PRODUCER_ID_AT = 43  # in a batch


def codes(answer: Any) -> list[int]:
    """The error of each partition."""
    return [one.error_code for topic in answer.responses for one in topic.partition_responses]


def initialized(*overrides: str, partitions: int = 1) -> tuple[VirtualBroker, Client]:
    """The id "tx" has producer 0 in epoch 0, and no transaction."""
    broker = VirtualBroker(*overrides)
    broker.topic(partitions=partitions)
    client = broker.client()
    client.ask(init_request(), 5)
    return broker, client


# -- partitions that are not in the transaction ------------------------------------------------------------------------


@pytest.mark.parametrize("version", BY_NAME)
def test_a_partition_that_was_not_added_is_refused_or_added(version: int) -> None:
    broker, client = initialized()
    (answer,) = client.ask(produce_request(version, 0, 0), version).responses[0].partition_responses
    if version >= ADDS_SINCE:
        assert answer.error_code == 0
        metadata = broker.broker.transactions.get("tx")
        assert metadata is not None
        assert (metadata.state.label, set(metadata.partitions)) == ("Ongoing", {("t", 0)})
    else:
        knows_abortable = version >= 11
        expected = ErrorCode.TRANSACTION_ABORTABLE if knows_abortable else ErrorCode.INVALID_TXN_STATE
        assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (expected, -1, -1)
        assert stored(broker) == []
        if 8 <= version < 11:
            assert answer.error_message == "Partition was not added to the transaction"


@pytest.mark.parametrize("version", [*BY_NAME, 13])
def test_a_partition_that_was_added_is_written_to(version: int) -> None:
    broker, client = initialized()
    client.ask(add_request(3, 0, 0), 3)
    topic_id = broker.broker.cluster.topics["t"].topic_id
    for sequence in range(2):
        assert codes(client.ask(produce_request(version, 0, 0, sequence, topic_id=topic_id), version)) == [0]
    log = broker.partition().log
    assert (log.log_end_offset, log.last_stable_offset) == (2, 0)


@pytest.mark.parametrize("version", BY_NAME)
@pytest.mark.parametrize(
    ("transactional_id", "producer_id", "epoch", "code"),
    [
        pytest.param("nobody", 0, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING, id="id that nobody has"),
        pytest.param("tx", 7, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING, id="another producer's"),
        pytest.param("tx", 0, 1, ErrorCode.INVALID_PRODUCER_EPOCH, id="epoch to come"),
        pytest.param("", 0, 0, ErrorCode.INVALID_REQUEST, id="empty id"),
    ],
)
def test_who_writes_must_be_the_producer_of_the_id(
    version: int, transactional_id: str, producer_id: int, epoch: int, code: ErrorCode
) -> None:
    broker, client = initialized()
    request = produce_request(version, producer_id, epoch, transactional_id=transactional_id)
    assert codes(client.ask(request, version)) == [code]
    assert stored(broker) == []


@pytest.mark.parametrize("version", BY_NAME)
def test_an_epoch_that_is_over_is_known_to_the_partition(version: int) -> None:
    broker = VirtualBroker()
    broker.topic()
    begun(broker)
    for _ in range(2):
        Producer(broker).init()
    assert codes(broker.client().ask(produce_request(version, 0, 0, 1), version)) == [ErrorCode.INVALID_PRODUCER_EPOCH]


@pytest.mark.parametrize("version", range(3, 12))
def test_without_verification_whatever_comes_is_written(version: int) -> None:
    _broker, client = initialized("transaction.partition.verification.enable=false")
    assert codes(client.ask(produce_request(version, 0, 0), version)) == [0]


def test_a_partition_is_added_whether_others_are_verified_or_not() -> None:
    broker, client = initialized("transaction.partition.verification.enable=false")
    assert codes(client.ask(produce_request(12, 0, 0), 12)) == [0]
    metadata = broker.broker.transactions.get("tx")
    assert metadata is not None
    assert set(metadata.partitions) == {("t", 0)}


# -- whole requests ----------------------------------------------------------------------------------------------------


def many(*records: bytes, transactional_id: str | None = "tx", acks: int = 1) -> ProduceRequest:
    """One batch for each of the first partitions of "t"."""
    data = [PartitionProduceData(index=index, records=one) for index, one in enumerate(records)]
    topic_data = [TopicProduceData(name="t", partition_data=data)]
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=30_000, topic_data=topic_data)


def of_producer(producer_id: int, *, epoch: int = 0, sequence: int = 0) -> bytes:
    return batch(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True)


@pytest.mark.parametrize("version", BY_NAME)
def test_transactional_records_without_an_id_are_not_authorized_nor_is_what_comes_with_them(version: int) -> None:
    broker, client = initialized(partitions=2)
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert codes(client.ask(many(batch(), of_producer(0), transactional_id=None), version)) == [code, code]
    assert broker.partition().log.log_end_offset == 0


@pytest.mark.parametrize("version", BY_NAME)
def test_one_request_has_one_producer(version: int) -> None:
    broker, client = initialized(partitions=3)
    answer = client.ask(many(of_producer(0), of_producer(7), batch()), version)
    assert codes(answer) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 3
    if version >= 8:
        told = answer.responses[0].partition_responses[0].error_message
        assert told == "Transactional records contained more than one producer ID"
    assert broker.partition("t", 2).log.log_end_offset == 0


@pytest.mark.parametrize(("version", "code"), [(10, 48), (11, 120), (12, 0)])
def test_each_partition_is_verified_for_itself(version: int, code: int) -> None:
    _broker, client = initialized(partitions=4)
    client.ask(add_request(3, 0, 0, (("t", 1),)), 3)
    request = many(of_producer(0), of_producer(0), batch(), b"broken")
    corrupt = ErrorCode.INVALID_RECORD
    assert codes(client.ask(request, version)) == [code, 0, 0, corrupt]


def test_records_that_are_not_transactional_need_no_transaction() -> None:
    _broker, client = initialized()
    assert codes(client.ask(many(batch()), 9)) == [0]


@pytest.mark.parametrize("version", range(3))
def test_bytes_of_old_message_sets_are_no_flag(version: int) -> None:
    broker = VirtualBroker()
    broker.topic()
    record = Record(0, 0x10 << 24, b"\x10", b"v")  # magic 1 has its timestamp there, magic 0 the key
    data = build_message_set([record], 1 if version == 2 else 0)
    assert data[ATTRIBUTES_AT + 1] == TRANSACTIONAL_FLAG
    assert codes(broker.client().ask(produce(version, data), version)) == [0]


@pytest.mark.parametrize(
    ("records", "transactional_id"),
    [((of_producer(0),), None), ((of_producer(0), of_producer(7)), "tx"), ((of_producer(0),), "tx")],
    ids=["no id", "two producers", "a partition that was not added"],
)
def test_without_an_answer_the_client_loses_its_connection(
    records: tuple[bytes, ...], transactional_id: str | None
) -> None:
    _, client = initialized(partitions=2)
    client.send(many(*records, transactional_id=transactional_id, acks=0), 9)
    assert not client.is_open


# -- while the transaction before is being completed -------------------------------------------------------------------

Prepare = Callable[[VirtualBroker], None]


def completing(*overrides: str) -> tuple[VirtualBroker, Client]:
    """A transaction of epoch 0 whose marker is with the replicas in `sluice.replication.delay.ms`: 1000 if not said."""
    broker = VirtualBroker("sluice.replication.delay.ms=1000", *overrides)
    broker.topic(partitions=2)
    client = broker.client()
    for request, version in ((init_request(), 5), (add_request(3, 0, 0), 3), (end_request(0, 0), 5)):
        client.send(request, version)
        broker.advance(1000)
        assert client.answer().message is not None
    return broker, client


@pytest.mark.parametrize(("version", "code"), [(3, 19), (10, 19), (11, 19), (12, 51)])
def test_a_client_is_told_to_try_again_in_words_that_it_knows(version: int, code: int) -> None:
    broker, client = completing()
    started_ms = broker.now_ms
    client.send(produce_request(version, 0, 1), version)
    broker.advance(200)
    answer = client.answer()
    assert codes(answer.message) == [code]
    waited_ms = 100 if version >= ADDS_SINCE else 0
    assert answer.at_ms == started_ms + waited_ms, "what adds partitions is tried for 100 ms"
    if 8 <= version < ADDS_SINCE:
        assert answer.message.responses[0].partition_responses[0].error_message == (
            "Unable to verify the partition has been added to the transaction. Underlying error: "
            "CONCURRENT_TRANSACTIONS"
        )


def test_a_write_that_adds_its_partition_is_tried_until_the_transaction_before_is_complete() -> None:
    broker, client = completing()
    broker.advance(1970)  # complete in 30 ms
    value = b"kept while it waits"
    client.send_together((produce_request(12, 0, 1, 0, value, acks=-1), 12), (init_request("other"), 5))
    broker.advance(39)
    assert client.take_answers() == []
    assert broker.broker.transactions.get("tx").state.label == "CompleteCommit"  # type: ignore[union-attr]
    broker.advance(1)  # tried again after 20 and 40 ms; now the new transaction is written down
    broker.advance(1000)
    assert stored(broker)[-1][1] == [value]
    assert client.take_answers() == [], "the record itself is not with its replicas"
    broker.advance(1000)
    first, *_ = client.take_answers()
    assert codes(first.message) == [0]


def test_nothing_is_written_for_a_client_that_left_while_it_waited() -> None:
    broker, client = completing()
    end = broker.partition().log.log_end_offset
    broker.advance(1970)
    client.send(produce_request(12, 0, 1), 12)
    client.leave()
    broker.advance(5000)
    assert broker.partition().log.log_end_offset == end


def test_a_partition_that_is_in_the_transaction_waits_for_those_that_are_not() -> None:
    broker, client = initialized("sluice.replication.delay.ms=0", partitions=2)
    client.ask(produce_request(12, 0, 0), 12)
    entry = broker.broker.transactions._entries["tx"]
    entry.pending = entry.current.state  # some step is being written down
    client.send(many(of_producer(0, sequence=1), of_producer(0)), 12)
    assert client.take_answers() == []
    entry.pending = None
    broker.advance(20)
    assert codes(client.answer().message) == [0, 0]


# -- the lowest sequence that was asked about --------------------------------------------------------------------------


def test_a_later_batch_is_not_stored_before_the_first_that_was_asked_about() -> None:
    broker, client = initialized()
    entry = broker.broker.transactions._entries["tx"]
    client.ask(add_request(3, 0, 0), 3)
    entry.current = replace(entry.current, partitions=frozenset())  # so that the first is refused
    assert codes(client.ask(produce_request(11, 0, 0, 0), 11)) == [ErrorCode.TRANSACTION_ABORTABLE]
    client.ask(add_request(3, 0, 0), 3)
    assert codes(client.ask(produce_request(11, 0, 0, 1), 11)) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert codes(client.ask(produce_request(11, 0, 0, 0), 11)) == [0]
    assert codes(client.ask(produce_request(11, 0, 0, 1), 11)) == [0]


@pytest.mark.parametrize(("versions", "code"), [(LEGACY, 0), (NEW, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)])
def test_a_transaction_of_version_2_begins_with_sequence_0(versions: dict[str, int], code: int) -> None:
    _broker, client = initialized()
    if versions is LEGACY:
        client.ask(add_request(3, 0, 0), 3)
    assert codes(client.ask(produce_request(versions["produce"], 0, 0, 5), versions["produce"])) == [code]


def test_a_repeat_in_the_transaction_is_answered_as_the_first_was() -> None:
    broker, client = initialized()
    for _ in range(2):
        (answer,) = client.ask(produce_request(12, 0, 0, 0, b"a", b"b"), 12).responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (0, 0)
    assert broker.partition().log.log_end_offset == 2


@pytest.mark.parametrize("version", [11, 12])
def test_without_a_producer_id_there_is_nobody_to_verify(version: int) -> None:
    broker, client = initialized()
    data = bytearray(of_producer(0))
    data[PRODUCER_ID_AT : PRODUCER_ID_AT + 14] = b"\xff" * 14  # id, epoch and sequence: none
    stamp_checksum(data)
    assert codes(client.ask(many(bytes(data)), version)) == [0]
    log = broker.partition().log
    assert (log.log_end_offset, log.last_stable_offset) == (1, 1)


def test_who_waits_for_records_reads_those_that_had_to_wait_for_a_coordinator_elsewhere() -> None:
    """They are appended without a request that ends just then, and no replica has to have them first."""
    overrides = ("sluice.brokers=3", "sluice.replication.delay.ms=100", "transaction.state.log.num.partitions=1")
    cluster = VirtualBroker(*overrides)
    cluster.cluster.create(NewTopic("t", assignments={0: (1,)}))
    cluster.cluster.internal_topic(TRANSACTION_STATE_TOPIC)
    cluster.cluster_server.move_leader(TRANSACTION_STATE_TOPIC, 0, 2)
    coordinated, producer, consumer = (cluster.client(node_id=node_id) for node_id in (2, 1, 1))
    coordinated.send(init_request(), 5)
    cluster.advance(100)
    told = coordinated.answer().message
    consumer.send(fetch(0, max_wait_ms=10_000, min_bytes=1), 12)
    producer.send(produce_request(12, told.producer_id, told.producer_epoch), 12)
    cluster.advance(99)
    assert consumer.answers == producer.answers == []
    cluster.advance(1)
    assert codes(producer.answer().message) == [0]
    assert fetched_bytes(consumer.answer().message)
