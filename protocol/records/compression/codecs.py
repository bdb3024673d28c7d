"""The codec of each name."""

from sluice.protocol.records.crc import Bytes

from . import gzip, lz4, snappy, zstd


def decompress(codec: str, data: Bytes, magic: int, limit_bytes: int) -> tuple[Bytes, str | None]:
    """Return the decompressed section up to the first error, and that error."""
    if codec == "gzip":
        return gzip.decompress(data, limit_bytes)
    if codec == "snappy":
        return snappy.decompress(data, limit_bytes)
    if codec == "lz4":
        return lz4.decompress(data, limit_bytes, header_checksum=magic > 0)
    return zstd.decompress(data, limit_bytes)


def compress(codec: str, section: Bytes, magic: int, level: int | None) -> bytes:
    if codec == "gzip":
        return gzip.compress(section, level)
    if codec == "snappy":
        return snappy.compress(section)
    if codec == "lz4":
        return lz4.compress(section, level, header_checksum=magic > 0)
    return zstd.compress(section, level)
