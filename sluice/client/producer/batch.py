"""One batch of records for a partition (Kafka's ProducerBatch and, as far as needed, MemoryRecordsBuilder).

A closed batch is compressed, and each attempt sends the same bytes, under a header with producer id, epoch and
sequence. It completes or fails once: a batch can expire while in flight (KIP-91). The delivery timeout starts with its
creation, which the parts of a split batch inherit.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import NO_EPOCH, TopicPartition
from sluice.protocol.records.batch import (
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    add_to_sequence,
)
from sluice.protocol.records.build import stamp_checksum, varint
from sluice.protocol.records.compression import NONE, compress
from sluice.protocol.records.record import iter_records

Header = tuple[str, bytes | None]

_MAGIC = 2
_NO_TIMESTAMP = -1
# The maximum size of a record without key, value and headers (DefaultRecord.MAX_RECORD_OVERHEAD).
_MAX_RECORD_OVERHEAD = 21
_NULL = b"\1"  # a length of -1
_NO_HEADERS = b"\0"
# For batches that compress worse than the estimated ratio (MemoryRecordsBuilder).
_COMPRESSION_RATE_SLACK = 1.05


class RecordMetadata(NamedTuple):
    """The position of a written record; -1 if unknown (`acks=0`).

    Attributes:
        timestamp: In ms; the broker's if the topic uses LogAppendTime, otherwise the record's.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


class Delivery(Protocol):
    def done(self) -> bool: ...

    def set_result(self, result: RecordMetadata, /) -> None: ...

    def set_exception(self, exception: KafkaException, /) -> None: ...


class Codec(NamedTuple):
    number: int = NONE
    level: int | None = None


class ProducerState(NamedTuple):
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False


NO_PRODUCER = ProducerState()
NO_ERRORS_OF_RECORDS: Mapping[int, KafkaException] = {}


def size_upper_bound(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
    size = HEADER_BYTES + _MAX_RECORD_OVERHEAD + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += 10 + len(name.encode()) + len(content or b"")
    return size


class ProducerBatch:
    def __init__(
        self,
        partition: TopicPartition,
        codec: Codec,
        limit: int,
        created_ms: float,
        *,
        memory: int,
        ratio: float,
        is_split: bool = False,
    ) -> None:
        """Create an empty batch; `limit` and `memory` are in bytes, `ratio` is the estimated compression ratio."""
        self.partition = partition
        self.created_ms = self.last_attempt_ms = created_ms
        self.memory = memory
        self.is_split = is_split
        self.attempts = 0
        self.attempts_when_leader_changed = 0
        self.leader_epoch = NO_EPOCH
        self.is_done = False
        self.largest_record = 0
        self.sequence_was_reset = False
        self.may_be_written = False  # an attempt with this sequence had an unknown result, and may still arrive
        self.state = NO_PRODUCER
        self._codec = codec
        self._scale = 1.0 if codec.number == NONE else ratio * _COMPRESSION_RATE_SLACK
        self.room = int(limit / self._scale) - HEADER_BYTES  # bytes left for records, before compression
        self._parts: list[bytes] = []
        self._records_bytes = 0
        self._timestamps: list[int] = []
        self._deliveries: list[Delivery] = []
        self._bytes: bytearray | None = None  # once closed: space for the header, and the records
        self._has_header = False

    def __str__(self) -> str:
        return f"batch of {self.record_count} record(s) for {self.partition}"

    # -- records -------------------------------------------------------------------------------------------------------

    @property
    def record_count(self) -> int:
        return len(self._deliveries)

    @property
    def deliveries(self) -> Sequence[Delivery]:
        return self._deliveries

    @property
    def estimated_bytes(self) -> int:
        """The size in bytes, estimated while the batch is open and compressed."""
        if self._bytes is not None:
            return len(self._bytes)
        return int((HEADER_BYTES + self._records_bytes) * self._scale)

    @property
    def is_full(self) -> bool:
        return self._bytes is not None or (bool(self._deliveries) and self.room <= 0)

    def try_append(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: Sequence[Header], delivery: Delivery
    ) -> bool:
        """Append a record if there is room; the first one always fits."""
        count = len(self._deliveries)
        start = b"\0" + varint(timestamp - self._timestamps[0] if count else 0) + varint(count)  # no attributes
        start += _NULL if key is None else varint(len(key)) + key
        if value is None:
            start, value = start + _NULL, b""
        else:
            start += varint(len(value))
        end = _encoded_headers(headers) if headers else _NO_HEADERS
        size = len(start) + len(value) + len(end)
        length = varint(size)
        more = len(length) + size
        if count and (more > self.room or self._bytes is not None):
            return False
        self._parts += (length + start, value, end)
        self._records_bytes += more
        self.room -= more
        self._timestamps.append(timestamp)
        self._deliveries.append(delivery)
        if size > self.largest_record:
            self.largest_record = size
        return True

    def close(self) -> None:
        if self._bytes is None:
            parts = self._parts
            if self._codec.number != NONE:
                parts = [compress(self._codec.number, b"".join(parts), _MAGIC, self._codec.level)]
            self._bytes = bytearray().join((bytes(HEADER_BYTES), *parts))
            self._parts = []

    @property
    def compression_ratio(self) -> float:
        return self.estimated_bytes / (HEADER_BYTES + self._records_bytes)

    def records(self) -> memoryview:
        self.close()
        assert self._bytes is not None
        if not self._has_header:
            self._write_header(self._bytes)
        return memoryview(self._bytes)

    def _write_header(self, batch: bytearray) -> None:
        state, count = self.state, self.record_count
        attributes = self._codec.number | (TRANSACTIONAL_FLAG if state.is_transactional else 0)
        HEADER.pack_into(
            batch,
            0,
            0,
            len(batch) - LOG_OVERHEAD,
            NO_LEADER_EPOCH,
            _MAGIC,
            0,
            attributes,
            count - 1,
            self._timestamps[0],
            max(self._timestamps),
            state.producer_id,
            state.epoch,
            state.base_sequence,
            count,
        )
        stamp_checksum(batch)
        self._has_header = True

    # -- producer state ------------------------------------------------------------------------------------------------

    @property
    def has_sequence(self) -> bool:
        return self.state.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        return add_to_sequence(self.state.base_sequence, self.record_count - 1)

    def set_state(self, state: ProducerState) -> None:
        self.state = state
        if self._has_header:  # the bytes may be in flight and must not change
            assert self._bytes is not None
            self._bytes = bytearray(self._bytes)
            self._has_header = False

    def reset_state(self, state: ProducerState) -> None:
        self.set_state(state)
        self.sequence_was_reset = True
        self.may_be_written = False

    # -- time ----------------------------------------------------------------------------------------------------------

    def has_expired(self, delivery_timeout_ms: int, now_ms: float) -> bool:
        return delivery_timeout_ms <= now_ms - self.created_ms

    def waited_ms(self, now_ms: float) -> float:
        """Return the time since the creation or the last failed attempt."""
        return now_ms - self.last_attempt_ms

    def reenqueued(self, now_ms: float) -> None:
        self.attempts += 1
        self.last_attempt_ms = now_ms

    def update_leader_epoch(self, epoch: int) -> None:
        if epoch > self.leader_epoch:
            self.attempts_when_leader_changed = self.attempts
            self.leader_epoch = epoch

    @property
    def leader_changed_for_this_retry(self) -> bool:
        """Whether the next attempt is the first at a new leader: no backoff (KIP-951)."""
        return self.attempts > 0 and self.attempts == self.attempts_when_leader_changed

    # -- results -------------------------------------------------------------------------------------------------------

    def complete(self, base_offset: int, log_append_time_ms: int) -> bool:
        """Complete all futures; return False if the batch was done already."""
        if self.is_done:
            return False
        self.is_done = True
        topic, partition = self.partition
        offset, step = (-1, 0) if base_offset < 0 else (base_offset, 1)
        new = tuple.__new__  # half the time of the NamedTuple's constructor
        for delivery, timestamp in zip(self._deliveries, self._timestamps, strict=True):
            if not delivery.done():
                if log_append_time_ms != _NO_TIMESTAMP:
                    timestamp = log_append_time_ms
                delivery.set_result(new(RecordMetadata, (topic, partition, offset, timestamp)))
            offset += step
        return True

    def fail(self, error: KafkaException, by_record: Mapping[int, KafkaException] = NO_ERRORS_OF_RECORDS) -> bool:
        if self.is_done:
            return False
        self.is_done = True
        for index, delivery in enumerate(self._deliveries):
            if not delivery.done():
                delivery.set_exception(by_record.get(index, error))
        return True

    def split(self, limit: int) -> "list[ProducerBatch]":
        """Return the records in batches of up to `limit` bytes; each keeps its sequence number and future."""
        parts: list[ProducerBatch] = []
        deliveries = iter(self._deliveries)
        for record in iter_records(self.records()):
            found = record.timestamp, record.key, record.value, record.headers, next(deliveries)
            if not parts or not parts[-1].try_append(*found):
                if parts:
                    parts[-1].close()
                bound = max(limit, size_upper_bound(record.key, record.value, record.headers))
                parts.append(
                    ProducerBatch(
                        self.partition, self._codec, bound, self.created_ms, memory=0, ratio=1.0, is_split=True
                    )
                )
                parts[-1].try_append(*found)
        parts[-1].close()
        if self.has_sequence:
            sequence = self.state.base_sequence
            for part in parts:
                part.set_state(self.state._replace(base_sequence=sequence))
                sequence = add_to_sequence(sequence, part.record_count)
        self.is_done = True
        return parts


def _encoded_headers(headers: Sequence[Header]) -> bytes:
    parts = [varint(len(headers))]
    for name, content in headers:
        encoded = name.encode()
        parts += (varint(len(encoded)), encoded)
        parts.append(_NULL if content is None else varint(len(content)) + content)
    return b"".join(parts)
