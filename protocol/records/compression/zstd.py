"""zstd (RFC 8878) with cramjam, which decompresses into a buffer.

Block headers are not compressed, and a block has at most 128 KiB. So an upper bound of the decompressed size is known
before the buffer is allocated.
"""

import struct
from contextlib import suppress

import cramjam

from sluice.protocol.records.crc import Bytes
from sluice.protocol.records.invalid import SectionTooLarge

_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_BLOCK_BYTES = 128 * 1024
_RAW_BLOCK, _RLE_BLOCK = 0, 1
_DEFAULT_LEVEL = 3  # zstd's and Kafka's default
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_LEAST_OF_TWO_BYTES = 256  # subtracted from content sizes of two bytes
_UNKNOWN = 2**64  # above any content size
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)


def compress(section: Bytes, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(section, _DEFAULT_LEVEL if level is None else level))


def decompress(data: Bytes, limit_bytes: int) -> tuple[Bytes, str | None]:
    if not data:
        return b"", None  # no error in Java's ZstdInputStream
    size = _most_bytes(memoryview(data))
    # The bound counts compressed blocks as full, so it may exceed the limit although the content does not.
    section = bytearray(min(size, limit_bytes + _BLOCK_BYTES))
    try:
        written = cramjam.zstd.decompress_into(data, section)
    except cramjam.DecompressionError as error:
        section = _written_before_error(data, section)
        if len(section) > limit_bytes:
            raise SectionTooLarge(limit_bytes) from None
        return section, str(error)
    if written > limit_bytes:
        raise SectionTooLarge(limit_bytes)
    return memoryview(section)[:written], None


def _written_before_error(data: Bytes, section: bytearray) -> bytearray:
    """Return the bytes that were decompressed into `section` before the error.

    The library does not return their number. A second decompression, over different bytes, shows it: written bytes are
    equal in both.
    """
    other = bytearray(b"\xff" * len(section))
    with suppress(cramjam.DecompressionError):
        cramjam.zstd.decompress_into(data, other)
    low, high = 0, len(section)
    while low < high:
        middle = (low + high + 1) // 2
        if section[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return section[:low]


def _most_bytes(view: memoryview) -> int:
    total = position = 0
    while position + 4 <= len(view):
        magic: int = struct.unpack_from("<I", view, position)[0]
        if magic & _SKIPPABLE_MASK == _SKIPPABLE_MAGIC:
            position += 8 + int.from_bytes(view[position + 4 : position + 8], "little")
        elif magic == _MAGIC:
            content, position = _most_bytes_of_frame(view, position + 4)
            total += content
        else:
            break
    return total


def _most_bytes_of_frame(view: memoryview, position: int) -> tuple[int, int]:
    if position >= len(view):
        return 0, position
    descriptor = view[position]
    single_segment = descriptor >> 5 & 1
    size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6] or single_segment
    position += 1 + (1 - single_segment) + _DICTIONARY_ID_BYTES[descriptor & 3] + size_bytes
    content_bytes = int.from_bytes(view[position - size_bytes : position], "little") if size_bytes else _UNKNOWN
    if size_bytes == 2:
        content_bytes += _LEAST_OF_TWO_BYTES
    total = last = 0
    while not last and position + 3 <= len(view):
        header = int.from_bytes(view[position : position + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        total += min(size, _BLOCK_BYTES) if kind in (_RAW_BLOCK, _RLE_BLOCK) else _BLOCK_BYTES
        position += 3 + (1 if kind == _RLE_BLOCK else size)
    return min(total, content_bytes), position + (4 if descriptor >> 2 & 1 else 0)
