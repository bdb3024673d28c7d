"""Functions and tables that generated code uses: cached unpackers and varints, tagged fields, errors.

struct checks bounds, slices do not; so the generated code finally checks the position. Counts are compared with the
remaining bytes first, and strings with Kafka's maximum, so that no unchecked length allocates.
"""

from collections.abc import Callable, Mapping
from functools import cache
from io import BytesIO
from struct import Struct
from struct import error as struct_error
from typing import TypeVar

from sluice.errors import RemoteProtocolError
from sluice.protocol.message import Message

from .pausing import PausingList, Slices

F = TypeVar("F")
Buffer = memoryview
Parts = list[bytes | memoryview]
Unpack = Callable[[Buffer, int], tuple[object, ...]]
Pack = Callable[..., bytes]
TaggedReader = Callable[[Buffer, int, int], tuple[object, int]]
TaggedWriter = Callable[[object, Parts], None]

LONGEST_STRING = 0x7FFF  # bytes; Kafka's maximum, as older versions have an int16 length
# The limits of Kafka's generated readers since 4.4.
MAX_ELEMENTS = 1_000_000
MAX_TAGGED_FIELDS = 10_000
_COPIED_AT_ONCE = 1 << 20  # bytes; takes 0.5 ms
_NUMBERS_AT_ONCE = 10_000  # takes 0.2 ms
# Small structs cover nearly all messages. A peer cannot make this cache grow.
CACHED = 128


class MalformedError(Exception):
    """A decoding error; the generated function adds the message's name and the position."""


UNREADABLE = (IndexError, struct_error, UnicodeDecodeError, MalformedError)


def unreadable(name: str, error: Exception, position: int, size: int) -> RemoteProtocolError:
    if position > size:
        position, reason = size, "truncated"
    elif isinstance(error, MalformedError):
        reason = str(error)
    elif isinstance(error, UnicodeDecodeError):
        reason = "string is not UTF-8"
    else:
        reason = "truncated"
    return RemoteProtocolError(f"{name}: {reason} (at byte {position} of {size})")


def wrong_end(excess: int) -> MalformedError:
    return MalformedError("truncated" if excess > 0 else f"{-excess} trailing bytes")


def wrong_count(field: str, count: int, left: int) -> MalformedError:
    """Return the error for a count that is negative (-1: null), above the remaining bytes or above the limit."""
    if count == -1:
        return MalformedError(f"{field}: expected an array, got null")
    if MAX_ELEMENTS < count <= left:
        return MalformedError(f"{field}: array too long; expected at most {MAX_ELEMENTS} elements, got {count}")
    return MalformedError(f"{field}: invalid count {count} with {left} bytes left")


def wrong_size(field: str, size: int, left: int) -> MalformedError:
    """Return the error for a size that is negative (-1: null) or above the remaining bytes."""
    if size == -1:
        return MalformedError(f"{field}: expected bytes, got null")
    return MalformedError(f"{field}: invalid size {size} with {left} bytes left")


def read_varint(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    value, shift = first & 0x7F, 7
    while True:
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:  # the fifth byte is the last of 32 bits
            raise MalformedError("varint longer than 5 bytes")
    if value > 0x7FFF_FFFF:  # Kafka's lengths are int32
        raise MalformedError(f"length {value} exceeds {0x7FFF_FFFF}")
    return value, pos


def copied(content: Buffer, pause: Callable[[], object]) -> bytes:
    """Return a copy, with pauses if it is long: 100 MB take 0.05 to 0.08 s."""
    if len(content) <= _COPIED_AT_ONCE:
        return bytes(content)
    copy = BytesIO()
    for start in range(0, len(content), _COPIED_AT_ONCE):
        copy.write(content[start : start + _COPIED_AT_ONCE])
        pause()
    return copy.getvalue()  # the bytes themselves, not another copy


def read_numbers(
    readers: "Cached[Unpack]", size: int, buf: Buffer, pos: int, count: int, slices: Slices
) -> list[object]:
    """Return an array of numbers of `size` bytes, with pauses: a million take 0.03 s."""
    numbers = PausingList[object]((), slices)
    while count:
        part = min(count, _NUMBERS_AT_ONCE)
        numbers.extend(readers[part](buf, pos))
        pos += part * size
        count -= part
        slices.pause()
    return numbers


class Cached(dict[int, F]):
    """A function per length or count, made when it is first needed."""

    def __init__(self, make: Callable[[int], F]) -> None:
        self._make = make

    def __missing__(self, size: int) -> F:
        made = self._make(size)
        if size < CACHED:
            self[size] = made
        return made


def string_unpacker(code: str, length: int) -> Unpack:
    if length < 0:
        raise MalformedError("expected a string, got null" if length == -1 else f"invalid string length {length}")
    if length > LONGEST_STRING:
        raise MalformedError(f"invalid string length {length}; expected at most {LONGEST_STRING}")
    return Struct(f">{length}s{code}").unpack_from


@cache
def array_unpackers(code: str) -> Cached[Unpack]:
    return Cached(lambda count: Struct(f">{count}{code}").unpack_from)


@cache
def array_packers(code: str) -> Cached[Pack]:
    return Cached(lambda count: Struct(f">{count}{code}").pack)


class Varints(dict[int, bytes]):
    def __init__(self) -> None:
        super().__init__((number, bytes((number,))) for number in range(CACHED))

    def __missing__(self, number: int) -> bytes:
        assert 0 <= number <= 0xFFFF_FFFF, number
        if number < 0x4000:  # so few that the cache stays below 2 MB
            self[number] = varint = bytes((number & 0x7F | 0x80, number >> 7))
            return varint
        out = bytearray()
        while number > 0x7F:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        out.append(number)
        return bytes(out)


varints = Varints()


def read_tagged(
    message: Message,
    buf: Buffer,
    pos: int,
    end: int,
    count: int,
    readers: Mapping[int, tuple[str, TaggedReader]],
    *,
    keeps_unknown: bool = True,
) -> int:
    """Read tagged fields into `message`; return the position after them. `count` is the first byte of their number.

    `readers` maps the version's tags to attribute and reader; other fields are kept as bytes. Any order is accepted.
    A long request skips unknown fields: to copy 100 MB would take 50 ms.
    """
    unknown: dict[int, bytes] = {}
    if count > 0x7F:
        count, pos = read_varint(buf, pos, count)
        if count > MAX_TAGGED_FIELDS:
            raise MalformedError(f"too many tagged fields; expected at most {MAX_TAGGED_FIELDS}, got {count}")
    for _ in range(count):
        tag, pos = _read_short_varint(buf, pos)
        size, pos = _read_short_varint(buf, pos)
        stop = pos + size
        if stop > end:
            raise MalformedError(f"tag {tag}: invalid size {size} with {end - pos} bytes left")
        known = readers.get(tag)
        if known is None:
            if keeps_unknown:
                unknown[tag] = bytes(buf[pos:stop])
        else:
            attribute, read = known
            value, pos = read(buf, pos, stop)
            if pos != stop:
                raise wrong_end(pos - stop)
            setattr(message, attribute, value)
        pos = stop
    if unknown:
        message.unknown_tagged_fields = unknown
    return pos


def _read_short_varint(buf: Buffer, pos: int) -> tuple[int, int]:
    byte = buf[pos]
    return (byte, pos + 1) if byte < 0x80 else read_varint(buf, pos + 1, byte)


def write_tagged(message: Message, parts: Parts, writers: tuple[tuple[int, str, object, TaggedWriter], ...]) -> None:
    """Append the tagged fields that are not at their default, including unknown ones, and their count.

    `writers` are tag, attribute, default and writer. None always counts as the default.
    """
    contents = dict(message.unknown_tagged_fields or {})
    for tag, attribute, default, write in writers:
        value = getattr(message, attribute)
        if value is not None and value != default:
            content: Parts = []
            write(value, content)
            contents[tag] = b"".join(content)
    parts.append(varints[len(contents)])
    for tag in sorted(contents):
        parts.append(varints[tag] + varints[len(contents[tag])] + contents[tag])
