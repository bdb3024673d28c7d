"""The indexes of a segment in Kafka's format: OffsetIndex, TimeIndex and TransactionIndex.

Per `index.interval.bytes` of the log, the first two have an entry each: a batch's last offset (relative to the segment,
4 bytes) and position (4); the greatest timestamp so far (8) and the last offset of its batch (4). New entries are saved
when the segment is full, before its recovery point moves, and at shutdown. The third has the aborted transactions with
markers in the segment.
"""

import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import ge
from struct import Struct

from sluice.broker.log.producer_state import AbortedTransaction

from .text_files import write_atomically

_ENTRY = Struct(">II")
_TIME_ENTRY = Struct(">qI")
_TXN_VERSION = 0
_TXN_ENTRY = Struct(">hqqqq")  # version, producer id, first offset, last offset, last stable offset
_IS_LITTLE_ENDIAN = array("H", b"\1\0")[0] == 1


class CorruptIndexError(Exception):
    """A corrupt index, which must be rebuilt from the segment."""


class SegmentIndex:
    """The offset and time indexes; offsets are relative."""

    def __init__(self) -> None:
        self._offsets = array("I")
        self._positions = array("I")
        self._times = bytearray()  # encoded as in the file, since it is rarely read
        self._saved = 0  # entries in the file
        self._saved_times = 0

    @classmethod
    def load(cls, path: str, time_path: str, size: int) -> "SegmentIndex":
        """Load both files of a segment. Raises CorruptIndexError."""
        self = cls()
        words = array("I", _read_entries(path, _ENTRY))
        if _IS_LITTLE_ENDIAN:
            words.byteswap()
        self._offsets, self._positions = words[::2], words[1::2]
        self._times = bytearray(_read_entries(time_path, _TIME_ENTRY))
        self._check(path, time_path, size)
        self._saved, self._saved_times = len(self._offsets), len(self._times)
        return self

    def _check(self, path: str, time_path: str, size: int) -> None:
        for file, entry_bytes, values in (
            (path, _ENTRY.size, self._offsets),
            (path, _ENTRY.size, self._positions),
            (time_path, _TIME_ENTRY.size, [timestamp for timestamp, _ in _TIME_ENTRY.iter_unpack(self._times)]),
        ):
            if any(map(ge, values, islice(values, 1, None))):
                entry = next(number for number in range(1, len(values)) if values[number - 1] >= values[number])
                raise CorruptIndexError(f"{file}: entry at byte {entry * entry_bytes} is not above the previous one")
        if self._positions and self._positions[-1] >= size:
            last = (len(self._positions) - 1) * _ENTRY.size
            raise CorruptIndexError(f"{path}: entry at byte {last} points past the end of the segment")

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, last_offset: int, position: int, max_timestamp: int, offset_of_max: int) -> None:
        self._offsets.append(last_offset)
        self._positions.append(position)
        self.append_time(max_timestamp, offset_of_max)

    def append_time(self, max_timestamp: int, offset_of_max: int) -> None:
        if max_timestamp > self.max_timestamp():
            self._times += _TIME_ENTRY.pack(max_timestamp, offset_of_max)

    def max_timestamp(self) -> int:
        return self.last_time()[0]

    def last_time(self) -> tuple[int, int]:
        if not self._times:
            return -1, 0
        timestamp, offset = _TIME_ENTRY.unpack_from(self._times, len(self._times) - _TIME_ENTRY.size)
        return timestamp, offset

    def position_before(self, offset: int) -> int:
        """Return a position from which to scan for `offset`."""
        entry = bisect_right(self._offsets, offset) - 1
        return self._positions[entry] if entry >= 0 else 0

    def last_position(self) -> int:
        return self._positions[-1] if self._positions else 0

    def position_up_to(self, position: int) -> int:
        entry = bisect_right(self._positions, position) - 1
        return self._positions[entry] if entry >= 0 else 0

    def offset_before_timestamp(self, timestamp: int) -> int:
        """Return an offset before which no batch has a record at or after `timestamp`."""
        count = len(self._times) // _TIME_ENTRY.size
        after = bisect_right(range(count), timestamp, key=self._timestamp)
        return self._time_offset(after - 1) if after else 0

    def truncate_to(self, offset: int) -> None:
        kept = bisect_left(self._offsets, offset)
        del self._offsets[kept:]
        del self._positions[kept:]
        count = len(self._times) // _TIME_ENTRY.size
        while count and self._time_offset(count - 1) >= offset:
            count -= 1
        del self._times[count * _TIME_ENTRY.size :]
        self._saved = min(self._saved, kept)
        self._saved_times = min(self._saved_times, len(self._times))

    def save(self, path: str, time_path: str) -> None:
        words = array("I")
        for offset, position in zip(self._offsets[self._saved :], self._positions[self._saved :], strict=True):
            words.append(offset)
            words.append(position)
        if _IS_LITTLE_ENDIAN:
            words.byteswap()
        _write_behind(path, words.tobytes(), self._saved * _ENTRY.size)
        self._saved = len(self._offsets)
        _write_behind(time_path, bytes(self._times[self._saved_times :]), self._saved_times)
        self._saved_times = len(self._times)

    def _timestamp(self, entry: int) -> int:
        timestamp: int = _TIME_ENTRY.unpack_from(self._times, entry * _TIME_ENTRY.size)[0]
        return timestamp

    def _time_offset(self, entry: int) -> int:
        offset: int = _TIME_ENTRY.unpack_from(self._times, entry * _TIME_ENTRY.size)[1]
        return offset


def write_transaction_index(path: str, aborted: Sequence[AbortedTransaction]) -> None:
    """Remove the file if no transaction was aborted."""
    if aborted:
        entries = (
            _TXN_ENTRY.pack(_TXN_VERSION, one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset)
            for one in aborted
        )
        write_atomically(path, b"".join(entries), sync=False)
    elif os.path.exists(path):
        os.unlink(path)


def read_transaction_index(path: str) -> list[AbortedTransaction]:
    with open(path, "rb") as file:
        data = file.read()
    if len(data) % _TXN_ENTRY.size:
        raise CorruptIndexError(f"{path}: wrong size; expected a multiple of {_TXN_ENTRY.size} bytes, got {len(data)}")
    found = []
    for number, (version, *values) in enumerate(_TXN_ENTRY.iter_unpack(data)):
        if version != _TXN_VERSION:
            at = number * _TXN_ENTRY.size
            raise CorruptIndexError(f"{path}: unsupported version at byte {at}; expected {_TXN_VERSION}, got {version}")
        found.append(AbortedTransaction(*values))
    return found


def _read_entries(path: str, entry: Struct) -> bytes:
    with open(path, "rb") as file:
        data = file.read()
    if len(data) % entry.size:
        raise CorruptIndexError(f"{path}: wrong size; expected a multiple of {entry.size} bytes, got {len(data)} bytes")
    # Kafka preallocates the index files of the active segment, and truncates them at shutdown.
    used = len(data.rstrip(b"\0"))
    return data[: -(-used // entry.size) * entry.size]


def _write_behind(path: str, data: bytes, position: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(handle, data, position)
        os.ftruncate(handle, position + len(data))
    finally:
        os.close(handle)
