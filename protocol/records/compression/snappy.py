"""snappy, in the framing of Java's snappy library (SnappyOutputStream) or raw, as librdkafka and others write it.

Framed data is a header of 16 bytes, then blocks of a length and a raw snappy stream. Data without the header is one raw
stream.
"""

import struct

import cramjam

from sluice.protocol.records.crc import Bytes
from sluice.protocol.records.invalid import SectionTooLarge

_MAGIC = b"\x82SNAPPY\x00"
_HEADER = _MAGIC + struct.pack(">ii", 1, 1)  # version, oldest compatible version
_BLOCK_BYTES = 32 * 1024  # SnappyOutputStream's default
_OLDEST_VERSION = 1
_LENGTH_BYTES = 4
_VARINT_BYTES = 5  # the longest for 32 bits
_LARGEST_EXPANSION = 22  # three bytes copy at most 64


def compress(section: Bytes) -> bytes:
    parts = [_HEADER]
    view = memoryview(section)
    for start in range(0, len(view), _BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def decompress(data: Bytes, limit_bytes: int) -> tuple[bytes, str | None]:
    view = memoryview(data)
    if not view:
        return b"", "[EMPTY_INPUT] Cannot decompress empty stream"
    if len(view) < len(_HEADER) or view[: len(_MAGIC)] != _MAGIC:
        return _decompress_raw(view, limit_bytes, limit_bytes)
    if struct.unpack_from(">i", view, len(_MAGIC))[0] < _OLDEST_VERSION:
        return b"", "[INCOMPATIBLE_VERSION] snappy stream of an unknown version"
    return _blocks(view, len(_HEADER), limit_bytes)


def _blocks(view: memoryview, position: int, limit_bytes: int) -> tuple[bytes, str | None]:
    parts: list[bytes] = []
    room = limit_bytes
    failure = None
    while position + _LENGTH_BYTES <= len(view):  # an incomplete length is the end, not an error
        length_bytes = view[position : position + _LENGTH_BYTES]
        if length_bytes == _MAGIC[:_LENGTH_BYTES]:  # the next of several concatenated streams
            if position + len(_HEADER) > len(view):
                failure = "Insufficient header size in a concatenated block"
                break
            if view[position : position + len(_MAGIC)] != _MAGIC:
                break
            position += len(_HEADER)
            continue
        position += _LENGTH_BYTES
        length = int.from_bytes(length_bytes, "big", signed=True)
        block = view[position : position + max(length, 0)]
        position += length
        if len(block) != length:
            failure = f"chunkSize is negative : {length}" if length < 0 else "failed to read chunk"
            break
        part, failure = _decompress_raw(block, room, limit_bytes)
        if failure is not None:
            break
        parts.append(part)
        room -= len(part)
    return b"".join(parts), failure


def _decompress_raw(block: memoryview, room: int, limit_bytes: int) -> tuple[bytes, str | None]:
    size = _uncompressed_bytes(block)
    if size > _LARGEST_EXPANSION * len(block):  # Java cannot allocate this size, or finds that the data ends early
        return b"", f"the snappy stream declares {size} bytes"
    if size > room:
        raise SectionTooLarge(limit_bytes)
    try:
        return bytes(cramjam.snappy.decompress_raw(block)), None
    except cramjam.DecompressionError as error:
        return b"", str(error)


def _uncompressed_bytes(block: memoryview) -> int:
    size = shift = 0
    for byte in block[:_VARINT_BYTES]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return size
