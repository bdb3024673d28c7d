"""The fast codecs compared with the general ones: equal messages, bytes and errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import RemoteProtocolError
from sluice.protocol.apis.fetch import FetchRequest, FetchResponse
from sluice.protocol.apis.produce import ProduceRequest, ProduceResponse
from sluice.protocol.codec.compile import decode_prefix, decoder, encoder, general, source, versions_of
from sluice.protocol.message import Field, Message, fields_of
from sluice.protocol.types import Single, Versions, int32
from tests.unit.protocol.messages import FRAME_TAIL, MESSAGES, encoded, full, named, values

CLASSES: list[type[Message]] = [ProduceRequest, ProduceResponse, FetchRequest, FetchResponse]
each_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
each_version = pytest.mark.parametrize("message", [each for each in MESSAGES if each[0] in CLASSES], ids=named)
HEAD = bytes(5)  # the bytes before a message in a buffer
KINDS = ("decode", "decode_prefix")
# Lengths on both sides of 127, where a varint takes its second byte, and of 32767, the longest string.
STRINGS = ("", "t", "käse", "n" * 126, "n" * 127, "n" * 128, "n" * 32_767, "n" * 32_768)
RECORDS: tuple[object, ...] = (
    None, b"", b"r" * 126, b"r" * 127, b"r" * 16_383, memoryview(b"r" * 16_384), [], [b"r"], [b"", bytes(200)], (b"r",),
)  # fmt: skip
UNFIT: dict[str, object] = {"int8": 1 << 7, "int16": 1 << 15, "int32": 1 << 31, "int64": 1 << 63, "string": "\ud800"}

Function = Callable[..., object]


def fast(kind: str, cls: type[Message], version: int) -> Function:
    """Return the function that brokers and clients use, which is the fast one for these classes."""
    functions: dict[str, Callable[[type[Message], int], Function]]
    functions = {"decode": decoder, "decode_prefix": decode_prefix, "encode": encoder}
    return functions[kind](cls, version)


def single(cls: type[Message]) -> Single:
    assert cls.SINGLE is not None
    return cls.SINGLE


def usual(cls: type[Message], version: int) -> Message:
    """Return a message of the declared shape, with a value in each open field."""
    return _usual(full(cls, version), single(cls))


def _usual(message: Message, shape: Single) -> Message:
    message.unknown_tagged_fields = None
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if field.name in shape.arrays:
            setattr(message, field.name, [_usual(value[0], shape)])
        elif field.name in (*shape.null, *shape.empty) or field.tag is not None:
            setattr(message, field.name, field.default)
    return message


def mostly(usual: st.SearchStrategy[object], unusual: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.integers(0, 7).flatmap(lambda number: unusual if number == 0 else usual)


@cache
def nearly_usual(cls: type[Message], shape: Single, version: int, flexible: bool) -> st.SearchStrategy[Message]:
    """Generate messages that differ from the declared shape in few fields or none."""
    fields: dict[str, st.SearchStrategy[object]] = {
        field.name: _nearly_usual_values(field, shape, version, flexible)
        for field in fields_of(cls)
        if version in field.versions
    }
    if flexible:
        fields["unknown_tagged_fields"] = mostly(st.none(), st.just({99: b"new"}))
    return st.builds(cls, **fields)


def _nearly_usual_values(field: Field, shape: Single, version: int, flexible: bool) -> st.SearchStrategy[object]:
    any_value = values(field, version, flexible)
    if field.name in shape.arrays:
        assert field.struct is not None
        element = nearly_usual(field.struct, shape, version, flexible)
        return mostly(st.lists(element, min_size=1, max_size=1), st.lists(element, max_size=2))
    if field.name in (*shape.null, *shape.empty) or field.tag is not None:
        return mostly(st.just(field.default), any_value)
    if field.type is not None and field.type.name == "string":
        return st.sampled_from(STRINGS)
    if field.type is not None and field.type.name == "records":
        return st.sampled_from(RECORDS)
    return any_value


def read(decode: Function, content: bytes, end: int, behind: bytes = b"") -> object:
    """Return the decoder's result for `content[:end]`, followed by these bytes, or its error."""
    try:
        return decode(memoryview(HEAD + content + behind), len(HEAD), len(HEAD) + end)
    except RemoteProtocolError as error:
        return str(error)


def written(encode: Function, message: Message) -> tuple[bytes, str]:
    """Return the encoder's output and its error."""
    parts: list[bytes | memoryview] = []
    try:
        encode(message, parts)
    except Exception as error:
        return b"".join(parts), repr(error)
    return b"".join(parts), ""


@each_version
def test_declared_shape_never_uses_the_general_function(
    message: tuple[type[Message], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    cls, version = message
    original = usual(cls, version)
    content, _ = written(general("encode", cls, version), original)

    def refuse(*args: object) -> None:
        raise AssertionError("the fast function fell through")

    for kind in (*KINDS, "encode"):
        monkeypatch.setitem(fast(kind, cls, version).__globals__, "general", refuse)
    assert written(encoder(cls, version), original) == (content, "")
    assert read(decoder(cls, version), content, len(content), FRAME_TAIL) == original
    assert read(decode_prefix(cls, version), content, len(content), FRAME_TAIL) == (original, len(HEAD) + len(content))


@each_class
@given(data=st.data(), cut=st.integers(-3, 8), behind=st.sampled_from((b"", FRAME_TAIL, bytes(90))))
def test_similar_messages_give_equal_results(cls: type[Message], data: st.DataObject, cut: int, behind: bytes) -> None:
    versions = versions_of(cls)
    version = data.draw(st.integers(versions.min, versions.max), label="version")
    message = data.draw(nearly_usual(cls, single(cls), version, version in versions.flexible), label="message")
    content, error = written(general("encode", cls, version), message)
    assert written(encoder(cls, version), message) == (content, error)
    for kind in KINDS:
        decode = fast(kind, cls, version)
        for end in {len(content), max(0, len(content) - cut)}:
            assert read(decode, content, end, behind) == read(general(kind, cls, version), content, end, behind)


@each_version
def test_truncated_and_trailing_bytes_give_equal_results(message: tuple[type[Message], int]) -> None:
    cls, version = message
    content = encoded(usual(cls, version), version)
    for kind in KINDS:
        for end in range(len(content) + 2):
            for given_content, behind in ((content, FRAME_TAIL), (content[:end], b"")):
                expected = read(general(kind, cls, version), given_content, end, behind)
                assert read(fast(kind, cls, version), given_content, end, behind) == expected


@each_version
def test_any_changed_byte_gives_equal_results(message: tuple[type[Message], int]) -> None:
    # Includes wrong, null and empty counts, lengths that are too large, negative or null, and tagged fields.
    cls, version = message
    content = encoded(usual(cls, version), version)
    for position in range(len(content)):
        for byte in (0, 1, 2, 3, 0x7F, 0x80, 0xFF):
            changed = content[:position] + bytes((byte,)) + content[position + 1 :]
            expected = read(general("decode_prefix", cls, version), changed, len(changed), FRAME_TAIL)
            assert read(decode_prefix(cls, version), changed, len(changed), FRAME_TAIL) == expected


@each_version
def test_unencodable_values_give_equal_errors(message: tuple[type[Message], int]) -> None:
    cls, version = message
    whole = usual(cls, version)
    structs = [whole]
    for name in single(cls).arrays:
        structs += getattr(structs[-1], name)
    for struct in structs:
        for field in fields_of(type(struct)):
            if field.type is not None and field.type.name in UNFIT and version in field.versions:
                kept = getattr(struct, field.name)
                setattr(struct, field.name, UNFIT[field.type.name])
                expected = written(general("encode", cls, version), whole)
                assert written(encoder(cls, version), whole) == expected
                assert expected[1]
                setattr(struct, field.name, kept)


class Undeclared(Message):
    """A shape that lacks one of its arrays."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")
    SINGLE: ClassVar[Single] = Single("")

    numbers: list[int32] = []  # noqa: RUF012  # as in protocol/apis


def test_shape_must_declare_all_arrays() -> None:
    with pytest.raises(AssertionError, match="SINGLE of Undeclared lacks the array numbers"):
        source(Undeclared, 0)
