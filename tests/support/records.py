"""Record batches and produce and fetch requests for tests, of any version and of an exact size."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.message import Message
from sluice.protocol.records.batch import batch_bounds
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.legacy import build_message_set
from sluice.protocol.records.record import Record, iter_records
from sluice.protocol.types import ZERO_UUID
from tests.support.virtual_broker import WALL_START_MS
from tests.support.wire import frame


def batch(*values: bytes | None, compression: int = 0, timestamp: int = WALL_START_MS, **fields: Any) -> bytes:
    """Return a magic 2 batch of these values from offset 0 on; `fields` as of `build_batch`."""
    records = [Record(offset, timestamp, None, value) for offset, value in enumerate(values or (b"v",))]
    return build_batch(records, compression=compression, **fields)


@cache
def batch_of(size: int) -> bytes:
    """Return a batch of one record with exactly `size` bytes."""
    value_bytes = 0
    for _ in range(5):  # lengths of lengths move it by a byte or two
        data = batch(bytes(value_bytes))
        if len(data) == size:
            return data
        value_bytes += size - len(data)
    raise AssertionError(f"no batch of {size} bytes: lengths are written with some bytes more or less")


def records_for(version: int, *values: bytes | None, compression: int = 0, timestamp: int = WALL_START_MS) -> bytes:
    """Return the records of a Produce request of `version`: message sets up to 2, record batches from 3 on."""
    if version >= 3:
        return batch(*values, compression=compression, timestamp=timestamp)
    records = [Record(offset, timestamp, None, value) for offset, value in enumerate(values or (b"v",))]
    return build_message_set(records, 1 if version == 2 else 0, compression=compression)


def produce(
    version: int,
    records: bytes | None = None,
    *,
    topic: str = "t",
    topic_id: bytes = ZERO_UUID,
    partition: int = 0,
    acks: int = 1,
    timeout_ms: int = 30_000,
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records_for(version) if records is None else records)
    topic_data = TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic_data])


@cache
def produce_of(
    size: int, version: int, client_id: str | None, *, topic: str = "t", topic_id: bytes = ZERO_UUID, acks: int = 1
) -> ProduceRequest:
    """Return a produce request of one record whose frame, without the size prefix, has exactly `size` bytes."""
    value_bytes = 0
    for _ in range(5):  # lengths of lengths move it by a byte or two
        records = records_for(version, bytes(value_bytes))
        request = produce(version, records, topic=topic, topic_id=topic_id, acks=acks)
        missing = size - (len(frame(request, version, client_id=client_id)) - 4)
        if missing == 0:
            return request
        value_bytes += missing
    raise AssertionError(f"no request of {size} bytes: lengths are written with {missing} bytes more or less")


def fetch(
    offset: int = 0,
    *,
    topic: str = "t",
    topic_id: bytes = ZERO_UUID,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 0x7FFF_FFFF,
    partition_max_bytes: int = 1 << 20,
    isolation_level: int = 0,
    **more: Any,
) -> FetchRequest:
    """Return a fetch request for one partition; `more` are fields of the partition."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes, **more)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])],
    )


def fetched(response: Message) -> PartitionData:
    """Return the only partition of a fetch response."""
    responses = getattr(response, "responses", None)
    assert isinstance(responses, Sequence), f"{response!r} is no fetch response"
    assert len(responses) == 1, f"{len(responses)} topics in the answer, expected one"
    (data,) = responses[0].partitions
    assert isinstance(data, PartitionData)
    return data


def fetched_bytes(response: Message) -> bytes:
    """Return the record bytes of the only partition of a fetch response."""
    return records_of(fetched(response))


def records_of(data: PartitionData) -> bytes:
    """Return the record bytes of one partition; b"" for null."""
    assert data.records is None or isinstance(data.records, bytes | memoryview), "a decoder gives one piece"
    return bytes(data.records or b"")


def values(data: bytes) -> list[bytes | None]:
    """Return the values of the records in record batches."""
    view = memoryview(data)
    return [
        record.value
        for position, size, _ in batch_bounds(data)
        for record in iter_records(view[position : position + size])
    ]
