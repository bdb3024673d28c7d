"""All message classes, and hypothesis strategies for their values by version."""

from collections.abc import Iterable
from functools import cache

from hypothesis import strategies as st

from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.header import RequestHeader, ResponseHeader
from sluice.protocol.codec.compile import decoder, encoder, versions_of
from sluice.protocol.message import Field, Message, fields_of

CLASSES: list[type[Message]] = [
    RequestHeader,
    ResponseHeader,
    *(cls for api in API_KEYS.values() for cls in (api.request, api.response)),
]


def all_versions(cls: type[Message]) -> range:
    return range(versions_of(cls).min, versions_of(cls).max + 1)


MESSAGES = [(cls, version) for cls in CLASSES for version in all_versions(cls)]


def layout(cls: type[Message], version: int) -> tuple[object, ...]:
    """Return the encoding-relevant fields of a version; equal for versions that changed only a meaning."""
    fields = [field for field in fields_of(cls) if version in field.versions]
    return tuple(
        (field.name, version in field.null, layout(field.struct, version) if field.struct else None) for field in fields
    )


def layouts_of(cls: type[Message]) -> Iterable[int]:
    """Return the first version of each layout."""
    first: dict[object, int] = {}
    for version in all_versions(cls):
        first.setdefault((version in versions_of(cls).flexible, layout(cls, version)), version)
    return first.values()


FRAME_TAIL = b"\xff" * 8  # the bytes after a message in a receive buffer, which decoders must ignore

_PRIMITIVES: dict[str, st.SearchStrategy[object]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),  # a NaN is not equal to itself
    "uuid": st.binary(min_size=16, max_size=16),
    # Lengths on both sides of 127, where a varint takes its second byte.
    "string": st.text(max_size=8) | st.sampled_from(["x" * 126, "x" * 127, "é" * 64]),
    "bytes": st.binary(max_size=8) | st.sampled_from([b"x" * 126, b"x" * 127, b"x" * 20_000]),
    "records": st.binary(max_size=8) | st.sampled_from([b"x" * 126, b"x" * 127, b"x" * 20_000]),
}
_SET: dict[str, object] = {
    "bool": True,
    "int8": 8,
    "int16": 16,
    "uint16": 16,
    "int32": 32,
    "int64": 64,
    "float64": 6.4,
    "uuid": bytes(range(16)),
    "string": "text",
    "bytes": b"bytes",
    "records": b"records",
}
_UNKNOWN_TAGS = st.none() | st.dictionaries(st.integers(100, 2**20), st.binary(max_size=200), min_size=1, max_size=3)


def named(message: tuple[type[Message], int]) -> str:
    """Return a test id."""
    return f"{message[0].__name__} v{message[1]}"


@cache
def messages(cls: type[Message], version: int) -> st.SearchStrategy[Message]:
    """Generate messages of `cls` that `version` can encode without loss."""
    return _structs(cls, version, version in versions_of(cls).flexible)


def full(cls: type[Message], version: int) -> Message:
    """Return a message with every field of `version` set, unknown tags, and two elements in every array."""
    return _full(cls, version, version in versions_of(cls).flexible)


def encoded(message: Message, version: int) -> bytes:
    """Return the bytes of `message` as one object."""
    parts: list[bytes | memoryview] = []
    encoder(type(message), version)(message, parts)
    return b"".join(parts)


def decoded(cls: type[Message], version: int, content: bytes) -> Message:
    """Decode the message from the middle of a buffer, as the broker does."""
    buffer = memoryview(b"head" + content + FRAME_TAIL)
    return decoder(cls, version)(buffer, 4, 4 + len(content))


@cache
def _structs(cls: type[Message], version: int, flexible: bool) -> st.SearchStrategy[Message]:
    fields = {field.name: values(field, version, flexible) for field in fields_of(cls) if version in field.versions}
    if flexible:
        fields["unknown_tagged_fields"] = _UNKNOWN_TAGS
    return st.builds(cls, **fields)


def values(field: Field, version: int, flexible: bool) -> st.SearchStrategy[object]:
    if field.struct is not None:
        one: st.SearchStrategy[object] = _structs(field.struct, version, flexible)
    else:
        assert field.type is not None
        one = _PRIMITIVES[field.type.name]
    value: st.SearchStrategy[object] = st.lists(one, max_size=3) if field.is_array else one
    if field.tag is not None and field.struct is not None and not field.is_array:
        # A struct of defaults is not written, and decodes as None, which stands for absent here.
        default = field.struct()
        return st.none() | value.filter(lambda struct: struct != default)
    return st.none() | value if version in field.null else value


def _full(cls: type[Message], version: int, flexible: bool) -> Message:
    message = cls(unknown_tagged_fields={7777: b"unknown"} if flexible else None)
    for field in fields_of(cls):
        if version in field.versions:
            value = _SET[field.type.name] if field.type is not None else None
            if field.struct is not None:
                value = _full(field.struct, version, flexible)
            setattr(message, field.name, [value, value] if field.is_array else value)
    return message
