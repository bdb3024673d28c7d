"""lz4 frames, read and written block by block like Kafka's Lz4BlockInputStream and Lz4BlockOutputStream.

Kafka supports only independent blocks, skips the content size, and does not verify the content checksum. KAFKA-3160:
for magic 0, writers compute the header checksum over the wrong bytes, so readers do not verify it. No library writes
that checksum, so only cramjam's block functions are used.
"""

import struct

import cramjam

from sluice.protocol.records.crc import Bytes
from sluice.protocol.records.invalid import SectionTooLarge

_MAGIC = b"\x04\x22\x4d\x18"
_FLAGS = 0x60  # version 1, independent blocks, no checksums
_BLOCK_64_KB = 0x40
_BLOCK_BYTES = 64 * 1024
_UNCOMPRESSED_BLOCK = 0x80000000
_VERSION_MASK, _VERSION, _INDEPENDENT, _BLOCK_CHECKSUM = 0xC0, 0x40, 0x20, 0x10
_CONTENT_SIZE, _CONTENT_CHECKSUM, _RESERVED_FLAGS = 0x08, 0x04, 0x03
_RESERVED_DESCRIPTOR, _SMALLEST_BLOCK_ID = 0x8F, 4
_LARGEST_RATIO = 255  # one more length byte adds at most 255 bytes, so no block expands further
_PREMATURE_END = "Stream ended prematurely"


def compress(section: Bytes, level: int | None, *, header_checksum: bool) -> bytes:
    """Return `section` as one frame of 64 KiB blocks; without `header_checksum`, with the wrong checksum of magic 0."""
    descriptor = bytes((_FLAGS, _BLOCK_64_KB))
    checksum = xxh32(descriptor if header_checksum else _MAGIC + descriptor) >> 8 & 0xFF
    parts = [_MAGIC, descriptor, bytes((checksum,))]
    view = memoryview(section)
    for start in range(0, len(view), _BLOCK_BYTES):
        block = view[start : start + _BLOCK_BYTES]
        packed = _compress_block(block, level)
        if len(packed) < len(block):
            parts += (struct.pack("<I", len(packed)), packed)
        else:
            parts += (struct.pack("<I", len(block) | _UNCOMPRESSED_BLOCK), bytes(block))
    parts.append(bytes(4))  # end mark: an empty block
    return b"".join(parts)


def _compress_block(block: memoryview, level: int | None) -> bytes:
    if level is None:
        return bytes(cramjam.lz4.compress_block(block, store_size=False))
    return bytes(cramjam.lz4.compress_block(block, mode="high_compression", compression=level, store_size=False))


def decompress(data: Bytes, limit_bytes: int, *, header_checksum: bool) -> tuple[bytes, str | None]:
    view = memoryview(data)
    position, flags, block_bytes, failure = _read_header(view, header_checksum)
    parts: list[memoryview] = []
    room = limit_bytes
    while failure is None:
        if position + 4 > len(view):
            failure = _PREMATURE_END
            break
        length: int = struct.unpack_from("<I", view, position)[0]
        position += 4
        stored = length & _UNCOMPRESSED_BLOCK
        length &= ~_UNCOMPRESSED_BLOCK
        if length == 0:
            # Kafka reads the content checksum without verifying it; a missing one is an error.
            if flags & _CONTENT_CHECKSUM and position + 4 > len(view):
                failure = "no content checksum"
            break
        block = view[position : position + length]
        if length > block_bytes:
            failure = f"Block size {length} exceeded max: {block_bytes}"
        elif len(block) < length:
            failure = _PREMATURE_END
        else:
            failure = _read_block(block, stored, block_bytes, parts)
            position += length
        if failure is None and flags & _BLOCK_CHECKSUM:
            if view[position : position + 4] != xxh32(block).to_bytes(4, "little"):
                parts.pop()
                failure = "Block checksum mismatch, data in block is corrupt."
            position += 4
        if failure is None:
            room -= len(parts[-1])
            if room < 0:
                raise SectionTooLarge(limit_bytes)
    return b"".join(parts), failure


def _read_block(block: memoryview, stored: int, block_bytes: int, parts: list[memoryview]) -> str | None:
    if stored:
        parts.append(block)
        return None
    content = bytearray(min(block_bytes, _LARGEST_RATIO * len(block)))
    try:
        size = cramjam.lz4.decompress_block_into(block, content, output_len=len(content))
    except cramjam.DecompressionError as error:
        return str(error)
    parts.append(memoryview(content)[:size])
    return None


def _read_header(view: memoryview, header_checksum: bool) -> tuple[int, int, int, str | None]:
    if len(view) < 6:
        return 0, 0, 0, _PREMATURE_END
    if view[:4] != _MAGIC:
        return 0, 0, 0, "Stream unsupported (invalid magic bytes)"
    flags, descriptor = view[4], view[5]
    if flags & _VERSION_MASK != _VERSION or not flags & _INDEPENDENT or flags & _RESERVED_FLAGS:
        return 0, 0, 0, f"unsupported frame flags {flags:#04x}"
    if descriptor & _RESERVED_DESCRIPTOR or descriptor >> 4 < _SMALLEST_BLOCK_ID:
        return 0, 0, 0, f"unsupported block descriptor {descriptor:#04x}"
    end = 6 + (8 if flags & _CONTENT_SIZE else 0)
    if end >= len(view):
        return 0, 0, 0, _PREMATURE_END
    if header_checksum and view[end] != xxh32(view[4:end]) >> 8 & 0xFF:
        return 0, 0, 0, "Stream frame descriptor corrupted"
    return end + 1, flags, 1 << (2 * (descriptor >> 4) + 8), None  # block ids 4 to 7: 64 KiB, 256 KiB, 1 MiB, 4 MiB


_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393  # xxHash's primes
_MASK = 0xFFFFFFFF


def xxh32(data: Bytes) -> int:
    """Return the xxHash32 with seed 0; only for frame headers and for block checksums, which few clients write."""
    size = len(data)
    position = 0
    if size >= 16:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while position + 16 <= size:
            for lane, word in enumerate(struct.unpack_from("<4I", data, position)):
                value = (lanes[lane] + word * _P2) & _MASK
                lanes[lane] = (value << 13 | value >> 19) * _P1 & _MASK
            position += 16
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    else:
        value = _P5
    value += size
    while position + 4 <= size:
        value = _rotate(value + struct.unpack_from("<I", data, position)[0] * _P3 & _MASK, 17) * _P4 & _MASK
        position += 4
    for byte in data[position:]:
        value = _rotate(value + byte * _P5 & _MASK, 11) * _P1 & _MASK
    value = (value ^ value >> 15) * _P2 & _MASK
    value = (value ^ value >> 13) * _P3 & _MASK
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
