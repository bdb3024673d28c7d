"""What generated code calls: tables of ready unpackers and varints, tagged fields, and words for what is unreadable.

Fixed parts are read by struct, which checks bounds itself; slices do not, so the generated code's last check is that
the position is exactly the end. Until then nothing is allocated by what a length claims: counts are checked against the
bytes left, strings against Kafka's longest.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from struct import error as struct_error

from sluice.errors import RemoteProtocolError
from sluice.protocol.message import Message

Buffer = memoryview
Parts = list[bytes | memoryview]
Unpack = Callable[[Buffer, int], tuple[object, ...]]
Pack = Callable[..., bytes]
TaggedReader = Callable[[Buffer, int, int], tuple[object, int]]
TaggedWriter = Callable[[object, Parts], None]

LONGEST_STRING = 0x7FFF  # of Kafka's strings, in bytes; older versions write the length as an int16
# One-byte varints, and as many small structs, cover what messages nearly always hold; caching more would let a peer
# choose how much memory the tables take.
CACHED = 128


class MalformedError(Exception):
    """What is wrong, found while reading; the generated function adds the message's name and the position."""


UNREADABLE = (IndexError, struct_error, UnicodeDecodeError, MalformedError)


def unreadable(name: str, error: Exception, position: int, size: int) -> RemoteProtocolError:
    """The error for a message called `name` of `size` bytes that could not be read on from `position`."""
    if position > size:  # what was read since then is not the message's
        position, reason = size, "cut short"
    elif isinstance(error, MalformedError):
        reason = str(error)
    elif isinstance(error, UnicodeDecodeError):
        reason = "a string that is not UTF-8"
    else:
        reason = "cut short"
    return RemoteProtocolError(f"{name}: {reason} (at byte {position} of {size})")


def wrong_end(excess: int) -> MalformedError:
    """Reading ended `excess` bytes beyond the message's end; if negative, that many before it."""
    return MalformedError("cut short" if excess > 0 else f"{-excess} bytes left over")


def wrong_count(field: str, count: int, left: int) -> MalformedError:
    """An array that is null (-1) and must not be, has a negative count, or claims more than the bytes left can hold."""
    return MalformedError(
        f"null where {field} needs an array" if count == -1 else f"{count} elements of {field} in {left} bytes"
    )


def wrong_size(field: str, size: int, left: int) -> MalformedError:
    """Bytes that are null (-1) and must not be, or claim a size that is negative or more than what is left."""
    return MalformedError(
        f"null where {field} needs bytes" if size == -1 else f"{size} bytes of {field} in {left} bytes"
    )


def read_varint(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    """An unsigned varint whose `first` byte, already read, says that more follow; returns it and the position after."""
    value, shift = first & 0x7F, 7
    while True:
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:  # the fifth byte is the last of 32 bits
            raise MalformedError("a varint of more than five bytes")
    if value > 0x7FFF_FFFF:  # Kafka holds lengths in signed 32 bits
        raise MalformedError(f"a length of {value}")
    return value, pos


class StringReaders(dict[int, Unpack]):
    """Length -> what unpacks a string of that many bytes and the fixed fields after it (`code`) in one call."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __missing__(self, length: int) -> Unpack:
        if length < 0:
            raise MalformedError("null where a string is needed" if length == -1 else f"a string of {length} bytes")
        if length > LONGEST_STRING:
            raise MalformedError(f"a string of {length} bytes; the longest has {LONGEST_STRING}")
        unpack = Struct(f">{length}s{self._code}").unpack_from
        if length < CACHED:
            self[length] = unpack
        return unpack


class ArrayReaders(dict[int, Unpack]):
    """Count -> what unpacks so many primitives of format `code`. The count was checked against the bytes left."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __missing__(self, count: int) -> Unpack:
        unpack = Struct(f">{count}{self._code}").unpack_from
        if count < CACHED:
            self[count] = unpack
        return unpack


class ArrayWriters(dict[int, Pack]):
    """Count -> what packs so many primitives of format `code`."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __missing__(self, count: int) -> Pack:
        pack = Struct(f">{count}{self._code}").pack
        if count < CACHED:
            self[count] = pack
        return pack


class StringPackers(dict[int, Pack]):
    """Length -> what packs a string of that many bytes between fields of these formats in one call."""

    def __init__(self, before: str, after: str) -> None:
        self._formats = before, after

    def __missing__(self, length: int) -> Pack:
        before, after = self._formats
        pack = Struct(f"{before}{length}s{after}").pack
        if length < CACHED:
            self[length] = pack
        return pack


class Varints(dict[int, bytes]):
    """Number -> its unsigned varint: ready for one byte, made for more."""

    def __init__(self) -> None:
        super().__init__((number, bytes((number,))) for number in range(CACHED))

    def __missing__(self, number: int) -> bytes:
        assert 0 <= number <= 0xFFFF_FFFF, number
        if number < 0x4000:  # the size of a few small records
            return bytes((number & 0x7F | 0x80, number >> 7))
        out = bytearray()
        while number > 0x7F:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        out.append(number)
        return bytes(out)


varints = Varints()


def read_tagged(
    message: Message, buf: Buffer, pos: int, end: int, count: int, readers: Mapping[int, tuple[str, TaggedReader]]
) -> int:
    """Reads tagged fields into `message`; returns the position after them. `count` is the first byte of their number.

    `readers` are those of the tags this version knows: tag -> attribute and reader. Others are kept as bytes. Like
    Kafka this does not mind tags out of order.
    """
    if count > 0x7F:
        count, pos = read_varint(buf, pos, count)
    unknown: dict[int, bytes] = {}
    for _ in range(count):
        tag, pos = _read_short_varint(buf, pos)
        size, pos = _read_short_varint(buf, pos)
        stop = pos + size
        if stop > end:
            raise MalformedError(f"{size} bytes of tag {tag} in {end - pos} bytes")
        known = readers.get(tag)
        if known is None:
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
    """Appends the count and the tagged fields that are not at their default, unknown ones among them, by rising tag.

    `writers` are tag, attribute, default and writer of the tags this version knows. None is always the default: of a
    nullable field, and of a struct beside the struct of defaults.
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
