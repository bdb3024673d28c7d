"""The five codecs of the records section, as Kafka's producers write and its streams read them (`CompressionType`).

Kafka reads records out of a stream: those before the place where the stream breaks are read, then comes the error. So
`decompress` gives both, the bytes up to there and the error. Each codec is a module, imported when it is first used.
"""

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.crc import Bytes
from sluice.protocol.records.invalid import BrokenStream, InvalidRecords

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

# What a read of Kafka's loses when it comes upon an error: snappy's stream fills the buffer it is given block by block,
# and that is this large (`SnappyCompression.decompressionOutputSize`). The others hand out what they have first.
_SNAPPY_READ_BYTES = 2 * 1024

# The most a section may decompress to, where the caller has no limit of its own: what `socket.request.max.bytes` lets
# a producer send uncompressed. Kafka streams, and has no limit but the size of one record
# (`max.decompressed.message.bytes`); here a section is in memory as a whole, so a bomb has to end somewhere.
MAX_SECTION_BYTES = 100 * 1024 * 1024


def check_codec(codec: int) -> int:
    """`codec` itself; raises InvalidRecords for an id that no codec has (attributes have room for 5 to 7)."""
    if codec > ZSTD:
        raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {codec}")
    return codec


def decompress(codec: int, data: Bytes, magic: int, limit_bytes: int) -> tuple[Bytes, BrokenStream | None]:
    """The records section inside `data`, as far as it can be read, and the error that reading it ended with.

    Raises SectionTooLarge when it is more than `limit_bytes`; never holds much more than that.
    """
    section: Bytes
    failure: str | None
    if check_codec(codec) == NONE:
        return data, None
    if codec == GZIP:
        from . import gzip

        section, failure = gzip.decompress(data, limit_bytes)
    elif codec == SNAPPY:
        from . import snappy

        section, failure = snappy.decompress(data, limit_bytes)
    elif codec == LZ4:
        from . import lz4

        section, failure = lz4.decompress(data, limit_bytes, header_checksum=magic > 0)
    else:
        from . import zstd

        section, failure = zstd.decompress(data, limit_bytes)
    if failure is None:
        return section, None
    return section, BrokenStream(failure, _SNAPPY_READ_BYTES if codec == SNAPPY else 1)


def compress(codec: int, section: Bytes, magic: int, level: int | None = None) -> bytes:
    """`section` as a producer of this `magic` compresses it; `level` None is the codec's default."""
    if check_codec(codec) == NONE:
        return bytes(section)
    if codec == GZIP:
        from . import gzip

        return gzip.compress(section, level)
    if codec == SNAPPY:
        from . import snappy

        return snappy.compress(section)
    if codec == LZ4:
        from . import lz4

        return lz4.compress(section, level, header_checksum=magic > 0)
    from . import zstd

    return zstd.compress(section, level)
