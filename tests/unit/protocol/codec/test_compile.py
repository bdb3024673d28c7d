"""The codec on synthetic messages: every wire type, nulls everywhere, tagged fields, and records by reference."""

# ruff: noqa: RUF012  # msgspec copies a message's empty list for each instance, as in protocol/apis

from __future__ import annotations

import linecache
import tracemalloc
from struct import pack
from typing import Annotated, ClassVar

import pytest

from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decode_in_slices, decoder, encode_in_slices, encoder, source
from sluice.protocol.codec.pausing import Slices
from sluice.protocol.message import Message
from sluice.protocol.types import (
    ZERO_UUID,
    Segments,
    V,
    Versions,
    boolean,
    bytes_,
    float64,
    int8,
    int16,
    int32,
    int64,
    records_,
    string,
    uint16,
    uuid,
)
from tests.unit.protocol.messages import decoded, encoded

AT_ONCE = Slices(lambda: None, lambda container: None)


class Inner(Message):
    """A struct with a field since version 1."""

    number: int8 = 0
    word: Annotated[string, V("1+")] = "none"


class Everything(Message):
    """One field of each type, plain and as an array; flexible since version 1."""

    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    flag: boolean = False
    tiny: int8 = 0
    small: int16 = 0
    port: uint16 = 0
    middle: int32 = 0
    large: int64 = 0
    real: float64 = 0.0
    id: uuid = ZERO_UUID
    text: string = ""
    old_text: Annotated[string | None, V(null="0+", compact=False)] = None
    blob: bytes_ = b""
    batch: Annotated[records_ | None, V(null="0+")] = None
    inner: Annotated[Inner | None, V(null="0+")] = None
    flags: list[boolean] = []
    numbers: Annotated[list[int32] | None, V(null="0+")] = []
    ids: list[uuid] = []
    texts: list[string] = []
    blobs: list[bytes_] = []
    inners: list[Inner] = []


FULL = Everything(
    True, -8, -16, 0xFFFF, -32, -64, 0.5, bytes(range(16)), "tëxt", "old", b"blob", b"batch", Inner(5, "inner"),
    [True, False], [1, -1], [bytes(16), bytes(range(16))], ["a", "", "b" * 200], [b"", b"c" * 200],
    [Inner(1), Inner(2, "x")],
)  # fmt: skip
# The same message, encoded by hand from the protocol guide.
FIXED = b"\1" + pack(">bhHiqd", -8, -16, 0xFFFF, -32, -64, 0.5) + bytes(range(16))
FULL_V0 = (
    FIXED + b"\0\5t\xc3\xabxt" + b"\0\3old" + b"\0\0\0\4blob" + b"\0\0\0\5batch" + b"\1\5"
    + b"\0\0\0\2\1\0" + b"\0\0\0\2\0\0\0\1\xff\xff\xff\xff" + b"\0\0\0\2" + bytes(16) + bytes(range(16))
    + b"\0\0\0\3\0\1a\0\0\0\xc8" + b"b" * 200 + b"\0\0\0\2\0\0\0\0\0\0\0\xc8" + b"c" * 200 + b"\0\0\0\2\1\2"
)  # fmt: skip
FULL_V1 = (
    FIXED + b"\6t\xc3\xabxt" + b"\0\3old" + b"\5blob" + b"\6batch" + b"\1\5\6inner\0"
    + b"\3\1\0" + b"\3\0\0\0\1\xff\xff\xff\xff" + b"\3" + bytes(16) + bytes(range(16))
    + b"\4\2a\1\xc9\1" + b"b" * 200 + b"\3\1\xc9\1" + b"c" * 200 + b"\3\1\5none\0\2\2x\0" + b"\0"
)  # fmt: skip
EMPTY_V0 = bytes(42) + b"\0\0" + b"\xff\xff" + bytes(4) + b"\xff\xff\xff\xff" + b"\xff" + bytes(24)
EMPTY_V1 = bytes(42) + b"\1" + b"\xff\xff" + b"\1" + b"\0" + b"\xff" + b"\1\1\1\1\1\1" + b"\0"


GUIDE = {
    "everything, classic": (FULL, 0, FULL_V0),
    "everything, flexible": (FULL, 1, FULL_V1),
    "defaults, classic": (Everything(), 0, EMPTY_V0),
    "defaults, flexible": (Everything(), 1, EMPTY_V1),
    "a null array, flexible": (Everything(numbers=None), 1, EMPTY_V1[:-6] + b"\0" + EMPTY_V1[-5:]),
}


@pytest.mark.parametrize(("message", "version", "content"), GUIDE.values(), ids=GUIDE)
def test_bytes_equal_the_protocol_guide(message: Everything, version: int, content: bytes) -> None:
    assert encoded(message, version).hex() == content.hex()
    assert encoded(decoded(Everything, version, content), version) == content


def test_field_missing_in_a_version_has_its_default() -> None:
    message = decoded(Everything, 0, FULL_V0)
    assert isinstance(message, Everything)
    assert message.inner == Inner(5, "none")


class Tagged(Message):
    """Tagged fields of each kind, since version 1."""

    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="0+")

    number: Annotated[int32, V("1+", tag=2)] = -1
    name: Annotated[string | None, V("1+", null="1+", tag=0)] = None
    inner: Annotated[Inner | None, V("1+", tag=5)] = None
    words: Annotated[list[string], V("1+", tag=1)] = []


@pytest.mark.parametrize(
    ("message", "content"),
    [
        pytest.param(Tagged(), b"\0", id="all defaults"),
        pytest.param(Tagged(number=7), b"\1\2\4\0\0\0\7", id="a number"),
        pytest.param(Tagged(name=""), b"\1\0\1\1", id="an empty nullable string"),
        pytest.param(Tagged(inner=Inner(1, "x")), b"\1\5\4\1\2x\0", id="a struct"),
        pytest.param(Tagged(words=["a"]), b"\1\1\3\2\2a", id="an array"),
        pytest.param(Tagged(unknown_tagged_fields={300: b"?"}), b"\1\xac\2\1?", id="an unknown tag of two bytes"),
        pytest.param(
            Tagged(1, "n", None, ["w"], unknown_tagged_fields={3: b"three", 9: b""}),
            b"\5\0\2\2n\1\3\2\2w\2\4\0\0\0\1\3\5three\x09\0",
            id="known and unknown tags in ascending order",
        ),
        pytest.param(
            Tagged(unknown_tagged_fields=dict.fromkeys(range(10, 150), b"")),
            b"\x8c\1" + b"".join(bytes([tag, 0]) for tag in range(10, 128))
            + b"".join(bytes([tag, 1, 0]) for tag in range(128, 150)),
            id="more than 127 tags",
        ),
    ],
)  # fmt: skip
def test_tagged_fields(message: Tagged, content: bytes) -> None:
    assert encoded(message, 1).hex() == content.hex()
    assert decoded(Tagged, 1, content) == message


def test_tagged_struct_of_defaults_is_not_written() -> None:
    assert encoded(Tagged(inner=Inner()), 1) == b"\0"


def test_tag_of_a_later_version_is_kept_unchanged() -> None:
    content = b"\1\2\4\0\0\0\7"
    message = decoded(Tagged, 0, content)
    assert message == Tagged(unknown_tagged_fields={2: b"\0\0\0\7"})
    assert encoded(message, 0) == content


def test_decoding_in_slices_skips_unknown_tagged_fields() -> None:
    content = encoded(Tagged(1, "n", None, ["w"], unknown_tagged_fields={3: b"three", 300: b"?"}), 1)
    message, end = decode_in_slices(Tagged, 1, memoryview(content), 0, len(content), AT_ONCE)
    assert (message, end) == (Tagged(1, "n", None, ["w"]), len(content))
    with pytest.raises(RemoteProtocolError, match="tag 3: invalid size 5 with 4 bytes left"):
        decode_in_slices(Tagged, 1, memoryview(b"\1\3\5four"), 0, 7, AT_ONCE)


class Content(Message):
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    content: Annotated[bytes_ | None, V(null="0+")] = None


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 5_000_000])
def test_long_bytes_are_copied_in_slices(size: int, version: int) -> None:
    content = encoded(Content(bytes(range(250)) * (size // 250) + bytes(size % 250)), version)
    pauses: list[None] = []
    slices = Slices(lambda: pauses.append(None), lambda container: None)
    message, _ = decode_in_slices(Content, version, memoryview(content), 0, len(content), slices)
    assert message.content is not None
    assert type(message.content) is bytes
    assert encoded(message, version) == content
    assert len(pauses) == (0 if size <= 1 << 20 else -(-size // (1 << 20)))


@pytest.mark.parametrize("version", [0, 1])
def test_bytes_are_encoded_by_reference(version: int) -> None:
    content = b"content"
    parts: list[bytes | memoryview] = []
    encoder(Content, version)(Content(content), parts)
    assert any(part is content for part in parts)


class Numbers(Message):
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    numbers: list[int32] = []
    after: int8 = 0


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 16, 17, 10_000, 10_001, 25_000])
def test_long_arrays_of_numbers_are_decoded_in_slices(count: int, version: int) -> None:
    sent = Numbers(list(range(-count, 0)), 7)
    content = encoded(sent, version)
    pauses: list[None] = []
    slices = Slices(lambda: pauses.append(None), lambda container: None)
    assert decode_in_slices(Numbers, version, memoryview(content), 0, len(content), slices) == (sent, len(content))
    assert len(pauses) == (0 if count <= 16 else -(-count // 10_000))


class Batch(Message):
    """Records with both kinds of length."""

    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    batch: Annotated[records_ | None, V(null="0+")] = None


@pytest.mark.parametrize("version", [0, 1], ids=["classic", "flexible"])
def test_records_are_encoded_by_reference_and_decoded_as_views(version: int) -> None:
    batch = b"r" * 300
    segments: tuple[bytes | memoryview, ...] = (b"r" * 100, memoryview(b"r" * 200), b"")
    forms: list[Segments | memoryview] = [memoryview(batch), segments, list(segments)]
    parts: list[bytes | memoryview] = []
    encoder(Batch, version)(Batch(batch), parts)
    assert any(part is batch for part in parts)
    content = b"".join(parts)
    for form in forms:
        assert encoded(Batch(form), version) == content
    buffer = bytearray(content)
    message = decoder(Batch, version)(memoryview(buffer), 0, len(buffer))
    buffer[-1 - version] = ord("!")  # the flexible form ends with a tag count
    assert isinstance(message.batch, memoryview)
    assert bytes(message.batch) == b"r" * 299 + b"!"  # no copy was made


@pytest.mark.parametrize("batch", [b"", (), [], memoryview(b"")], ids=["bytes", "tuple", "list", "view"])
def test_empty_records_are_not_null(batch: bytes) -> None:
    assert encoded(Batch(batch), 0) == bytes(4)
    assert encoded(Batch(None), 0) == b"\xff" * 4


MANY = 0x7FFF_FFFF
# The fields between the fixed ones and the invalid one: empty values and a null struct.
TO_BLOB = b"\0\0\0\0"
TO_BATCH = TO_BLOB + bytes(4)
TO_FLAGS = TO_BATCH + bytes(4) + b"\xff"
TO_NUMBERS = TO_FLAGS + bytes(4)
TO_FLAGS_V1 = b"\1\0\0\1\1\xff"
TO_INNERS_V1 = TO_FLAGS_V1 + b"\1\1\1\1\1"
LIES = {
    "a string longer than the message": (0, b"\x7f\xff", "truncated"),
    "a string of negative length": (0, b"\xff\xfe", "invalid string length -2"),
    "a null string": (0, b"\xff\xff", "expected a string, got null"),
    "a null compact string": (1, b"\0", "expected a string, got null"),
    "a compact string of 32768 bytes": (1, b"\x81\x80\2" + b"x" * 32768, "invalid string length 32768; expected"),
    "a compact string of 2 GB": (1, b"\xff\xff\xff\xff\7", "invalid string length 2147483646"),
    "a varint beyond int32": (1, b"\xff\xff\xff\xff\x0f", "length 4294967295 exceeds 2147483647"),
    "a varint of six bytes": (1, b"\xff\xff\xff\xff\xff\1", "varint longer than 5 bytes"),
    "a string that is not UTF-8": (0, b"\0\1\xff\xff\xff", "not UTF-8"),
    "a nullable string of length -2": (0, b"\0\0\xff\xfe", "invalid string length -2"),
    "bytes of negative length": (0, TO_BLOB + pack(">i", -2), "blob: invalid size -2 with"),
    "null bytes": (0, TO_BLOB + pack(">i", -1), "blob: expected bytes, got null"),
    "null compact bytes": (1, b"\1\0\0\0", "blob: expected bytes, got null"),
    "bytes of 2 GB": (0, TO_BLOB + pack(">i", MANY), "blob: invalid size 2147483647 with"),
    "records of 2 GB": (0, TO_BATCH + pack(">i", MANY), "batch: invalid size 2147483647 with"),
    "records of length -2": (0, TO_BATCH + pack(">i", -2), "batch: invalid size -2 with"),
    "two billion booleans": (0, TO_FLAGS + pack(">i", MANY), "flags: invalid count 2147483647 with"),
    "a null array": (0, TO_FLAGS + pack(">i", -1), "flags: expected an array, got null"),
    "an array of -2": (0, TO_FLAGS + pack(">i", -2), "flags: invalid count -2 with"),
    "a nullable array of -2": (0, TO_NUMBERS + pack(">i", -2), "numbers: invalid count -2 with"),
    "1,000,001 booleans": (0, TO_FLAGS + pack(">i", 1_000_001) + bytes(1_000_001), "flags: array too long; expected"),
    "1,000,001 structs": (
        1,
        TO_INNERS_V1 + b"\xc2\x84\x3d" + b"\0\1\0" * 1_000_001,
        "inners: array too long; expected at most 1000000 elements, got 1000001",
    ),
    "10,001 tagged fields": (
        1,
        TO_INNERS_V1 + b"\1\x91\x4e" + b"\7\0" * 10_001,
        "too many tagged fields; expected at most 10000, got 10001",
    ),
    "one number more than fits": (0, TO_NUMBERS + pack(">ii", 2, 0), "numbers: invalid count 2 with"),
    "a null compact array": (1, TO_FLAGS_V1 + b"\0", "flags: expected an array, got null"),
    "two billion compact structs": (1, TO_INNERS_V1 + b"\xff\xff\xff\xff\7", "inners: invalid count 2147483646 with"),
    "a tag larger than the message": (1, TO_INNERS_V1 + b"\1\1\x07\x7f", "tag 7: invalid size 127 with"),
    "two billion tags": (1, TO_INNERS_V1 + b"\1\xff\xff\xff\xff\7", "too many tagged fields; expected"),
}  # fmt: skip


@pytest.mark.parametrize(("version", "lie", "reason"), LIES.values(), ids=LIES)
def test_invalid_length_is_a_peer_error_and_allocates_no_memory(version: int, lie: bytes, reason: str) -> None:
    content = bytes(42) + lie
    # The message starts a receive buffer of 1 MB. The decoder must not read beyond the message.
    buffer = memoryview(content + bytes(1 << 20))
    decode = decoder(Everything, version)
    for view in (buffer, buffer[: len(content)]):
        tracemalloc.start()
        try:
            with pytest.raises(RemoteProtocolError, match=reason if view is not buffer else f"Everything v{version}: "):
                decode(view, 0, len(content))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 200_000  # bytes; the message alone is up to 33 kB


def test_1_000_000_elements_and_10_000_tagged_fields_are_accepted() -> None:
    flags = bytes(42) + TO_FLAGS + pack(">i", 1_000_000) + bytes(1_000_000)
    with pytest.raises(RemoteProtocolError, match=r"truncated \(at byte"):  # after the array
        decoded(Everything, 0, flags)
    tags = b"".join(bytes((number & 0x7F | 0x80, number >> 7 | 0x80, 0, 0)) for number in range(10, 10_010))
    message = decoded(Tagged, 1, b"\x90\x4e" + tags)
    assert len(message.unknown_tagged_fields or ()) == 10_000


class TaggedNull(Message):
    """A nullable tagged struct, as in consumer group records."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    inner: Annotated[Inner | None, V("0+", null="0+", tag=0)] = None


NULLABLE = {
    "not there": (b"\0", None),
    "null, which Kafka writes although it is the default": (b"\1\0\1\0", None),
    "a struct": (b"\1\0\3\1\1\0", Inner(number=1)),
}


@pytest.mark.parametrize(("content", "inner"), NULLABLE.values(), ids=NULLABLE)
def test_null_tagged_struct_is_a_zero_byte(content: bytes, inner: Inner | None) -> None:
    assert decoded(TaggedNull, 0, content) == TaggedNull(inner)


def test_tagged_field_of_a_wrong_length_is_an_error() -> None:
    with pytest.raises(RemoteProtocolError, match="1 trailing bytes"):
        decoded(Tagged, 1, b"\1\2\5\0\0\0\7\0")
    with pytest.raises(RemoteProtocolError, match="truncated"):
        decoded(Tagged, 1, b"\1\2\3\0\0\7")


class Words(Message):
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    words: list[string] = []


def test_long_arrays_are_encoded_in_few_parts_with_pauses() -> None:
    pauses: list[None] = []
    message = Words(["word"] * 100_000)
    parts = encode_in_slices(Words, 1, message, lambda: pauses.append(None))
    assert b"".join(parts) == encoded(message, 1)
    assert len(pauses) > 10 * len(parts) > 10


def test_error_names_message_version_and_position() -> None:
    with pytest.raises(RemoteProtocolError, match=r"^Batch v0: truncated \(at byte 3 of 3\)$"):
        decoded(Batch, 0, b"\0\0\0")


def test_function_is_compiled_once_and_its_source_is_in_tracebacks() -> None:
    decode = decoder(Everything, 0)
    assert decoder(Everything, 0) is decode
    text = "".join(linecache.getlines(decode.__code__.co_filename))
    assert text.startswith("def decode(buf, pos, end):")
    assert source(Everything, 0).startswith(text)
