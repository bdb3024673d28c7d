"""Message sets of magic 0 and 1: plain, compressed, nested, truncated and corrupt."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import CREATE_TIME, NO_TIMESTAMP, NO_TIMESTAMP_TYPE, batch_bounds
from sluice.protocol.records.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD, compress
from sluice.protocol.records.invalid import InvalidRecords, SectionTooLarge
from sluice.protocol.records.legacy import Message, build_message_set, encode_message, iter_messages, read_message
from sluice.protocol.records.record import Record
from tests.unit.protocol.records.samples import record_lists

OLD_CODECS = (NONE, GZIP, SNAPPY, LZ4)
OLD_NAMES = [NAMES[codec] for codec in OLD_CODECS]
PLAIN = [Record(5, 100, b"key", b"value"), Record(6, 90, None, b""), Record(9, 120, b"", None)]


def as_old(records: list[Record], magic: int) -> list[Record]:
    return [Record(r.offset, NO_TIMESTAMP if magic == 0 else r.timestamp, r.key, r.value) for r in records]


def read(data: bytes) -> list[Record]:
    """Return the records of all messages; verify checksums."""
    records = []
    for position, size, _ in batch_bounds(data):
        outer = read_message(data[position : position + size])
        outer.ensure_valid()
        for message in iter_messages(outer):
            message.ensure_valid()
            records.append(message.record())
    return records


def wrapping(
    value: bytes | None,
    *,
    offset: int = 0,
    magic: int = 1,
    codec: int = GZIP,
    timestamp: int = 0,
    timestamp_type: int = CREATE_TIME,
) -> Message:
    """Return a message of this codec whose value need not be compressed."""
    data = encode_message(offset, magic, timestamp, None, value, timestamp_type=timestamp_type, compression=codec)
    return read_message(data)


def wrapper(offset: int, magic: int, codec: int, content: bytes, timestamp_type: int = CREATE_TIME) -> Message:
    value = compress(codec, content, magic)
    return wrapping(value, offset=offset, magic=magic, codec=codec, timestamp=777, timestamp_type=timestamp_type)


def refused(message: Message) -> tuple[int, str]:
    with pytest.raises(InvalidRecords) as error:
        list(iter_messages(message))
    return error.value.code, error.value.message


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS, ids=OLD_NAMES)
@settings(max_examples=settings().max_examples // 6)
@given(records=record_lists(), first=st.sampled_from((0, 8, 2**40)))
def test_messages_round_trip(magic: int, codec: int, records: list[Record], first: int) -> None:
    moved = as_old([Record(r.offset + first, r.timestamp, r.key, r.value) for r in records], magic)
    assert read(build_message_set(moved, magic, compression=codec)) == moved


def test_message_in_a_wrapper_of_magic_0_has_no_timestamp_type() -> None:
    [message] = iter_messages(wrapper(0, 0, GZIP, build_message_set(PLAIN[:1], 1)))
    assert (message.timestamp, message.timestamp_type) == (100, NO_TIMESTAMP_TYPE)


def test_magic_1_wrapper_offset_is_that_of_the_last_inner_message() -> None:
    content = build_message_set([Record(0, 1, None, b"a"), Record(1, 2, None, b"b")], 1)
    assert [message.offset for message in iter_messages(wrapper(101, 1, GZIP, content))] == [100, 101]
    code, message = refused(wrapper(1, 1, GZIP, build_message_set([Record(2, 1, None, None)], 1)))
    assert code == ErrorCode.INVALID_RECORD
    assert "wrapper offset '1' is less than the last inner message offset '2' and it is not zero" in message


@pytest.mark.parametrize("magic", [0, 1])
def test_checksum_covers_every_bit_after_it(magic: int) -> None:
    data = build_message_set(as_old(PLAIN[:1], magic), magic)
    for bit in range(12 * 8, len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InvalidRecords, match="Record is corrupt") as error:
            read_message(bytes(flipped)).ensure_valid()
        assert error.value.code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", OLD_CODECS[1:], ids=OLD_NAMES[1:])
def test_truncated_inner_messages_are_dropped(codec: int) -> None:
    content = build_message_set(PLAIN, 1)
    first = len(build_message_set(PLAIN[:1], 1))
    for size in range(first, len(content)):
        messages = list(iter_messages(wrapper(9, 1, codec, content[:size])))
        assert 1 <= len(messages) < 3


INVALID, UNKNOWN = ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR
TWICE = build_message_set(PLAIN, 1, compression=GZIP)
REFUSED = {
    "nothing inside": (wrapper(0, 1, GZIP, b""), INVALID, "no inner records"),
    "less than an offset and a size": (wrapper(0, 1, GZIP, bytes(11)), INVALID, "no inner records"),
    "an impossible size": (
        wrapper(0, 1, GZIP, bytes(30)),
        ErrorCode.CORRUPT_MESSAGE,
        "less than the minimum record overhead",
    ),
    "compressed twice": (wrapper(0, 1, GZIP, TWICE), INVALID, "Inner messages must not be compressed"),
    "zstd": (wrapper(0, 1, ZSTD, b"x"), INVALID, "Invalid wrapper compressionType"),
    "a null value": (wrapping(None), INVALID, "compressed record set with null value"),
    "an invalid gzip stream": (wrapping(b"noise"), UNKNOWN, "Not in GZIP format"),
    "an unknown codec": (wrapping(b"x", magic=0, codec=6), UNKNOWN, "Unknown compression type id: 6"),
}


@pytest.mark.parametrize(("message", "code", "said"), REFUSED.values(), ids=REFUSED)
def test_invalid_compressed_message_set_is_rejected(message: Message, code: ErrorCode, said: str) -> None:
    assert refused(message)[0] == code
    assert said in refused(message)[1]


@pytest.mark.parametrize("codec", OLD_CODECS[1:], ids=OLD_NAMES[1:])
def test_decompression_bomb_is_rejected(codec: int) -> None:
    data = build_message_set([Record(0, 0, None, bytes(1_000_000))], 1, compression=codec)
    with pytest.raises(SectionTooLarge):
        list(iter_messages(read_message(data), limit_bytes=100_000))


@pytest.mark.parametrize(
    ("at", "size"),
    [(26, 1000), (26, 2**31 - 1), (33, 1000)],
    ids=["a key beyond the message", "the largest key size", "a value beyond the message"],
)
def test_size_beyond_the_message_raises_javas_error_on_access(at: int, size: int) -> None:
    data = bytearray(build_message_set([Record(0, 0, b"key", b"value")], 1))
    data[at : at + 4] = size.to_bytes(4, "big")
    message = read_message(bytes(data))
    assert message.has_key
    assert list(iter_messages(message)) == [message], "key and value are not read yet"
    with pytest.raises(InvalidRecords, match="in a message of") as error:
        message.record()
    assert error.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_any_negative_size_is_null() -> None:
    data = bytearray(build_message_set([Record(0, 0, b"", b"value")], 1))
    data[26:30] = (-7).to_bytes(4, "big", signed=True)
    message = read_message(bytes(data))
    assert (message.key, message.value, message.has_key) == (None, b"value", False)


def test_message_too_small_for_its_magic_has_no_key_size() -> None:
    data = bytearray(build_message_set([Record(0, 0, None, None)], 0))
    data[16] = 1
    with pytest.raises(InvalidRecords, match="in a message of 14 bytes"):
        _ = read_message(bytes(data)).has_key


def test_offsets_must_increase() -> None:
    with pytest.raises(InvalidRecords, match="Illegal offset 5 following previous offset 5"):
        build_message_set([PLAIN[0], PLAIN[0]], 1)
