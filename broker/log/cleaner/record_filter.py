"""The remains of one batch after cleaning: Kafka's RecordFilter and `MemoryRecords.filterTo`.

    records of an aborted transaction                             removed
    a record without a key                                        removed
    a record whose key has a later offset                         removed
    a tombstone (no value), a marker whose records are removed    removed after its batch's delete horizon
    all others, and all after the last offset in the map          kept

The first cleaning that finds a tombstone or a removable marker sets the batch's delete horizon (KIP-534): the time
of the cleaning plus delete.retention.ms. It replaces the base timestamp; a flag indicates this.

A batch keeps its base and last offset. Of batches without records, only two headers stay: the last of a known producer,
for its sequence or epoch, and the last before the high watermark, for the log end offset. As in Kafka, a rebuilt batch
keeps its codec, regardless of `compression.type`.

Different from Kafka: no batches of magic 0 and 1 from old releases.
"""

from collections.abc import Generator, Mapping
from typing import NamedTuple, TypeVar

from msgspec.structs import astuple, replace

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
Steps = Generator[None, None, _T]
# The rest of a batch, and its greatest timestamp.
Remains = tuple[memoryview | bytes, int]


class BatchCleaner(NamedTuple):
    offsets: OffsetMap
    transactions: CleanedTransactions
    last_records: Mapping[int, LastRecord]
    high_watermark: int
    now_ms: int
    delete_retention_ms: int

    def clean(self, header: BatchHeader, batch: memoryview) -> Steps[Remains | None]:
        """Raise InvalidRecords if the records are unreadable."""
        useless = self.transactions.is_useless(header, batch)
        horizon = header.base_timestamp if header.has_delete_horizon else None
        is_removable = useless and (not header.is_control or (horizon is not None and horizon <= self.now_ms))
        if is_removable or header.record_count == 0:
            return self._without_records(header)
        section = Section(header, batch)
        if header.is_control:
            section.keep_all()
        keeps_tombstones = horizon is None or self.now_ms < horizon
        while not section.is_done:
            section.filter_records(self.offsets, keeps_tombstones, RECORDS_A_STEP)
            yield
        if not section.kept_count:
            return self._without_records(header)
        is_dated = horizon is None and (section.kept_tombstone or (useless and header.is_control))
        if is_dated:
            horizon = self.now_ms + self.delete_retention_ms
        if not is_dated and not section.dropped:
            return batch, header.max_timestamp
        return (yield from _rebuild(header, section, horizon))

    def _without_records(self, header: BatchHeader) -> Remains | None:
        return (_empty(header), header.max_timestamp) if self._must_stay(header) else None

    def _must_stay(self, header: BatchHeader) -> bool:
        if header.last_offset + 1 == self.high_watermark:
            return True
        last = self.last_records.get(header.producer_id)
        if last is None:
            return False
        if last.last_data_offset != NO_OFFSET:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


def _empty(header: BatchHeader) -> bytes:
    """Drop records, codec and delete horizon, as Kafka does."""
    attributes = header.attributes & _KEPT_ATTRIBUTES
    return _batch(header, b"", attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0)


def _rebuild(header: BatchHeader, section: Section, horizon: int | None) -> Steps[Remains]:
    timestamps: list[int] = []
    while len(timestamps) < section.kept_count:
        timestamps += section.timestamps(len(timestamps), RECORDS_A_STEP)
        yield
    max_timestamp = max(timestamps)
    base_timestamp = timestamps[0] if horizon is None else horizon
    is_unchanged = base_timestamp == header.base_timestamp and header.timestamp_type != LOG_APPEND_TIME
    records = []
    for first in range(0, section.kept_count, RECORDS_A_STEP):
        if is_unchanged:
            records.append(section.copy_kept(first, RECORDS_A_STEP))
        else:
            some = timestamps[first : first + RECORDS_A_STEP]
            records.append(section.encode_kept(base_timestamp, first, some))
        yield
    attributes = header.attributes & (_KEPT_ATTRIBUTES | CODEC_MASK)
    if horizon is not None:
        attributes |= DELETE_HORIZON_FLAG
    data = compress(header.compression, b"".join(records), header.magic)
    changes = {"attributes": attributes, "base_timestamp": base_timestamp, "max_timestamp": max_timestamp}
    return _batch(header, data, **changes, record_count=len(timestamps)), max_timestamp


def _batch(header: BatchHeader, data: bytes, **changes: int) -> bytes:
    changed = replace(header, length=HEADER_BYTES + len(data) - LOG_OVERHEAD, **changes)
    batch = bytearray(HEADER.pack(*astuple(changed)) + data)
    stamp_checksum(batch)
    return bytes(batch)
