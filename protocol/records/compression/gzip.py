"""gzip (RFC 1952) with zlib, reading like Java's GZIPInputStream.

Data is returned before its trailer is checked. Several members may follow each other; other data after the last member
is ignored. If deflate data is corrupt, the chunk being inflated is lost.
"""

import zlib

from sluice.protocol.records.crc import Bytes
from sluice.protocol.records.invalid import SectionTooLarge

_WHOLE_MEMBER = 16 + zlib.MAX_WBITS  # zlib handles header and trailer
_RAW_DEFLATE = -zlib.MAX_WBITS
_INPUT_BYTES = 8 * 1024  # the input buffer of Kafka's GzipCompression
_OUTPUT_BYTES = 16 * 1024  # and its output buffer
_HEADER_BYTES = 10
_TRAILER_BYTES = 8
_LEAST_LEFT_FOR_A_MEMBER = 26  # GZIPInputStream reads another member if more than trailer+header+trailer remains
_FHCRC, _FEXTRA, _FNAME, _FCOMMENT = 2, 4, 8, 16
_DEFAULT_LEVEL = -1


def compress(section: Bytes, level: int | None) -> bytes:
    compressor = zlib.compressobj(_DEFAULT_LEVEL if level is None else level, zlib.DEFLATED, _WHOLE_MEMBER)
    return compressor.compress(section) + compressor.flush()


def decompress(data: Bytes, limit_bytes: int) -> tuple[bytes, str | None]:
    inflater = zlib.decompressobj(_WHOLE_MEMBER)
    try:
        section = inflater.decompress(data, limit_bytes + 1)
    except zlib.error:
        return _decompress_in_pieces(bytes(data), limit_bytes)
    if len(section) > limit_bytes:
        raise SectionTooLarge(limit_bytes)
    if inflater.eof and not inflater.unused_data:
        return section, None
    return _decompress_in_pieces(bytes(data), limit_bytes)


def _decompress_in_pieces(data: bytes, limit_bytes: int) -> tuple[bytes, str | None]:
    """Inflate like Java, for data other than one whole and correct member."""
    section = bytearray()
    position, failure = _skip_header(data, 0)
    while failure is None:
        start = len(section)
        position, failure = _inflate(data, position, section, limit_bytes)
        if failure is None:
            failure = _check_trailer(data, position, section[start:])
        if failure is not None or len(data) - position <= _LEAST_LEFT_FOR_A_MEMBER:
            break
        position, no_member = _skip_header(data, position + _TRAILER_BYTES)
        if no_member is not None:
            break
    return bytes(section), failure


def _inflate(data: bytes, position: int, section: bytearray, limit_bytes: int) -> tuple[int, str | None]:
    inflater = zlib.decompressobj(_RAW_DEFLATE)
    while not inflater.eof:
        piece = inflater.unconsumed_tail
        if not piece:
            piece = data[position : position + _INPUT_BYTES]
            position += len(piece)
        try:
            inflated = inflater.decompress(piece, _OUTPUT_BYTES)
        except zlib.error as error:
            return position, str(error)
        if not piece and not inflated and not inflater.eof:
            return position, "Unexpected end of ZLIB input stream"
        section += inflated
        if len(section) > limit_bytes:
            raise SectionTooLarge(limit_bytes)
    return position - len(inflater.unused_data), None


def _skip_header(data: bytes, position: int) -> tuple[int, str | None]:
    header = data[position : position + _HEADER_BYTES]
    if not b"\x1f\x8b".startswith(header[:2]):
        return position, "Not in GZIP format"
    if len(header) < _HEADER_BYTES:
        return position, "end of stream in the header"
    if header[2] != zlib.DEFLATED:
        return position, "Unsupported compression method"
    flags = header[3]
    end = position + _HEADER_BYTES
    if flags & _FEXTRA:
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for flag in (_FNAME, _FCOMMENT):
        if flags & flag:
            end = data.find(b"\0", end) + 1
            if end == 0:
                return position, "end of stream in the header"
    if flags & _FHCRC:
        checksum = zlib.crc32(data[position:end]) & 0xFFFF
        if checksum != int.from_bytes(data[end : end + 2], "little"):
            return position, "Corrupt GZIP header"
        end += 2
    return (end, None) if end <= len(data) else (position, "end of stream in the header")


def _check_trailer(data: bytes, position: int, inflated: bytearray) -> str | None:
    trailer = data[position : position + _TRAILER_BYTES]
    if len(trailer) < _TRAILER_BYTES:
        return "end of stream in the trailer"
    expected = zlib.crc32(inflated).to_bytes(4, "little") + (len(inflated) & 0xFFFFFFFF).to_bytes(4, "little")
    return None if trailer == expected else "Corrupt GZIP trailer"
