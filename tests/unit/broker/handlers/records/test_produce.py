"""Produce: what is appended, what is answered, when acks=all is, and the errors."""

import pytest

from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.batch import CRC_AT, read_header
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.legacy import build_message_set
from sluice.protocol.records.record import Record
from sluice.protocol.types import ZERO_UUID
from tests.support.records import batch, batch_of, fetch, fetched_bytes, produce, records_for
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker

VERSIONS = range(14)
ALL = -1


def produced(response: Message) -> PartitionProduceResponse:
    """The answer for the one partition of a produce request."""
    (topic,) = getattr(response, "responses")  # noqa: B009  (of a Message, mypy knows no more)
    (answer,) = topic.partition_responses
    assert isinstance(answer, PartitionProduceResponse)
    return answer


# -- appending ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_the_base_offset_is_where_the_records_are(version: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    client = broker.client()
    for base_offset in (0, 3, 6):
        request = produce(version, records_for(version, b"a", b"b", b"c"), topic_id=topic.topic_id)
        answer = produced(client.ask(request, version))
        assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, base_offset, -1)
        assert answer.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_produced_in_any_version_is_stored_as_one_batch_of_magic_2(version: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    client = broker.client()
    client.ask(produce(version, records_for(version, b"a", None), topic_id=topic.topic_id), version)
    header = read_header(fetched_bytes(client.ask(fetch(0), 11)))
    assert (header.magic, header.last_offset, header.base_offset) == (2, 1, 0)


def test_a_topic_with_append_time_tells_it() -> None:
    broker = VirtualBroker()
    broker.topic(message_timestamp_type="LogAppendTime")
    broker.advance(1234)
    answer = produced(broker.client().ask(produce(9, batch(b"a", timestamp=5)), 9))
    assert answer.log_append_time_ms == WALL_START_MS + 1234


def test_partitions_succeed_and_fail_each_for_itself() -> None:
    broker = VirtualBroker()
    broker.topic(partitions=2)
    data = [PartitionProduceData(index=index, records=batch()) for index in (0, 7, 1)]
    response = broker.client().ask(
        ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=data)]), 9
    )
    assert [(one.index, one.error_code) for one in response.responses[0].partition_responses] == [
        (0, 0),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, 0),
    ]


# -- errors ------------------------------------------------------------------------------------------------------------


def corrupt() -> bytes:
    data = bytearray(batch(b"abc"))
    data[CRC_AT] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("request_", "version", "code"),
    [
        pytest.param(produce(9, corrupt()), 9, ErrorCode.CORRUPT_MESSAGE, id="bad CRC"),
        pytest.param(produce(9, batch_of(2_000)), 9, ErrorCode.MESSAGE_TOO_LARGE, id="over message.max.bytes"),
        pytest.param(produce(9, topic="nowhere"), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="unknown topic"),
        pytest.param(produce(9, partition=1), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="unknown partition"),
        pytest.param(produce(9, partition=-1), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="negative partition"),
        pytest.param(produce(13, topic_id=ZERO_UUID), 13, ErrorCode.UNKNOWN_TOPIC_ID, id="unknown topic id"),
        pytest.param(produce(9, acks=5), 9, ErrorCode.INVALID_REQUIRED_ACKS, id="acks=5"),
        pytest.param(produce(9, acks=-2), 9, ErrorCode.INVALID_REQUIRED_ACKS, id="acks=-2"),
        pytest.param(produce(9, b""), 9, ErrorCode.INVALID_RECORD, id="no batch"),
        pytest.param(produce(9, batch() + batch()), 9, ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(produce(9, records_for(2)), 9, ErrorCode.INVALID_RECORD, id="old message set in v9"),
        pytest.param(
            produce(6, batch(b"a", compression=4)),
            6,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            id="zstd before version 7",
        ),
        pytest.param(produce(9, batch(b"a", base_offset=0)[:-1]), 9, ErrorCode.INVALID_RECORD, id="cut batch"),
    ],
)
def test_an_error_is_kafka_s_and_nothing_is_appended(request_: ProduceRequest, version: int, code: ErrorCode) -> None:
    broker = VirtualBroker("message.max.bytes=1000")
    broker.topic()
    client = broker.client()
    answer = produced(client.ask(request_, version))
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert broker.partition().log.log_end_offset == 0
    assert client.is_open, "an error of a partition is no reason to close"


def test_a_record_too_new_is_named_with_the_reason_from_version_8_on() -> None:
    broker = VirtualBroker()
    broker.topic()
    future = WALL_START_MS + 7_200_000  # log.message.timestamp.after.max.ms is an hour
    answer = produced(broker.client().ask(produce(9, batch(b"a", timestamp=future)), 9))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [one.batch_index for one in answer.record_errors] == [0]
    assert answer.error_message


def test_min_insync_replicas_of_2_refuses_acks_all_with_19_and_no_other() -> None:
    broker = VirtualBroker("min.insync.replicas=2")
    broker.topic()
    broker.partition().replicas = (1, 2)  # of which one is in sync
    client = broker.client()
    assert produced(client.ask(produce(9, acks=ALL), 9)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert broker.partition().log.log_end_offset == 0
    assert produced(client.ask(produce(9, acks=1), 9)).error_code == 0


def test_a_partition_of_one_replica_needs_no_more_than_that_in_sync() -> None:
    broker = VirtualBroker("min.insync.replicas=2")
    broker.topic()
    assert produced(broker.client().ask(produce(9, acks=ALL), 9)).error_code == 0


def test_without_enough_replicas_it_is_told_where_the_log_starts() -> None:
    broker = VirtualBroker()
    log = broker.topic(min_insync_replicas="2").partitions[0].log
    broker.partition().replicas = (1, 2)
    client = broker.client()
    client.ask(produce(9), 9)
    log.delete_records_before(1)
    assert produced(client.ask(produce(9, acks=ALL), 9)).log_start_offset == 1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
@pytest.mark.parametrize(
    ("client_id", "code"),
    [("client", ErrorCode.INVALID_TOPIC_EXCEPTION), (None, ErrorCode.INVALID_TOPIC_EXCEPTION), ("__admin_client", 0)],
)
def test_the_coordinators_topics_are_not_for_clients(version: int, name: str, client_id: str | None, code: int) -> None:
    broker = VirtualBroker()
    topic = broker.broker.cluster.internal_topic(name)
    keyed = [Record(0, WALL_START_MS, b"key", b"value")]
    records = build_batch(keyed) if version >= 3 else build_message_set(keyed, 1 if version == 2 else 0)
    request = produce(version, records, topic=name, topic_id=topic.topic_id)
    answer = produced(broker.client(client_id).ask(request, version))
    assert (answer.error_code, answer.log_start_offset) == (code, -1 if code or version < 5 else 0)
    assert topic.partitions[0].log.log_end_offset == (0 if code else 1)


def test_what_is_wrong_with_records_is_told_before_what_is_wrong_with_acks() -> None:
    broker = VirtualBroker()
    broker.topic()
    answer = produced(broker.client().ask(produce(9, b"", acks=5), 9))
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_RECORD, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_of_a_partition_that_comes_twice_the_last_records_count(version: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic(partitions=2)
    sent = [(0, b"a"), (1, b"b"), (0, b"c")]
    data = [PartitionProduceData(index=index, records=records_for(version, value)) for index, value in sent]
    topics = [
        TopicProduceData(name="t", topic_id=topic.topic_id, partition_data=items) for items in (data[:2], data[2:])
    ]
    client = broker.client()
    (answered,) = client.ask(ProduceRequest(acks=1, topic_data=topics), version).responses
    assert [(one.index, one.error_code, one.base_offset) for one in answered.partition_responses] == [
        (0, 0, 0),
        (1, 0, 0),
    ]
    assert b"c" in fetched_bytes(client.ask(fetch(0), 11))


def test_produce_creates_no_topic() -> None:
    broker = VirtualBroker("auto.create.topics.enable=true")
    broker.client().ask(produce(9, topic="nowhere"), 9)
    assert broker.broker.cluster.topics == {}


# -- idempotence -------------------------------------------------------------------------------------------------------


def sequenced(sequence: int, *, epoch: int = 0, records: int = 1, producer_id: int = 0) -> bytes:
    return batch(*[b"v"] * records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def test_a_batch_that_comes_twice_is_stored_once_and_answered_alike() -> None:
    broker = VirtualBroker()
    broker.topic()
    client = broker.client()
    producer_id = client.ask(InitProducerIdRequest(transactional_id=None), 4).producer_id
    client.ask(produce(9, batch()), 9)
    for _ in range(3):
        answer = produced(client.ask(produce(9, sequenced(0, records=2, producer_id=producer_id)), 9))
        assert (answer.error_code, answer.base_offset) == (0, 1)
    assert broker.partition().log.log_end_offset == 3


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(sequenced(2, epoch=1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="gap"),
        pytest.param(sequenced(1, epoch=0), ErrorCode.INVALID_PRODUCER_EPOCH, id="older epoch"),
        pytest.param(sequenced(1, epoch=2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="new epoch not from 0"),
    ],
)
def test_a_sequence_that_does_not_follow_is_refused(data: bytes, code: ErrorCode) -> None:
    broker = VirtualBroker()
    broker.topic()
    client = broker.client()
    assert produced(client.ask(produce(9, sequenced(0, epoch=1)), 9)).error_code == 0
    assert produced(client.ask(produce(9, data), 9)).error_code == code
    assert broker.partition().log.log_end_offset == 1


# -- acks=all ----------------------------------------------------------------------------------------------------------


def test_acks_all_without_a_delay_of_the_replicas_is_answered_at_once() -> None:
    broker = VirtualBroker()
    broker.topic()
    client = broker.client()
    client.send(produce(9, acks=ALL), 9)
    assert client.answer().at_ms == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_acks_all_is_answered_when_the_replicas_have_it(version: int) -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=300")
    topic = broker.topic()
    client = broker.client()
    client.send(produce(version, acks=ALL, topic_id=topic.topic_id), version)
    broker.advance(299)
    assert client.take_answers() == []
    assert broker.partition().log.high_watermark == 0
    broker.advance(1)
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms) == (300, 0), "waiting for replicas is no throttle"
    assert produced(answer.message).error_code == 0
    assert broker.partition().log.high_watermark == 1


def test_acks_1_does_not_wait_for_the_replicas() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=300")
    broker.topic()
    client = broker.client()
    client.send(produce(9, acks=1), 9)
    assert client.answer().at_ms == 0


def test_acks_all_that_runs_out_of_time_is_error_7_and_stays_appended() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=300")
    broker.topic()
    client = broker.client()
    client.send(produce(9, acks=ALL, timeout_ms=100), 9)
    broker.advance(10_000)
    answer = client.answer()
    assert (answer.at_ms, produced(answer.message).error_code) == (100, ErrorCode.REQUEST_TIMED_OUT)
    assert broker.partition().log.high_watermark == 1, "running out of time undoes no append"


def test_an_error_beside_what_waits_is_answered_with_it() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=300")
    broker.topic()
    client = broker.client()
    data = [PartitionProduceData(index=index, records=batch()) for index in (0, 7)]
    request = ProduceRequest(acks=ALL, timeout_ms=100, topic_data=[TopicProduceData(name="t", partition_data=data)])
    client.send(request, 9)
    broker.advance(100)
    answers = client.answer().message.responses[0].partition_responses
    assert [one.error_code for one in answers] == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_acks_all_of_nothing_but_errors_does_not_wait() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=300")
    broker.topic()
    client = broker.client()
    client.send(produce(9, topic="nowhere", acks=ALL), 9)
    assert client.answer().at_ms == 0


def test_the_deletion_of_a_topic_answers_the_produces_that_wait_for_it() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=300")
    broker.topic()
    client = broker.client()
    client.send(produce(9, acks=ALL), 9)
    broker.client().ask(DeleteTopicsRequest(topic_names=["t"]), 5)
    answer = client.answer()
    assert (answer.at_ms, produced(answer.message).error_code) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    broker.advance(10_000)  # the replicas of what is gone bring nothing
    assert client.take_answers() == []


def test_pipelined_produces_with_acks_all_are_answered_in_order() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=300")
    broker.topic()
    client = broker.client()
    client.send_together(*[(produce(9, acks=ALL), 9)] * 3)
    broker.advance(10_000)
    # One request in flight a connection, so each waits for its own replication after the one before.
    assert [(one.correlation_id, one.at_ms) for one in client.take_answers()] == [(1, 300), (2, 600), (3, 900)]
