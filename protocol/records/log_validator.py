"""Validation of records before an append, with their new offsets and timestamps: exactly as in Kafka's `LogValidator`.

An uncompressed magic 2 batch is checked and stamped in place; so is a compressed one that keeps its format; anything
else is rebuilt as one magic 2 batch. As in Kafka, each of these paths checks in its own order.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

import msgspec

from sluice.protocol.errors import ErrorCode

from .batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_FLAG,
    CREATE_TIME,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAX_TIMESTAMP_AT,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    PLACE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    batch_bounds,
    read_header,
)
from .build import build_batch, ensure_appendable, stamp_checksum
from .compression import MAX_SECTION_BYTES, NONE, decompress
from .invalid import BrokenStream, InvalidRecords, RecordErrors, SectionTooLarge, TooManyRecords
from .legacy import SMALLEST_MESSAGE_BYTES, Message, iter_messages, read_message
from .record import Record, int64, iter_records, read_buffer, read_stream
from .walk import SkimmedRecord, skim_stream

Kind = TypeVar("Kind", Record, SkimmedRecord, Message)

CLIENT, COORDINATOR = 0, 1  # the origin of an append (`AppendOrigin`): a producer, or the broker's coordinators
INT32_MAX = 2**31 - 1
_MAGIC = 2  # of stored batches
# Record errors returned to the producer, 2 us each. Kafka returns all.
MOST_RECORD_ERRORS = 10_000
_KEPT_ATTRIBUTES = CODEC_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG


class AppendConfig(msgspec.Struct, frozen=True, gc=False):
    max_message_bytes: int = 1024 * 1024 + 12  # `max.message.bytes`: 1 MiB plus the log overhead
    timestamp_type: int = CREATE_TIME  # `message.timestamp.type`
    compression: int | None = None  # `compression.type` as a codec id; None: "producer"
    compression_level: int | None = None  # of that codec (KIP-390); None: its default
    max_decompressed_bytes: int | None = None  # `max.decompressed.message.bytes`: of a record; None: no limit
    before_max_ms: int = 2**63 - 1  # `message.timestamp.before.max.ms`
    after_max_ms: int = 60 * 60 * 1000  # `message.timestamp.after.max.ms`
    compacted: bool = False  # `cleanup.policy` has "compact": records need keys
    deep_max_bytes: int | None = None  # check each record only in sections up to this size; None: always
    max_section_bytes: int = MAX_SECTION_BYTES  # of decompressed records
    max_records: int = INT32_MAX  # of a batch whose records are checked
    partition: str = ""  # for messages, as in "orders-0"


class Appendable(msgspec.Struct, gc=False):
    """The batch to store and its header; None if there is none. Times are in ms, -1 for none."""

    data: memoryview
    header: BatchHeader | None
    max_timestamp: int
    log_append_time_ms: int


def move_to(appendable: Appendable, first_offset: int, leader_epoch: int) -> None:
    header = appendable.header
    if header is not None:
        header.base_offset = first_offset
        header.partition_leader_epoch = leader_epoch
        if appendable.data.readonly:
            appendable.data = memoryview(bytearray(appendable.data))
        PLACE.pack_into(appendable.data, 0, header.base_offset, header.length, leader_epoch)


def ensure_short(header: BatchHeader, config: AppendConfig) -> None:
    if header.record_count > config.max_records:
        raise TooManyRecords(config.max_records)


class _Summary(NamedTuple):
    records: int
    max_timestamp: int
    are_consecutive: bool


class LogValidator:
    def __init__(
        self,
        data: memoryview,
        codec: int,
        first_offset: int,
        now_ms: int,
        leader_epoch: int,
        config: AppendConfig,
        origin: int,
    ) -> None:
        self.data = data
        self.codec = codec
        self.target_codec = codec if config.compression is None else config.compression
        self.first_offset = first_offset
        self.now_ms = now_ms
        self.leader_epoch = leader_epoch
        self.config = config
        self.origin = origin

    def assign_offsets(self) -> Appendable:
        """Return the records ready to be stored. Raises InvalidRecords. Modifies `data`, unless it is read-only."""
        if self.codec != NONE or self.target_codec != NONE:
            return self._assign_compressed()
        if all(magic == _MAGIC for _, _, magic in batch_bounds(self.data)):
            return self._assign_uncompressed()
        return self._convert_uncompressed()

    def _assign_uncompressed(self) -> Appendable:
        header = self._header(self._first_batch())
        self._validate_batch(header)
        section = self._read_section(header)
        if section is None:
            return self._stamp(header, header.max_timestamp, header.record_count)
        valid = self._summarized(read_buffer(section[0], header), header.timestamp_type)
        return self._stamp(header, valid.max_timestamp, valid.records)

    def _assign_compressed(self) -> Appendable:
        first = self._first_batch()
        if first[2] != _MAGIC:
            return self._convert_messages()
        header = self._header(first)
        self._validate_batch(header)
        # Uncompressed control records stay uncompressed.
        if self.codec != self.target_codec and not (self.codec == NONE and header.is_control):
            return self._build(list(self._valid(self._read_records(header), header.timestamp_type)), header)
        section = self._read_section(header)
        if section is None:
            return self._stamp(header, header.max_timestamp, header.record_count)
        if self.codec == NONE:
            valid = self._summarized(read_buffer(section[0], header), header.timestamp_type)
            if valid.are_consecutive:
                return self._stamp(header, valid.max_timestamp, valid.records)
            return self._build(list(read_buffer(section[0], header)), header)
        records = skim_stream(*section, header, self.config.max_decompressed_bytes)
        skimmed = self._summarized(records, header.timestamp_type)
        if skimmed.are_consecutive:
            return self._stamp(header, skimmed.max_timestamp, skimmed.records)
        # Kafka has skipped the keys and values that a rebuild needs, and fails with this error.
        raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, "key is skipped in PartialDefaultRecord")

    def _convert_uncompressed(self) -> Appendable:
        for position, size, magic in batch_bounds(self.data):  # Kafka first estimates the size of the result
            batch = self.data[position : position + size]
            for record in iter_messages(read_message(batch)) if magic != _MAGIC else iter_records(batch):
                _ = record.key, record.value
        return self._convert_messages()

    def _convert_messages(self) -> Appendable:
        first_magic = self._first_batch()[2]
        messages: list[Message] = []
        for position, size, magic in batch_bounds(self.data):
            if magic != first_magic:
                message = f"Batch magic {magic} is not the same as the first batch's magic byte {first_magic}"
                raise InvalidRecords(ErrorCode.INVALID_RECORD, f"{message} in topic partition {self.config.partition}")
            outer = read_message(self.data[position : position + size])
            wrapper = outer if outer.compression != NONE else None
            limit_bytes = min(self.config.max_section_bytes, self.config.max_records * SMALLEST_MESSAGE_BYTES)
            inner = iter_messages(outer, limit_bytes)
            messages += self._valid(inner, outer.timestamp_type, wrapper)
            if self.codec == NONE and self.target_codec == NONE:  # here Kafka appends each before it reads the next
                ensure_appendable(messages[-1].record(), None)
        return self._build([message.record() for message in messages], None)

    def _first_batch(self) -> tuple[int, int, int]:
        batches = batch_bounds(self.data)
        first = next(batches, None)
        if first is None:
            raise InvalidRecords(ErrorCode.INVALID_RECORD, "Record batch has no batches at all")
        if (first[2] == _MAGIC or self.codec != NONE) and next(batches, None) is not None:
            raise InvalidRecords(ErrorCode.INVALID_RECORD, "Compressed outer record has more than one batch")
        return first

    def _header(self, bounds: tuple[int, int, int]) -> BatchHeader:
        if bounds[1] < HEADER_BYTES:  # rejected by `analyze` before; Kafka does not check the size again
            raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, f"a batch of {bounds[1]} bytes has no record count")
        header = read_header(self.data, bounds[0])
        ensure_short(header, self.config)
        return header

    def _validate_batch(self, header: BatchHeader) -> None:
        if self.origin != CLIENT:
            return
        offsets = f"[{header.base_offset}, {header.last_offset}]"
        where = f"in topic partition {self.config.partition}"
        count = header.record_count
        if header.last_offset_delta < 0:
            raise InvalidRecords(ErrorCode.INVALID_RECORD, f"Batch has an invalid offset range: {offsets} {where}")
        if count <= 0:
            raise InvalidRecords(ErrorCode.INVALID_RECORD, f"Invalid reported count for record batch: {count} {where}")
        if header.last_offset_delta + 1 != count:
            message = f"Inconsistent batch offset range {offsets} and count of records {count} {where}"
            raise InvalidRecords(ErrorCode.INVALID_RECORD, message)
        if header.is_control:
            raise InvalidRecords(ErrorCode.INVALID_RECORD, f"Clients are not allowed to write control records {where}")
        if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
            message = f"in record batch with producerId {header.producer_id} {where}"
            raise InvalidRecords(ErrorCode.INVALID_RECORD, f"Invalid sequence number {header.base_sequence} {message}")

    def _read_section(self, header: BatchHeader) -> tuple[bytes, BrokenStream | None] | None:
        view = self.data[HEADER_BYTES : header.size_in_bytes]
        limit_bytes = self.config.max_section_bytes
        deep_max_bytes = self.config.deep_max_bytes
        is_limited = self.config.max_decompressed_bytes is not None and self.codec != NONE
        may_trust = (
            deep_max_bytes is not None and not is_limited and not self.config.compacted and self._is_in_time(header)
        )
        if may_trust and deep_max_bytes is not None:
            limit_bytes = deep_max_bytes
        if self.codec == NONE:
            return None if may_trust and len(view) > limit_bytes else (bytes(view), None)
        try:
            section, failure = decompress(self.codec, view, _MAGIC, limit_bytes)
        except SectionTooLarge:
            if may_trust:
                return None
            raise
        return bytes(section), failure

    def _read_records(self, header: BatchHeader) -> Iterator[Record]:
        view = self.data[HEADER_BYTES : header.size_in_bytes]
        if self.codec == NONE:
            return read_buffer(bytes(view), header)
        section, failure = decompress(self.codec, view, _MAGIC, self.config.max_section_bytes)
        return read_stream(bytes(section), failure, header, self.config.max_decompressed_bytes)

    def _summarized(self, records: Iterable[Kind], timestamp_type: int) -> "_Summary":
        count, max_timestamp, are_consecutive = 0, NO_TIMESTAMP, True
        for record in self._valid(records, timestamp_type):
            if record.offset != count:
                are_consecutive = False
            if record.timestamp > max_timestamp:
                max_timestamp = record.timestamp
            count += 1
        return _Summary(count, max_timestamp, are_consecutive)

    def _valid(self, records: Iterable[Kind], timestamp_type: int, wrapper: Message | None = None) -> Iterator[Kind]:
        errors: RecordErrors = []
        failed = 0
        code = ErrorCode.INVALID_RECORD
        for index, record in enumerate(records):
            error = None
            if wrapper is not None and isinstance(record, Message):
                error = self._message_error(record, wrapper)
            error = error or self._key_error(record)
            if error is None:
                error = self._timestamp_error(record, timestamp_type)
                if error is not None:
                    code = ErrorCode.INVALID_TIMESTAMP
            if error is not None:
                failed += 1
                if failed <= MOST_RECORD_ERRORS:
                    errors.append((index, error))
            elif not failed:
                yield record
        if not failed:
            return
        if code == ErrorCode.INVALID_TIMESTAMP:
            raise InvalidRecords(code, "One or more records have been rejected due to invalid timestamp", errors)
        shown = ", ".join(f"RecordError(batchIndex={index}, message='{error}')" for index, error in errors[:3])
        message = f"{failed} record errors in total, and only showing the first three errors at most: [{shown}]"
        raise InvalidRecords(code, f"One or more records have been rejected due to {message}", errors)

    def _message_error(self, message: Message, wrapper: Message) -> str | None:
        if message.magic != wrapper.magic:
            where = f"in topic partition {self.config.partition}"
            return f"Record {message}'s magic does not match outer magic {wrapper.magic} {where}"
        message.ensure_valid()
        return None

    def _key_error(self, record: Record | SkimmedRecord | Message) -> str | None:
        if not self.config.compacted or record.has_key:
            return None
        return f"Compacted topic cannot accept message without key in topic partition {self.config.partition}"

    def _timestamp_error(self, record: Record | SkimmedRecord | Message, timestamp_type: int) -> str | None:
        timestamp = record.timestamp
        if self.config.timestamp_type == CREATE_TIME and timestamp != NO_TIMESTAMP:
            age_ms = int64(self.now_ms - timestamp)
            if age_ms <= self.config.before_max_ms and int64(-age_ms) <= self.config.after_max_ms:
                return None
            earliest, latest = (
                int64(self.now_ms - self.config.before_max_ms),
                int64(self.now_ms + self.config.after_max_ms),
            )
            message = f"Timestamp {timestamp} of message with offset {record.offset} is out of range."
            return f"{message} The timestamp should be within [{earliest}, {latest}]"
        if timestamp_type == LOG_APPEND_TIME:
            message = f"Invalid timestamp type in message {record}."
            return f"{message} Producer should not set timestamp type to LogAppendTime."
        return None

    def _is_in_time(self, header: BatchHeader) -> bool:
        if self.config.timestamp_type != CREATE_TIME:
            return header.timestamp_type == CREATE_TIME
        earliest = self.now_ms - self.config.before_max_ms
        latest = self.now_ms + self.config.after_max_ms
        return earliest <= min(header.base_timestamp, header.max_timestamp) and header.max_timestamp <= latest

    def _stamp(self, header: BatchHeader, max_timestamp: int, count: int) -> Appendable:
        view = memoryview(bytearray(self.data)) if self.data.readonly else self.data
        batch = view[: header.size_in_bytes]
        log_append_time = NO_TIMESTAMP
        if self.config.timestamp_type == LOG_APPEND_TIME:
            log_append_time = max_timestamp = self.now_ms
        base_offset = self.first_offset + count - 1 - header.last_offset_delta
        PLACE.pack_into(batch, 0, base_offset, len(batch) - LOG_OVERHEAD, self.leader_epoch)
        if header.timestamp_type != self.config.timestamp_type or header.max_timestamp != max_timestamp:
            attributes = header.attributes & _KEPT_ATTRIBUTES
            if self.config.timestamp_type == LOG_APPEND_TIME:
                attributes |= LOG_APPEND_TIME_FLAG
            batch[ATTRIBUTES_AT : ATTRIBUTES_AT + 2] = attributes.to_bytes(2, "big")
            batch[MAX_TIMESTAMP_AT : MAX_TIMESTAMP_AT + 8] = max_timestamp.to_bytes(8, "big", signed=True)
            stamp_checksum(batch)
        return Appendable(view, read_header(batch), max_timestamp, log_append_time)

    def _build(self, records: list[Record], header: BatchHeader | None) -> Appendable:
        data = build_batch(
            [
                Record(offset, record.timestamp, record.key, record.value, record.headers)
                for offset, record in enumerate(records, start=self.first_offset)
            ],
            base_offset=self.first_offset,
            compression=self.target_codec,
            level=self.config.compression_level,
            timestamp_type=self.config.timestamp_type,
            log_append_time=self.now_ms,
            producer_id=NO_PRODUCER_ID if header is None else header.producer_id,
            producer_epoch=NO_PRODUCER_EPOCH if header is None else header.producer_epoch,
            base_sequence=NO_SEQUENCE if header is None else header.base_sequence,
            transactional=header is not None and header.is_transactional,
            partition_leader_epoch=self.leader_epoch,
        )
        stored = read_header(data)
        if len(data) > self.config.max_message_bytes:
            message = f"Message batch size is {len(data)} bytes in append to partition {self.config.partition}"
            limit = self.config.max_message_bytes
            raise InvalidRecords(
                ErrorCode.MESSAGE_TOO_LARGE, f"{message} which exceeds the maximum configured size of {limit}."
            )
        log_append_time = self.now_ms if self.config.timestamp_type == LOG_APPEND_TIME else NO_TIMESTAMP
        return Appendable(memoryview(data), stored, stored.max_timestamp, log_append_time)
