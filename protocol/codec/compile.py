"""Compiled decoders and encoders, whose source is generated per message class and version on first use.

Tracebacks show the source. A class that declares `SINGLE` also has fast functions (`single_element`), which fall back
to the general ones; those are compiled only when needed.
"""

import linecache
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from sluice.protocol.apis import api_of
from sluice.protocol.message import Message
from sluice.protocol.types import Versions

from .decoder_source import decode_source
from .encoder_source import encode_source
from .pausing import Slices
from .source import Source
from .wire import Parts

M = TypeVar("M", bound=Message)
Decoder = Callable[[memoryview, int, int], M]
PrefixDecoder = Callable[[memoryview, int, int], tuple[M, int]]
Encoder = Callable[[M, Parts], None]

# Pieces of a response from this size on are not joined with others.
_LARGE_PART_BYTES = 64 * 1024
# Of up to 64 KB each, and of 5 KB in most arrays: connections handle each part.
_PIECES_PER_PART = 16


def decoder(cls: type[M], version: int) -> Decoder[M]:
    """Return `decode(buf, pos, end)`, which decodes the message that is exactly `buf[pos:end]`.

    All values are copies, except records, which are views of `buf`. It raises RemoteProtocolError for malformed data.
    """
    return _function("decode", cls, version)  # type: ignore[return-value]  # generated


def decode_prefix(cls: type[M], version: int) -> PrefixDecoder[M]:
    """Return a decoder for a message that other data may follow, which also returns the next position."""
    return _function("decode_prefix", cls, version)  # type: ignore[return-value]  # generated


def encoder(cls: type[M], version: int) -> Encoder[M]:
    """Return `encode(message, parts)`, which appends the encoded message to `parts` in pieces.

    Bytes and records are appended by reference. Records are bytes, a memoryview of bytes, or a tuple or list of those.
    """
    return _function("encode", cls, version)  # type: ignore[return-value]  # generated


def decode_in_slices(cls: type[M], version: int, buf: memoryview, pos: int, end: int, slices: Slices) -> tuple[M, int]:
    """Decode as `decode_prefix` does, without unknown tagged fields, and pause within long arrays and bytes.

    The long arrays of the message are `PausingList`s, which pause when they are iterated over, too.
    """
    return general("decode_sliced", cls, version)(buf, pos, end, slices)  # type: ignore[return-value]  # generated


def encode_in_slices(cls: type[Message], version: int, message: object, pause: Callable[[], object]) -> Parts:
    """Return the encoded message in a few large parts; call `pause` within long arrays."""
    done: Parts = []
    pieces: Parts = []  # joined twice: joining them all at once would hold the event loop
    parts: Parts = []

    def drain() -> None:
        _join(parts, pieces)
        parts.clear()
        if len(pieces) >= _PIECES_PER_PART:
            _join(pieces, done)
            pieces.clear()
        pause()

    general("encode_sliced", cls, version)(message, parts, drain)
    _join(parts, pieces)
    _join(pieces, done)
    return done


def _join(parts: Parts, done: Parts) -> None:
    start = 0
    for index, part in enumerate(parts):
        if len(part) >= _LARGE_PART_BYTES:
            if start < index:
                done.append(b"".join(parts[start:index]))
            done.append(part)
            start = index + 1
    if start < len(parts):
        done.append(b"".join(parts[start:]))


@cache
def decode_single(cls: type[M], version: int) -> "Callable[[memoryview, int, int], M | None] | None":
    """Return a decoder that returns None for messages of another shape than `SINGLE`; None without `SINGLE`."""
    if cls.SINGLE is None:
        return None
    generated = _generate("decode_prefix", cls, version, single=True)
    generated.use("general", lambda *_: (None, 0))
    decode = _load("decode_prefix_single", cls, version, generated)
    return lambda buf, pos, end: decode(buf, pos, end)[0]  # type: ignore[index]  # generated


def source(cls: type[Message], version: int) -> str:
    generated = [_generate(kind, cls, version) for kind in ("decode", "encode")]
    if cls.SINGLE is not None:
        generated = [*(_generate(kind, cls, version, single=True) for kind in ("decode", "encode")), *generated]
    return "\n\n".join(each.text() for each in generated)


def load(generated: Source, name: str, file: str) -> Callable[..., object]:
    text = generated.text()
    exec(compile(text, file, "exec"), generated.objects)  # noqa: S102 # our own text, made only of field names
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    function = generated.objects[name]
    assert callable(function)
    return function


def versions_of(cls: type[Message]) -> Versions:
    """Return the versions that a message declares, or those of its API."""
    return getattr(cls, "VERSIONS", None) or api_of(cls).versions


@cache
def general(kind: str, cls: type[Message], version: int) -> Callable[..., object]:
    return _load(kind, cls, version, _generate(kind, cls, version))


@cache
def _function(kind: str, cls: type[Message], version: int) -> Callable[..., object]:
    if cls.SINGLE is None:
        return general(kind, cls, version)
    generated = _generate(kind, cls, version, single=True)

    def compile_general(*args: object) -> object:
        function = generated.objects["general"] = general(kind, cls, version)
        return function(*args)

    generated.use("general", compile_general)
    return _load(f"{kind}_single", cls, version, generated)


def _generate(kind: str, cls: type[Message], version: int, *, single: bool = False) -> Source:
    versions = versions_of(cls)
    assert versions.min <= version <= versions.max, f"{cls.__name__} has no version {version}"
    flexible = version in versions.flexible
    if single:
        from .single_element import single_source

        return single_source(kind, cls, version, flexible)
    return (encode_source if kind.startswith("encode") else decode_source)(kind, cls, version, flexible)


def _load(name: str, cls: type[Message], version: int, generated: Source) -> Callable[..., object]:
    return load(generated, name, f"<sluice {cls.__module__}.{cls.__name__} v{version} {name}>")
