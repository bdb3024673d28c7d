"""Produce: appends, errors, idempotence and acks=all."""

from typing import Any

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis import produce as api
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.batch import CRC_AT, read_header
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.legacy import build_message_set
from sluice.protocol.records.record import Record
from sluice.protocol.types import ZERO_UUID
from tests.support.records import batch, batch_of, fetch, fetched_bytes, produce, records_for
from tests.support.virtual_broker import WALL_START_MS, Client, VirtualBroker, broker_with_topic

VERSIONS = range(14)
ALL = -1


def produced(response: Message) -> api.PartitionProduceResponse:
    """Return the response for the only partition of a produce request."""
    (topic,) = getattr(response, "responses")  # noqa: B009  (mypy knows no fields of Message)
    (partition,) = topic.partition_responses
    assert isinstance(partition, api.PartitionProduceResponse)
    return partition


def produce_to(*indexes: int, **fields: Any) -> api.ProduceRequest:
    """Return a request with one batch for each of these partitions of "t"."""
    data = [api.PartitionProduceData(index=index, records=batch()) for index in indexes]
    return api.ProduceRequest(**fields, topic_data=[api.TopicProduceData(name="t", partition_data=data)])


# -- appending ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_base_offset_is_the_offset_of_the_first_record(topic: Topic, client: Client, version: int) -> None:
    for base_offset in (0, 3, 6):
        request = produce(version, records_for(version, b"a", b"b", b"c"), topic_id=topic.topic_id)
        response = produced(client.call(request, version))
        assert (response.error_code, response.base_offset, response.log_append_time_ms) == (0, base_offset, -1)
        assert response.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_every_version_are_stored_as_one_batch_of_magic_2(
    topic: Topic, client: Client, version: int
) -> None:
    client.call(produce(version, records_for(version, b"a", None), topic_id=topic.topic_id), version)
    header = read_header(fetched_bytes(client.call(fetch(0), 11)))
    assert (header.magic, header.last_offset, header.base_offset) == (2, 1, 0)


def test_log_append_time_is_returned(broker: VirtualBroker) -> None:
    broker.topic(message_timestamp_type="LogAppendTime")
    broker.advance(1234)
    response = produced(broker.client().call(produce(9, batch(b"a", timestamp=5)), 9))
    assert response.log_append_time_ms == WALL_START_MS + 1234


def test_partitions_succeed_and_fail_independently(broker: VirtualBroker) -> None:
    broker.topic(partitions=2)
    response = broker.client().call(produce_to(0, 7, 1, acks=1), 9)
    codes = [(partition.index, partition.error_code) for partition in response.responses[0].partition_responses]
    assert codes == [(0, 0), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (1, 0)]


# -- errors ------------------------------------------------------------------------------------------------------------


ZSTD = batch(b"a", compression=4)


def corrupt() -> bytes:
    data = bytearray(batch(b"abc"))
    data[CRC_AT] ^= 1
    return bytes(data)


INVALID = {
    "wrong CRC": (produce(9, corrupt()), 9, ErrorCode.CORRUPT_MESSAGE),
    "batch above message.max.bytes": (produce(9, batch_of(2_000)), 9, ErrorCode.MESSAGE_TOO_LARGE),
    "unknown topic": (produce(9, topic="nowhere"), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown partition": (produce(9, partition=1), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "negative partition": (produce(9, partition=-1), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown topic id": (produce(13, topic_id=ZERO_UUID), 13, ErrorCode.UNKNOWN_TOPIC_ID),
    "acks=5": (produce(9, acks=5), 9, ErrorCode.INVALID_REQUIRED_ACKS),
    "acks=-2": (produce(9, acks=-2), 9, ErrorCode.INVALID_REQUIRED_ACKS),
    "no batch": (produce(9, b""), 9, ErrorCode.INVALID_RECORD),
    "two batches": (produce(9, batch() + batch()), 9, ErrorCode.INVALID_RECORD),
    "message set in version 9": (produce(9, records_for(2)), 9, ErrorCode.INVALID_RECORD),
    "zstd before version 7": (produce(6, ZSTD), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "truncated batch": (produce(9, batch(b"a", base_offset=0)[:-1]), 9, ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize(("request_", "version", "code"), INVALID.values(), ids=INVALID)
def test_invalid_produce_returns_an_error_and_appends_nothing(
    request_: api.ProduceRequest, version: int, code: ErrorCode
) -> None:
    broker = broker_with_topic("message.max.bytes=1000")
    client = broker.client()
    response = produced(client.call(request_, version))
    assert (response.error_code, response.base_offset) == (code, -1)
    assert broker.partition().log.log_end_offset == 0
    assert client.is_open, "a partition error does not close the connection"


def test_version_8_names_the_invalid_record_and_the_reason(topic: Topic, broker: VirtualBroker) -> None:
    future = WALL_START_MS + 7_200_000  # log.message.timestamp.after.max.ms is an hour
    response = produced(broker.client().call(produce(9, batch(b"a", timestamp=future)), 9))
    assert response.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in response.record_errors] == [0]
    assert response.error_message


def test_min_insync_replicas_applies_only_to_acks_all() -> None:
    broker = broker_with_topic("min.insync.replicas=2")
    broker.partition().replicas = (1, 2)  # one of them is in sync
    client = broker.client()
    assert produced(client.call(produce(9, acks=ALL), 9)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert broker.partition().log.log_end_offset == 0
    assert produced(client.call(produce(9, acks=1), 9)).error_code == 0


def test_min_insync_replicas_is_capped_at_the_replication_factor() -> None:
    client = broker_with_topic("min.insync.replicas=2").client()
    assert produced(client.call(produce(9, acks=ALL), 9)).error_code == 0


def test_not_enough_replicas_returns_the_log_start_offset(broker: VirtualBroker) -> None:
    log = broker.topic(min_insync_replicas="2").partitions[0].log
    broker.partition().replicas = (1, 2)
    client = broker.client()
    client.call(produce(9), 9)
    log.delete_records_before(1)
    assert produced(client.call(produce(9, acks=ALL), 9)).log_start_offset == 1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
@pytest.mark.parametrize(
    ("client_id", "code"),
    [("client", ErrorCode.INVALID_TOPIC_EXCEPTION), (None, ErrorCode.INVALID_TOPIC_EXCEPTION), ("__admin_client", 0)],
)
def test_clients_cannot_produce_to_internal_topics(version: int, name: str, client_id: str | None, code: int) -> None:
    broker = VirtualBroker()
    topic = broker.broker.cluster.internal_topic(name)
    keyed = [Record(0, WALL_START_MS, b"key", b"value")]
    records = build_batch(keyed) if version >= 3 else build_message_set(keyed, 1 if version == 2 else 0)
    request = produce(version, records, topic=name, topic_id=topic.topic_id)
    response = produced(broker.client(client_id).call(request, version))
    assert (response.error_code, response.log_start_offset) == (code, -1 if code or version < 5 else 0)
    assert topic.partitions[0].log.log_end_offset == (0 if code else 1)


def test_record_errors_precede_the_acks_error(topic: Topic, broker: VirtualBroker) -> None:
    response = produced(broker.client().call(produce(9, b"", acks=5), 9))
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_RECORD, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_last_records_of_a_duplicate_partition_are_appended(broker: VirtualBroker, version: int) -> None:
    topic = broker.topic(partitions=2)
    sent = [(0, b"a"), (1, b"b"), (0, b"c")]
    data = [api.PartitionProduceData(index=index, records=records_for(version, value)) for index, value in sent]
    topics = [
        api.TopicProduceData(name="t", topic_id=topic.topic_id, partition_data=items) for items in (data[:2], data[2:])
    ]
    client = broker.client()
    (topic_response,) = client.call(api.ProduceRequest(acks=1, topic_data=topics), version).responses
    results = [(item.index, item.error_code, item.base_offset) for item in topic_response.partition_responses]
    assert results == [(0, 0, 0), (1, 0, 0)]
    assert b"c" in fetched_bytes(client.call(fetch(0), 11))


@pytest.mark.parametrize("version", VERSIONS)
def test_topics_without_partitions_are_left_out(broker: VirtualBroker, version: int) -> None:
    topic = broker.topic(partitions=1)
    empty = api.TopicProduceData(name="t", topic_id=topic.topic_id)
    unknown = api.TopicProduceData(name="nowhere", topic_id=bytes(range(16)))
    client = broker.client()
    assert client.call(api.ProduceRequest(acks=1, topic_data=[empty]), version).responses == []
    assert client.call(api.ProduceRequest(acks=1, topic_data=[empty, unknown]), version).responses == []


TOO_SHORT = (ErrorCode.CORRUPT_MESSAGE, "Record size 0 is less than the minimum record overhead (14)")
WRONG_MAGIC = (ErrorCode.CORRUPT_MESSAGE, "Invalid magic found in record: 3")
GOOD, ZEROS, MAGIC_3 = batch(), bytes(70), batch()[:16] + b"\3" + batch()[17:]


MALFORMED = {
    "impossible size": ([GOOD, ZEROS], [TOO_SHORT, TOO_SHORT]),
    "unknown magic": ([MAGIC_3, GOOD], [WRONG_MAGIC, WRONG_MAGIC]),
    "no size": ([GOOD, ZEROS[:11]], [(0, None), (ErrorCode.INVALID_RECORD, None)]),
    "no records": ([GOOD, b""], [(0, None), (ErrorCode.INVALID_RECORD, None)]),
    "after the first batch": ([GOOD, GOOD + ZEROS], [(0, None), (ErrorCode.CORRUPT_MESSAGE, None)]),
}


@pytest.mark.parametrize(("records", "expected"), MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("version", range(8, 14))
def test_request_with_a_malformed_first_batch_fails_as_a_whole(
    broker: VirtualBroker, version: int, records: list[bytes], expected: list[tuple[int, str | None]]
) -> None:
    topic = broker.topic(partitions=2)
    data = [api.PartitionProduceData(index=index, records=each) for index, each in enumerate(records)]
    topics = [api.TopicProduceData(name="t", topic_id=topic.topic_id, partition_data=data)]
    (response,) = broker.client().call(api.ProduceRequest(acks=1, topic_data=topics), version).responses
    assert [(one.error_code, one.error_message) for one in response.partition_responses] == expected
    written = [broker.partition(index=index).log.log_end_offset for index in range(2)]
    assert written == [int(not code) for code, _ in expected]


def test_malformed_request_without_acks_closes_the_connection(topic: Topic, client: Client) -> None:
    client.send(produce(9, ZEROS, acks=0), 9)
    assert not client.is_open


def test_produce_creates_no_topic() -> None:
    broker = VirtualBroker("auto.create.topics.enable=true")
    broker.client().call(produce(9, topic="nowhere"), 9)
    assert broker.broker.cluster.topics == {}


# -- idempotence -------------------------------------------------------------------------------------------------------


def sequenced(sequence: int, *, epoch: int = 0, records: int = 1, producer_id: int = 0) -> bytes:
    return batch(*[b"v"] * records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def test_duplicate_batch_is_stored_once_and_gets_the_same_response(client: Client, broker: VirtualBroker) -> None:
    broker.topic()
    producer_id = client.call(InitProducerIdRequest(transactional_id=None), 4).producer_id
    client.call(produce(9, batch()), 9)
    for _ in range(3):
        response = produced(client.call(produce(9, sequenced(0, records=2, producer_id=producer_id)), 9))
        assert (response.error_code, response.base_offset) == (0, 1)
    assert broker.partition().log.log_end_offset == 3


FENCED = {
    "sequence gap": (sequenced(2, epoch=1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    "older epoch": (sequenced(1, epoch=0), ErrorCode.INVALID_PRODUCER_EPOCH),
    "new epoch, sequence above 0": (sequenced(1, epoch=2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
}


@pytest.mark.parametrize(("data", "code"), FENCED.values(), ids=FENCED)
def test_out_of_order_sequence_or_older_epoch_is_rejected(
    topic: Topic, client: Client, data: bytes, code: ErrorCode
) -> None:
    assert produced(client.call(produce(9, sequenced(0, epoch=1)), 9)).error_code == 0
    assert produced(client.call(produce(9, data), 9)).error_code == code
    assert client.broker.partition().log.log_end_offset == 1


# -- acks=all ----------------------------------------------------------------------------------------------------------


def test_acks_all_without_replication_delay_returns_immediately(topic: Topic, client: Client) -> None:
    client.send(produce(9, acks=ALL), 9)
    assert client.response().at_ms == 0


def slow_replication() -> tuple[VirtualBroker, Client]:
    """Return a broker with a topic whose followers fetch after 300 ms, and a connection."""
    broker = broker_with_topic("sluice.replication.delay.ms=300")
    return broker, broker.client()


@pytest.mark.parametrize("version", VERSIONS)
def test_acks_all_waits_for_the_replicas(version: int) -> None:
    broker, client = slow_replication()
    topic = broker.partition().topic
    client.send(produce(version, acks=ALL, topic_id=topic.topic_id), version)
    broker.advance(299)
    assert client.take_responses() == []
    assert broker.partition().log.high_watermark == 0
    broker.advance(1)
    response = client.response()
    assert (response.at_ms, response.throttle_time_ms) == (300, 0), "waiting for replicas is not throttling"
    assert produced(response.message).error_code == 0
    assert broker.partition().log.high_watermark == 1


def test_acks_1_does_not_wait_for_the_replicas() -> None:
    _, client = slow_replication()
    client.send(produce(9, acks=1), 9)
    assert client.response().at_ms == 0


def test_acks_all_that_times_out_keeps_the_records() -> None:
    broker, client = slow_replication()
    client.send(produce(9, acks=ALL, timeout_ms=100), 9)
    broker.advance(10_000)
    response = client.response()
    assert (response.at_ms, produced(response.message).error_code) == (100, ErrorCode.REQUEST_TIMED_OUT)
    assert broker.partition().log.high_watermark == 1, "the timeout does not undo the append"


def test_partition_error_is_returned_with_the_pending_partitions() -> None:
    broker, client = slow_replication()
    client.send(produce_to(0, 7, acks=ALL, timeout_ms=100), 9)
    broker.advance(100)
    codes = [item.error_code for item in client.response().message.responses[0].partition_responses]
    assert codes == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_acks_all_with_only_errors_does_not_wait() -> None:
    _, client = slow_replication()
    client.send(produce(9, topic="nowhere", acks=ALL), 9)
    assert client.response().at_ms == 0


def test_topic_deletion_completes_pending_produces() -> None:
    broker, client = slow_replication()
    client.send(produce(9, acks=ALL), 9)
    broker.client().call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    response = client.response()
    assert (response.at_ms, produced(response.message).error_code) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    broker.advance(10_000)  # replication of the deleted topic completes nothing
    assert client.take_responses() == []


def test_pipelined_acks_all_requests_complete_in_order() -> None:
    broker, client = slow_replication()
    client.send_together(*[(produce(9, acks=ALL), 9)] * 3)
    broker.advance(10_000)
    # A connection has one request in flight, so each waits for its own replication after the previous one.
    responses = [(response.correlation_id, response.at_ms) for response in client.take_responses()]
    assert responses == [(1, 300), (2, 600), (3, 900)]
