"""Every message in every version: there and back, cut at every byte, with bytes behind it, with noise in it."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decode_prefix, decoder, versions_of
from sluice.protocol.json import from_json, to_json
from sluice.protocol.message import Message
from tests.unit.protocol.messages import (
    CLASSES,
    FRAME_TAIL,
    LAYOUTS,
    MESSAGES,
    decoded,
    encoded,
    full,
    messages,
    named,
)

# Drawing a message is slow, and what is generated repeats among versions and classes: few examples of each of many
# classes say more than many of few. That each version is met is the work of `full`.
some = settings(max_examples=6, suppress_health_check=list(HealthCheck))
each_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
each_version = pytest.mark.parametrize("message", MESSAGES, ids=named)
each_layout = pytest.mark.parametrize("message", LAYOUTS, ids=named)


def drawn(data: st.DataObject, cls: type[Message]) -> tuple[Message, int]:
    """A message of `cls`, and the version it is for."""
    versions = versions_of(cls)
    version = data.draw(st.integers(versions.min, versions.max), label="version")
    return data.draw(messages(cls, version), label="message"), version


def refusal(read: Callable[[memoryview, int, int], object], buffer: memoryview, end: int) -> str:
    """What the peer is told of `buffer` up to `end`. Asked so often that pytest.raises would take longer than it."""
    try:
        return f"no refusal: {read(buffer, 0, end)}"
    except RemoteProtocolError as error:
        return str(error)


@each_class
@given(data=st.data())
@some
def test_what_is_encoded_decodes_to_the_same_message(cls: type[Message], data: st.DataObject) -> None:
    original, version = drawn(data, cls)
    content = encoded(original, version)
    assert decoded(cls, version, content) == original
    form = to_json(original, version)
    described = from_json(cls, version, form)
    assert to_json(decoded(cls, version, encoded(described, version)), version) == form


@each_class
@given(noise=st.binary(max_size=80), position=st.integers(0, 200), data=st.data())
@some
def test_noise_is_a_message_or_an_error_of_the_peer(
    cls: type[Message], noise: bytes, position: int, data: st.DataObject
) -> None:
    original, version = drawn(data, cls)
    content = bytearray(encoded(original, version))
    content[position : position + len(noise)] = noise
    try:
        read = decoded(cls, version, bytes(content))
    except RemoteProtocolError:
        return
    again = encoded(read, version)
    assert encoded(decoded(cls, version, again), version) == again


@each_version
def test_every_field_of_a_version_survives(message: tuple[type[Message], int]) -> None:
    cls, version = message
    original = full(cls, version)
    content = encoded(original, version)
    assert decoded(cls, version, content) == original
    assert decode_prefix(cls, version)(memoryview(content + FRAME_TAIL), 0, len(content)) == (original, len(content))


@each_layout
def test_cut_at_any_byte_it_is_an_error_and_so_is_a_byte_too_many(message: tuple[type[Message], int]) -> None:
    cls, version = message
    content = encoded(full(cls, version), version)
    decode, prefix = decoder(cls, version), decode_prefix(cls, version)
    buffer = memoryview(content + FRAME_TAIL)
    for end in range(len(content)):
        for cut in (buffer, buffer[:end]):
            for read in (decode, prefix):
                assert refusal(read, cut, end).startswith(f"{cls.__name__} v{version}: ")
    with pytest.raises(RemoteProtocolError, match="1 trailing bytes"):
        decode(buffer, 0, len(content) + 1)


@each_class
def test_a_version_that_does_not_exist_is_our_mistake(cls: type[Message]) -> None:
    versions = versions_of(cls)
    for version in (versions.min - 1, versions.max + 1):
        with pytest.raises(AssertionError, match=f"{cls.__name__} has no version {version}"):
            decoder(cls, version)
