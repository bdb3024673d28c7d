"""The batch of a producer without linger: one uncompressed record with a value, no key and no headers.

Most bytes of such a batch follow from its size. So the batch is not parsed: one read splits it into parts, and some of
them are compared with their only valid values, `place`, `PLAIN` and `begin`.
"""

from collections.abc import Callable, Mapping
from struct import Struct

from .batch import HEADER_BYTES, LOG_OVERHEAD
from .build import varint
from .crc import Bytes

# The shortest record: five lengths and deltas, attributes, the count of headers.
SMALLEST_BATCH = HEADER_BYTES + 7
# Larger batches are parsed; for sizes up to this the table needs less than 1 MiB.
_LARGEST = 1024
PLAIN = bytes(6)  # attributes and last offset delta: no codec, no transaction, one record
_NEVER = b"\1"  # a negative length, with which no record starts
_COUNT = (1).to_bytes(4, "big")

# Place; magic; checksum; attributes and last offset delta; base and max timestamp; producer id and epoch, base
# sequence; record count and start of the record; its last byte.
Parts = tuple[bytes, int, int, bytes, int, int, int, int, int, bytes, int]
Shape = tuple[Callable[[Bytes], Parts], bytes, bytes]  # reader of the parts; expected `place` and `begin`


class _LoneBatches(dict[int, Shape]):
    """Batch size, at least SMALLEST_BATCH -> shape. Sizes above `_LARGEST` get a shape that never matches."""

    def __missing__(self, size: int) -> Shape:
        if size > _LARGEST:
            return self[SMALLEST_BATCH][0], b"", b""
        begin = _COUNT + record_start(size - HEADER_BYTES)
        place = bytes(8) + (size - LOG_OVERHEAD).to_bytes(4, "big")
        rest = size - HEADER_BYTES + len(_COUNT) - len(begin) - 1
        shape = self[size] = (Struct(f">12s4xBI6sqqqhi{len(begin)}s{rest}xB").unpack_from, place, begin)
        return shape


def record_start(size: int) -> bytes:
    # Length; attributes, timestamp delta, offset delta, null key; value length and value; count of headers.
    for body in range(size - 1, size - 6, -1):
        for value in range(body - 6, max(body - 11, -1), -1):
            start = b"%b\0\0\0\1%b" % (varint(body), varint(value))
            if len(varint(body)) + body == size and len(start) + value + 1 == size:
                return start
    return _NEVER


lone_batches: Mapping[int, Shape] = _LoneBatches()
