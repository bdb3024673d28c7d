"""Compression codecs: round trips, both snappy framings, corrupt streams, and decompression bombs."""

import gzip
import struct
import tracemalloc
import zlib

import cramjam
import pytest
from aiokafka import codec as aiokafka_codec
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.compression import (
    GZIP,
    LZ4,
    MAX_SECTION_BYTES,
    NAMES,
    NONE,
    SNAPPY,
    ZSTD,
    check_codec,
    compress,
    decompress,
)
from sluice.protocol.records.compression.lz4 import xxh32
from sluice.protocol.records.invalid import InvalidRecords, SectionTooLarge

CODECS = range(1, len(NAMES))
LIMIT = 2**22
TEXT = b"the same words again and " * 12_000  # 300 kB: several blocks of every codec
SECTIONS = st.binary(max_size=2000) | st.builds(
    lambda part, times: part * times, st.binary(max_size=50), st.integers(0, 3000)
)
XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


def decompressed(codec: int, data: bytes, magic: int = 2, limit: int = LIMIT) -> bytes:
    section, failure = decompress(codec, data, magic, limit)
    assert failure is None
    return bytes(section)


def broken(codec: int, data: bytes) -> tuple[bytes, str]:
    section, failure = decompress(codec, data, 2, LIMIT)
    assert failure is not None
    assert failure.code == ErrorCode.UNKNOWN_SERVER_ERROR
    return bytes(section), failure.message


@pytest.mark.parametrize("codec", range(len(NAMES)), ids=NAMES)
@pytest.mark.parametrize("magic", [0, 1, 2])
@settings(max_examples=settings().max_examples // 6)
@given(section=SECTIONS)
def test_compressed_data_round_trips(codec: int, magic: int, section: bytes) -> None:
    assert decompressed(codec, compress(codec, section, magic), magic) == section


@pytest.mark.parametrize("codec", CODECS, ids=NAMES[1:])
def test_data_of_many_blocks_round_trips(codec: int) -> None:
    noise = b"".join(xxh32(index.to_bytes(4, "big")).to_bytes(4, "big") for index in range(20_000))
    for section in (TEXT, noise, TEXT + noise):
        assert decompressed(codec, compress(codec, section, 2)) == section


OTHER_LIBRARIES = {
    "aiokafka's gzip": (aiokafka_codec.gzip_decode, GZIP),
    "aiokafka's snappy": (aiokafka_codec.snappy_decode, SNAPPY),
    "aiokafka's lz4": (aiokafka_codec.lz4_decode, LZ4),
    "aiokafka's zstd": (aiokafka_codec.zstd_decode, ZSTD),
    "the standard library's gzip": (gzip.decompress, GZIP),
}


@pytest.mark.parametrize(("decode", "codec"), OTHER_LIBRARIES.values(), ids=OTHER_LIBRARIES)
@settings(max_examples=settings().max_examples // 6)
@given(section=SECTIONS)
def test_other_libraries_read_our_output(decode: object, codec: int, section: bytes) -> None:
    assert callable(decode)
    if section:
        assert decode(compress(codec, section, 2)) == section


@pytest.mark.parametrize("codec", CODECS, ids=NAMES[1:])
def test_truncated_stream_gives_a_prefix_of_the_data(codec: int) -> None:
    data = compress(codec, TEXT, 2)
    for size in (*range(min(200, len(data))), *range(200, len(data), len(data) // 50), len(data) - 1):
        section, failure = decompress(codec, data[:size], 2, LIMIT)
        assert TEXT.startswith(bytes(section))
        # Snappy blocks have no end mark: a stream may end between two blocks or inside a block length.
        assert failure is not None or codec == SNAPPY or (codec == ZSTD and size == 0), f"cut at {size}"


def test_truncated_zstd_stream_gives_the_data_before_the_cut() -> None:
    # Hexadecimal noise compresses to half, in blocks that are decoded only as a whole.
    section = b"".join(b"%08x" % xxh32(index.to_bytes(4, "big")) for index in range(50_000))
    data = compress(ZSTD, section, 2)
    assert broken(ZSTD, data[: len(data) // 2])[0] == section[: 128 * 1024]


@pytest.mark.parametrize("codec", CODECS, ids=NAMES[1:])
@given(position=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_flipped_bit_causes_no_unexpected_error(codec: int, position: int, bit: int) -> None:
    data = bytearray(compress(codec, TEXT, 2))
    data[position % len(data)] ^= 1 << bit
    try:
        section, _ = decompress(codec, bytes(data), 2, LIMIT)
    except SectionTooLarge:
        return
    assert len(section) <= LIMIT


@pytest.mark.parametrize("codec", CODECS, ids=NAMES[1:])
def test_decompression_bomb_is_rejected_in_bounded_memory(codec: int) -> None:
    bomb = compress(codec, bytes(50_000_000), 2)
    limit = 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(SectionTooLarge, match="more than 1000000 bytes") as error:
            decompress(codec, bomb, 2, limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.value.code == ErrorCode.INVALID_RECORD
    assert peak < 5 * limit


@pytest.mark.parametrize("codec", CODECS, ids=NAMES[1:])
def test_data_of_exactly_the_limit_is_accepted(codec: int) -> None:
    section = bytes(100_000)
    data = compress(codec, section, 2)
    assert decompressed(codec, data, limit=100_000) == section
    with pytest.raises(SectionTooLarge):
        decompress(codec, data, 2, 99_999)


def test_wrong_content_size_in_a_zstd_frame_allocates_no_memory() -> None:
    header = struct.pack("<IBQ", 0xFD2FB528, 0xE0, 2**60)
    tracemalloc.start()
    try:
        broken(ZSTD, header + b"\x01\0\0")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_unknown_codec_has_javas_error() -> None:
    for codec in (5, 6, 7):
        with pytest.raises(InvalidRecords, match=f"Unknown compression type id: {codec}") as error:
            check_codec(codec)
        assert error.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_limit_is_the_largest_uncompressed_request() -> None:
    assert MAX_SECTION_BYTES == 104_857_600


def test_uncompressed_data_is_not_copied() -> None:
    view = memoryview(b"section")
    assert decompress(NONE, view, 2, 0) == (view, None)


class TestGzip:
    MEMBER = gzip.compress(TEXT, mtime=0)

    def test_gzip_members_are_concatenated(self) -> None:
        assert decompressed(GZIP, self.MEMBER + self.MEMBER + compress(GZIP, b"end", 2)) == TEXT + TEXT + b"end"

    @pytest.mark.parametrize("garbage", [b"x", b"x" * 40, bytes(100), b"\x1f\x8b" + b"x" * 40], ids=repr)
    def test_trailing_data_after_gzip_members_is_ignored(self, garbage: bytes) -> None:
        assert decompressed(GZIP, self.MEMBER + garbage) == TEXT

    def test_gzip_header_fields_are_skipped(self) -> None:
        deflated = self.MEMBER[10:]
        header = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\0abc" + b"name\0" + b"comment\0"
        checksum = (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little")
        second = header + checksum + deflated
        assert decompressed(GZIP, second) == TEXT
        assert decompressed(GZIP, self.MEMBER + second) == TEXT + TEXT
        assert "Corrupt GZIP header" in broken(GZIP, header + b"\0\0" + deflated)[1]
        for size in range(len(header) + 2):
            assert broken(GZIP, second[:size])[0] == b""

    def test_gzip_text_flag_adds_no_header_field(self) -> None:
        text = self.MEMBER[:3] + b"\1" + self.MEMBER[4:]
        assert decompressed(GZIP, text + text) == TEXT + TEXT

    def test_gzip_data_is_returned_before_its_trailer_is_checked(self) -> None:
        assert broken(GZIP, self.MEMBER[:-8] + bytes(8)) == (
            TEXT,
            "Failed to decompress record stream: Corrupt GZIP trailer",
        )
        assert broken(GZIP, self.MEMBER[:-1])[0] == TEXT

    def test_corrupt_deflate_data_loses_the_8_kib_that_are_being_inflated(self) -> None:
        header = gzip.compress(b"")[:10]
        stored_block = struct.pack("<BHH", 0, 30_000, 30_000 ^ 0xFFFF) + TEXT[:30_000]
        invalid_block = b"\7"
        section, _ = broken(GZIP, header + stored_block + invalid_block + bytes(100))
        assert len(section) == 3 * 8 * 1024 - 5

    @pytest.mark.parametrize(
        ("data", "message"),
        [(b"", "end of stream"), (b"not gzip at all", "Not in GZIP"), (b"\x1f\x8b\x07" + bytes(20), "method")],
        ids=["nothing", "something else", "another method"],
    )
    def test_invalid_gzip_stream_is_rejected(self, data: bytes, message: str) -> None:
        section, said = broken(GZIP, data)
        assert section == b""
        assert message in said


class TestSnappy:
    RAW = bytes(cramjam.snappy.compress_raw(TEXT))
    OK = compress(SNAPPY, b"ok", 2)

    def test_raw_snappy_streams_are_read(self) -> None:
        assert decompressed(SNAPPY, self.RAW) == TEXT
        for size in (5, 128, 16_384):  # sizes of one to three bytes
            raw = bytes(cramjam.snappy.compress_raw(bytes(size)))
            assert decompressed(SNAPPY, raw) == bytes(size)
            with pytest.raises(SectionTooLarge):
                decompress(SNAPPY, raw, 2, size - 1)

    def test_snappy_compatible_version_is_ignored(self) -> None:
        data = compress(SNAPPY, TEXT, 2)
        assert decompressed(SNAPPY, data[:12] + bytes(4) + data[16:]) == TEXT

    def test_snappy_streams_may_be_concatenated(self) -> None:
        assert decompressed(SNAPPY, compress(SNAPPY, TEXT, 2) + compress(SNAPPY, b"end", 2)) == TEXT + b"end"

    def test_failed_read_of_a_snappy_stream_loses_up_to_2_kib(self) -> None:
        _, failure = decompress(SNAPPY, self.OK + b"\0\0\0\5abc", 2, LIMIT)
        assert failure is not None
        assert failure.read_bytes == 2048

    def test_snappy_data_resembling_a_second_header_ends_the_stream(self) -> None:
        assert decompressed(SNAPPY, compress(SNAPPY, TEXT, 2) + XERIAL[:4] + bytes(12)) == TEXT

    def test_snappy_blocks_are_32_kib_after_javas_header(self) -> None:
        data = compress(SNAPPY, bytes(40_000), 2)
        assert data.startswith(XERIAL)
        length = int.from_bytes(data[16:20], "big")
        assert cramjam.snappy.decompress_raw_len(data[20 : 20 + length]) == 32 * 1024

    @pytest.mark.parametrize(
        ("data", "section", "message"),
        [
            pytest.param(b"", b"", "Cannot decompress empty stream", id="nothing"),
            pytest.param(XERIAL[:8] + struct.pack(">ii", 0, 1) + RAW, b"", "INCOMPATIBLE_VERSION", id="version 0"),
            pytest.param(OK + b"\xff\xff\xff\xff", b"ok", "negative", id="a negative length"),
            pytest.param(OK + b"\0\0\0\5abc", b"ok", "failed to read chunk", id="a cut block"),
            pytest.param(OK + b"\0\0\0\3abc", b"ok", "snappy", id="a corrupt block"),
            pytest.param(OK + XERIAL[:10], b"ok", "Insufficient header size", id="a cut second header"),
            pytest.param(
                b"\xff\xff\xff\xff\x0f" + RAW[2:],
                b"",
                "declares 4294967295 bytes",
                id="more bytes than Java can allocate",
            ),
            pytest.param(
                OK + b"\0\0\0\6\xff\xff\xff\xff\7a",
                b"ok",
                "declares 2147483647 bytes",
                id="a block of more bytes than its copies can have",
            ),
        ],
    )
    def test_snappy_error_follows_the_valid_data(self, data: bytes, section: bytes, message: str) -> None:
        given_section, said = broken(SNAPPY, data)
        assert given_section == section
        assert message in said


class TestLz4:
    MAGIC = b"\x04\x22\x4d\x18"

    @pytest.mark.parametrize(
        ("data", "expected"),
        [(b"", 0x02CC5D05), (b"abc", 0x32D153FF), (b"Nobody inspects the spammish repetition", 0xE2293B2F)],
        ids=["nothing", "three bytes", "more than a stripe"],
    )
    def test_xxh32_equals_the_reference_values(self, data: bytes, expected: int) -> None:
        assert xxh32(data) == expected

    def test_lz4_of_magic_0_writes_the_wrong_header_checksum_and_ignores_it_on_read(self) -> None:
        old, new = compress(LZ4, TEXT, 0), compress(LZ4, TEXT, 1)
        assert (old[:6], old[7:]) == (new[:6], new[7:])
        assert (old[6], new[6]) == (0x1A, 0x82), "KAFKA-3160: the old checksum includes the magic number"
        assert decompressed(LZ4, old, 0) == decompressed(LZ4, new, 0) == decompressed(LZ4, new, 1) == TEXT
        assert broken(LZ4, old)[1].endswith("Stream frame descriptor corrupted")

    def test_lz4_content_sizes_and_checksums_are_skipped_and_block_checksums_verified(self) -> None:
        block = bytes(cramjam.lz4.compress_block(b"content" * 9, store_size=False))
        size = struct.pack("<I", len(block))
        descriptor = b"\x7c\x40" + struct.pack("<Q", 63)
        frame = self.MAGIC + descriptor + bytes((xxh32(descriptor) >> 8 & 0xFF,)) + size + block
        checked = frame + struct.pack("<I", xxh32(block))
        assert decompressed(LZ4, checked + bytes(4) + b"sum!") == b"content" * 9
        assert broken(LZ4, checked + bytes(4))[0] == b"content" * 9
        assert "Block checksum mismatch" in broken(LZ4, frame + bytes(8) + b"sum!")[1]

    @pytest.mark.parametrize(
        ("header", "message"),
        [
            pytest.param(b"\x04\x22\x4d\x19\x60\x40\x82", "invalid magic bytes", id="magic"),
            pytest.param(MAGIC + b"\x40\x40\x82", "unsupported frame flags 0x40", id="dependent blocks"),
            pytest.param(MAGIC + b"\xa0\x40\x82", "unsupported frame flags 0xa0", id="version 2"),
            pytest.param(MAGIC + b"\x61\x40\x82", "unsupported frame flags 0x61", id="reserved flag"),
            pytest.param(MAGIC + b"\x60\x30\x82", "unsupported block descriptor 0x30", id="small block id"),
            pytest.param(MAGIC + b"\x60\x41\x82", "unsupported block descriptor 0x41", id="reserved bits"),
            pytest.param(MAGIC + b"\x60\x40\x82\xff\xff\xff\x7f", "exceeded max: 65536", id="a block too large"),
            pytest.param(MAGIC + b"\x60\x40\x82\x05\0\0\0abc", "ended prematurely", id="a cut block"),
            pytest.param(MAGIC + b"\x60\x40\x82\x03\0\0\0\xff\xff\xff", "", id="a corrupt block"),
        ],
    )
    def test_lz4_features_that_kafka_rejects_are_rejected(self, header: bytes, message: str) -> None:
        assert message in broken(LZ4, header)[1]


class TestZstd:
    FRAME = bytes(cramjam.zstd.compress(TEXT))
    SKIPPED = struct.pack("<II", 0x184D2A53, 5) + b"12345"

    def test_zstd_frames_are_concatenated_and_skippable_frames_skipped(self) -> None:
        small = bytes(cramjam.zstd.compress(b"end"))
        assert decompressed(ZSTD, self.FRAME + self.SKIPPED + small + self.SKIPPED) == TEXT + b"end"

    def test_a_zstd_frame_with_a_checksum_may_precede_another(self) -> None:
        frame = bytes.fromhex("28b52ffd0458390000636865636b6564143e3083")  # of zstd 1.5; the library writes none
        assert decompressed(ZSTD, frame + frame + self.FRAME) == b"checked" * 2 + TEXT

    def test_empty_zstd_stream_is_empty_data(self) -> None:
        assert decompressed(ZSTD, b"") == b""
        assert decompressed(ZSTD, self.SKIPPED) == b""

    @pytest.mark.parametrize("garbage", [b"x", b"garbage behind it"], ids=repr)
    def test_garbage_after_a_zstd_frame_is_an_error_after_its_content(self, garbage: bytes) -> None:
        assert broken(ZSTD, self.FRAME + garbage)[0] == TEXT

    def test_raw_and_rle_zstd_blocks_count_towards_the_limit(self) -> None:
        frame = struct.pack("<IBB", 0xFD2FB528, 0x00, 0x58)
        raw = (3 << 3).to_bytes(3, "little") + b"raw"
        repeated = (1000 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"r"
        assert decompressed(ZSTD, frame + raw + repeated, limit=1003) == b"raw" + b"r" * 1000
        with pytest.raises(SectionTooLarge):
            decompress(ZSTD, frame + raw + repeated, 2, 1002)
