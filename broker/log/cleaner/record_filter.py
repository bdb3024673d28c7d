"""What a cleaning leaves of one batch: Kafka's RecordFilter and `MemoryRecords.filterTo`.

    records of an aborted transaction                               go
    a record without a key                                          goes
    a record whose key has a later offset                           goes
    a tombstone (no value), a marker whose records are gone         goes when its batch's delete horizon has come
    the others, and all above the last offset that was looked at    stay

The delete horizon (KIP-534) is set by the cleaning that first finds a tombstone, or a marker to go, with nothing else
left to wait for: its time and delete.retention.ms. It stands where the batch's first timestamp was, as a flag says.

A batch keeps its base offset and its last offset whatever goes. One without records goes too, but for two, of which the
header stays: the last one of a producer that is remembered, whose sequence or epoch it holds, and the last one before
the high watermark, which says where the log ends. What nothing is taken from stays byte for byte; what is made anew is
compressed with the codec it had, whatever `compression.type` says now, as in Kafka.

Differs: Kafka has batches of magic 0 and 1 on disk from old releases; here there are none.
"""

from collections.abc import Generator, Mapping
from typing import TypeVar

from sluice.broker.log.producer_state import NO_OFFSET, LastRecord
from sluice.protocol.records.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)
from sluice.protocol.records.build import stamp_checksum
from sluice.protocol.records.compression import compress

from .offset_map import OffsetMap
from .record_sections import Section
from .transactions import CleanedTransactions

RECORDS_A_STEP = 500  # about half a millisecond
_KEPT_ATTRIBUTES = LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG

_T = TypeVar("_T")
# Something that is done in steps, of about half a millisecond each, and what comes of it.
Steps = Generator[None, None, _T]
# What remains of a batch, and its greatest timestamp.
Remains = tuple[memoryview | bytes, int]


class BatchCleaner:
    """Takes from batches, given in order, what one cleaning takes."""

    __slots__ = ("_delete_retention_ms", "_high_watermark", "_last_records", "_now_ms", "_offsets", "_transactions")

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        last_records: Mapping[int, LastRecord],
        high_watermark: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._offsets = offsets
        self._transactions = transactions
        self._last_records = last_records
        self._high_watermark = high_watermark
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms

    def clean(self, header: BatchHeader, batch: memoryview) -> Steps[Remains | None]:
        """What is left of `batch`; None: nothing. Raises InvalidRecords where its records cannot be read."""
        useless = self._transactions.is_useless(header, batch)
        horizon = header.base_timestamp if header.has_delete_horizon else None
        goes = useless and (not header.is_control or (horizon is not None and horizon <= self._now_ms))
        if goes or header.record_count == 0:
            return self._without_records(header)
        section = Section(header, batch)
        if header.is_control:
            section.keep_all()
        keeps_tombstones = horizon is None or self._now_ms < horizon
        while not section.is_done:
            section.sift(self._offsets, keeps_tombstones, RECORDS_A_STEP)
            yield
        if not section.kept_count:
            return self._without_records(header)
        is_dated = horizon is None and (section.kept_tombstone or (useless and header.is_control))
        if is_dated:
            horizon = self._now_ms + self._delete_retention_ms
        if not is_dated and not section.dropped:
            return batch, header.max_timestamp
        return (yield from _rebuild(header, section, horizon))

    def _without_records(self, header: BatchHeader) -> Remains | None:
        return (_empty(header), header.max_timestamp) if self._must_stay(header) else None

    def _must_stay(self, header: BatchHeader) -> bool:
        if header.last_offset + 1 == self._high_watermark:
            return True
        last = self._last_records.get(header.producer_id)
        if last is None:
            return False
        if last.last_data_offset != NO_OFFSET:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


def _empty(header: BatchHeader) -> bytes:
    """The batch without records and, as Kafka writes it, without codec and delete horizon."""
    return _batch(header, header.attributes & _KEPT_ATTRIBUTES, NO_TIMESTAMP, header.max_timestamp, 0, b"")


def _rebuild(header: BatchHeader, section: Section, horizon: int | None) -> Steps[Remains]:
    """The batch with the records that stay, as MemoryRecordsBuilder would make it of them."""
    timestamps: list[int] = []
    while len(timestamps) < section.kept_count:
        timestamps += section.timestamps(len(timestamps), RECORDS_A_STEP)
        yield
    max_timestamp = max(timestamps)
    base_timestamp = timestamps[0] if horizon is None else horizon
    is_as_it_was = base_timestamp == header.base_timestamp and header.timestamp_type != LOG_APPEND_TIME
    records = []
    for first in range(0, section.kept_count, RECORDS_A_STEP):
        if is_as_it_was:
            records.append(section.kept_as_they_are(first, RECORDS_A_STEP))
        else:
            some = timestamps[first : first + RECORDS_A_STEP]
            records.append(section.kept_from(base_timestamp, first, some))
        yield
    attributes = header.attributes & (_KEPT_ATTRIBUTES | CODEC_MASK)
    if horizon is not None:
        attributes |= DELETE_HORIZON_FLAG
    data = compress(header.compression, b"".join(records), header.magic)
    return _batch(header, attributes, base_timestamp, max_timestamp, len(timestamps), data), max_timestamp


def _batch(
    header: BatchHeader, attributes: int, base_timestamp: int, max_timestamp: int, record_count: int, data: bytes
) -> bytes:
    """A batch with the offsets and the producer of `header`, and with these records."""
    batch = bytearray(HEADER_BYTES + len(data))
    batch[HEADER_BYTES:] = data
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        len(batch) - LOG_OVERHEAD,
        header.partition_leader_epoch,
        header.magic,
        0,
        attributes,
        header.last_offset_delta,
        base_timestamp,
        max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        record_count,
    )
    stamp_checksum(batch)
    return bytes(batch)
