"""Passes over a batch's records for a cleaning: collect keys, or find the records to keep.

Both passes can stop and continue, because a batch may exceed one step. Kept records are copied; only the timestamp
delta is re-encoded if the base timestamp changes.
"""

from collections.abc import Iterator

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import HEADER_BYTES, BatchHeader
from sluice.protocol.records.build import varint
from sluice.protocol.records.compression import MAX_SECTION_BYTES, decompress
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import VarintError, read_varint, read_varlong, record_timestamp

from .offset_map import SHARD_MASK, OffsetMap


class Section:
    """The records of one batch and the position of a pass. Raises InvalidRecords if unreadable."""

    def __init__(self, header: BatchHeader, batch: memoryview) -> None:
        section, failure = decompress(header.compression, batch[HEADER_BYTES:], header.magic, MAX_SECTION_BYTES)
        if failure is not None:
            raise failure
        self._data = bytes(section)
        self._header = header
        self._left = header.record_count
        self._position = 0
        self._starts: list[int] = []  # of the records to keep, like `_ends`
        self._ends: list[int] = []
        self.dropped = False
        self.kept_tombstone = False

    @property
    def is_done(self) -> bool:
        return self._left == 0

    @property
    def kept_count(self) -> int:
        return len(self._starts)

    def collect_keys(self, offsets: OffsetMap, from_offset: int, most_records: int) -> bool:
        """Return False if a key does not fit."""
        shards, room = offsets.shards, offsets.room()
        # No more records than free entries, so that only a full map needs a check.
        for _, _, offset, key, _ in self._records(min(most_records, room or most_records)):
            if key is not None and offset >= from_offset:
                if not room:
                    return False
                shards[hash(key) & SHARD_MASK][key] = offsets.latest_offset = offset
        return True

    def filter_records(self, offsets: OffsetMap, keeps_tombstones: bool, most_records: int) -> None:
        shards, latest_offset = offsets.shards, offsets.latest_offset
        for start, end, offset, key, has_value in self._records(most_records):
            is_latest = key is not None and offset >= shards[hash(key) & SHARD_MASK].get(key, -1)
            if offset > latest_offset or (is_latest and (has_value or keeps_tombstones)):
                self._starts.append(start)
                self._ends.append(end)
                self.kept_tombstone |= not has_value
            else:
                self.dropped = True

    def _records(self, most: int) -> Iterator[tuple[int, int, int, bytes | None, bool]]:
        """Yield start, end, offset, key and whether there is a value, for each of the next records."""
        data, base_offset, position = self._data, self._header.base_offset, self._position
        count = min(self._left, most)
        try:
            for _ in range(count):
                end, at = _end_and_body(data, position)
                while data[at] > 127:  # timestamp
                    at += 1
                byte = data[at + 1]
                offset_delta, at = (byte >> 1, at + 2) if byte < 128 else read_varint(data, at + 1)
                byte = data[at]
                key = None
                if byte & 1:
                    at += 1
                else:
                    size, at = (byte >> 1, at + 1) if byte < 128 else read_varint(data, at)
                    if at + size > end:
                        raise IndexError(at)
                    key = data[at : at + size]
                    at += size
                yield position, end, base_offset + offset_delta, key, not data[at] & 1
                position = end
        except (IndexError, VarintError):
            raise _unreadable(self._header) from None
        self._position = position
        self._left -= count
        if not self._left and position < len(data):
            raise _unreadable(self._header)

    def keep_all(self) -> None:
        data, position = self._data, 0
        for _ in range(self._left):
            end, _ = _end_and_body(data, position)
            self._starts.append(position)
            self._ends.append(end)
            position = end
        self._left = 0

    def timestamps(self, first: int, most_records: int) -> list[int]:
        found = []
        for start in self._starts[first : first + most_records]:
            _, at = _end_and_body(self._data, start)
            delta, _ = read_varlong(self._data, at)
            found.append(record_timestamp(self._header, delta))
        return found

    def copy_kept(self, first: int, most_records: int) -> bytes:
        data, last = self._data, first + most_records
        return b"".join(
            [data[start:end] for start, end in zip(self._starts[first:last], self._ends[first:last], strict=True)]
        )

    def encode_kept(self, base_timestamp: int, first: int, timestamps: list[int]) -> bytes:
        data, last = self._data, first + len(timestamps)
        parts: list[bytes] = []
        for start, end, timestamp in zip(self._starts[first:last], self._ends[first:last], timestamps, strict=True):
            _, at = _end_and_body(data, start)
            _, rest = read_varlong(data, at)
            delta = varint(timestamp - base_timestamp)
            parts += (varint(1 + len(delta) + end - rest), b"\0", delta, data[rest:end])
        return b"".join(parts)


def _end_and_body(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    if byte < 128:
        end = position + 1 + (byte >> 1)
        position += 2
    else:
        size, position = read_varint(data, position)
        end = position + size
        position += 1
    if byte & 1 or end > len(data):
        raise IndexError(end)
    return end, position


def _unreadable(header: BatchHeader) -> InvalidRecords:
    message = f"unreadable record in the batch at offset {header.base_offset}"
    return InvalidRecords(ErrorCode.INVALID_RECORD, message)
