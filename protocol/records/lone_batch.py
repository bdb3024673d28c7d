"""The batch that a producer without linger sends: one record that has a value and nothing else, not compressed.

Such a record, without key, headers and a timestamp of its own, can be written in one way only in so many bytes, and so
can most of the batch around it. So it need not be walked, only compared: one read takes apart a batch of this size,
whatever it is, and `place`, `PLAIN` and `begin` are what it has where it is such a batch. The record ends with a zero,
of headers.
"""

from collections.abc import Callable, Mapping
from struct import Struct

from .batch import HEADER_BYTES, LOG_OVERHEAD
from .build import varint
from .crc import Bytes

# No record is shorter: five lengths and deltas, attributes, the count of headers.
SMALLEST_BATCH = HEADER_BYTES + 7
# Larger batches are walked: of all sizes up to here the table takes less than a MiB.
_LARGEST = 1024
PLAIN = bytes(6)  # attributes and last offset delta: no codec, no transaction, one record
_NEVER = b"\1"  # a negative length: no record begins so
_COUNT = (1).to_bytes(4, "big")

# Place; magic; checksum; attributes and last offset delta; base and max timestamp; producer id and epoch, base
# sequence; record count and how the record begins; its last byte.
Parts = tuple[bytes, int, int, bytes, int, int, int, int, int, bytes, int]
Shape = tuple[Callable[[Bytes], Parts], bytes, bytes]  # what reads the parts; and of them `place` and `begin`


class _LoneBatches(dict[int, Shape]):
    """Size of a batch, SMALLEST_BATCH at least -> its shape. Above the largest that is kept, none has it."""

    def __missing__(self, size: int) -> Shape:
        if size > _LARGEST:
            return self[SMALLEST_BATCH][0], b"", b""
        begin = _COUNT + record_start(size - HEADER_BYTES)
        place = bytes(8) + (size - LOG_OVERHEAD).to_bytes(4, "big")
        rest = size - HEADER_BYTES + len(_COUNT) - len(begin) - 1
        shape = self[size] = (Struct(f">12s4xBI6sqqqhi{len(begin)}s{rest}xB").unpack_from, place, begin)
        return shape


def record_start(size: int) -> bytes:
    """How `size` bytes begin that are a record of a value and nothing else; b"\\1" if there is no such record."""
    # Its length; attributes, timestamp delta, offset delta, null key; the value and its length; the count of headers.
    for body in range(size - 1, size - 6, -1):
        for value in range(body - 6, max(body - 11, -1), -1):
            start = b"%b\0\0\0\1%b" % (varint(body), varint(value))
            if len(varint(body)) + body == size and len(start) + value + 1 == size:
                return start
    return _NEVER


lone_batches: Mapping[int, Shape] = _LoneBatches()
