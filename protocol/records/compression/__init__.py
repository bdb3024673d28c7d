"""The five codecs of records sections, as Kafka's producers write and its streams read them (`CompressionType`).

Kafka's streams return the records before a corrupt position, then the error. So `decompress` returns both.
"""

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.crc import Bytes
from sluice.protocol.records.invalid import BrokenStream, InvalidRecords

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

# A failed read in Kafka loses these bytes: its snappy stream fills a buffer of this size block by block
# (`SnappyCompression.decompressionOutputSize`). The other codecs lose none.
_SNAPPY_READ_BYTES = 2 * 1024

# Default limit of a decompressed section, which is in memory: `socket.request.max.bytes`. Kafka limits only each record
# (`max.decompressed.message.bytes`).
MAX_SECTION_BYTES = 100 * 1024 * 1024


def check_codec(codec: int) -> int:
    if codec > ZSTD:
        raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {codec}")
    return codec


def decompress(codec: int, data: Bytes, magic: int, limit_bytes: int) -> tuple[Bytes, BrokenStream | None]:
    """Return the decompressed section up to the first error, and that error.

    Raises SectionTooLarge for more than `limit_bytes`, and uses little more memory.
    """
    if check_codec(codec) == NONE:
        return data, None
    from . import codecs  # the libraries are loaded with the first compressed batch

    section, failure = codecs.decompress(NAMES[codec], data, magic, limit_bytes)
    if failure is None:
        return section, None
    return section, BrokenStream(failure, _SNAPPY_READ_BYTES if codec == SNAPPY else 1)


def compress(codec: int, section: Bytes, magic: int, level: int | None = None) -> bytes:
    if check_codec(codec) == NONE:
        return bytes(section)
    from . import codecs

    return codecs.compress(NAMES[codec], section, magic, level)
