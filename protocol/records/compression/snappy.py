"""snappy in the framing of Java's snappy library (SnappyOutputStream), and raw, as librdkafka and others write it.

Framed: a header of 16 bytes, then blocks, each its length and a raw snappy stream. Whatever does not begin with the
header is taken for one raw stream, as SnappyInputStream does.
"""

import struct

import cramjam

from sluice.protocol.records.crc import Bytes
from sluice.protocol.records.invalid import SectionTooLarge

_MAGIC = b"\x82SNAPPY\x00"
_HEADER = _MAGIC + struct.pack(">ii", 1, 1)  # version, and the oldest version that can read it
_BLOCK_BYTES = 32 * 1024  # SnappyOutputStream's default
_MAGIC_AS_LENGTH = _MAGIC[:4]
_OLDEST_VERSION = 1


def compress(section: Bytes) -> bytes:
    """`section` framed as Java's producers frame it. Snappy has no levels."""
    parts = [_HEADER]
    view = memoryview(section)
    for start in range(0, len(view), _BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def decompress(data: Bytes, limit_bytes: int) -> tuple[bytes, str | None]:
    """What `data` holds, as far as it can be read, and what was wrong. Raises SectionTooLarge."""
    view = memoryview(data)
    if not view:
        return b"", "[EMPTY_INPUT] Cannot decompress empty stream"
    if len(view) < len(_HEADER) or view[: len(_MAGIC)] != _MAGIC:
        try:
            return _block(view, limit_bytes), None
        except cramjam.DecompressionError as error:
            return b"", str(error)
    if struct.unpack_from(">i", view, len(_MAGIC) + 4)[0] < _OLDEST_VERSION:
        return b"", "[INCOMPATIBLE_VERSION] snappy stream of an unknown version"
    return _blocks(view, len(_HEADER), limit_bytes)


def _blocks(view: memoryview, position: int, limit_bytes: int) -> tuple[bytes, str | None]:
    parts: list[bytes] = []
    while position + 4 <= len(view):  # fewer than the 4 bytes of a length are the end, not an error
        length_bytes = view[position : position + 4]
        position += 4
        if length_bytes == _MAGIC_AS_LENGTH:  # streams may be concatenated: here the next one begins
            position += len(_HEADER) - 4
            if position > len(view):
                return b"".join(parts), "Insufficient header size in a concatenated block"
            continue
        length = int.from_bytes(length_bytes, "big", signed=True)
        if length < 0:
            return b"".join(parts), f"chunkSize is too big or negative : {length}"
        block = view[position : position + length]
        if len(block) < length:
            return b"".join(parts), "failed to read chunk"
        position += length
        try:
            parts.append(_block(block, limit_bytes))
        except cramjam.DecompressionError as error:
            return b"".join(parts), str(error)
        limit_bytes -= len(parts[-1])
    return b"".join(parts), None


def _block(block: memoryview, limit_bytes: int) -> bytes:
    """One raw snappy stream, which begins with the length it has uncompressed."""
    if cramjam.snappy.decompress_raw_len(block) > limit_bytes:
        raise SectionTooLarge(limit_bytes)
    return bytes(cramjam.snappy.decompress_raw(block))
