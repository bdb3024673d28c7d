"""Every message in every version: round trips, truncation, trailing bytes and noise."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decode_prefix, decoder, versions_of
from sluice.protocol.message import Message
from tests.support.kafka_json import from_json, to_json
from tests.unit.protocol.messages import CLASSES, FRAME_TAIL, all_versions, decoded, encoded, full, layouts_of, messages

# Drawing a message is slow, and versions and classes share generated code: few examples of many classes find more
# than many examples of few. `full` covers each version.
some = settings(max_examples=settings().max_examples // 16, suppress_health_check=list(HealthCheck))
each_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def drawn(data: st.DataObject, cls: type[Message]) -> tuple[Message, int]:
    """Generate a message of `cls` and a version."""
    versions = versions_of(cls)
    version = data.draw(st.integers(versions.min, versions.max), label="version")
    return data.draw(messages(cls, version), label="message"), version


def refusal(read: Callable[[memoryview, int, int], object], buffer: memoryview, end: int) -> str:
    """Return the peer's error for `buffer[:end]`. Called too often for the slower pytest.raises."""
    try:
        return f"no refusal: {read(buffer, 0, end)}"
    except RemoteProtocolError as error:
        return str(error)


@each_class
@given(data=st.data())
@some
def test_encoded_message_decodes_to_itself(cls: type[Message], data: st.DataObject) -> None:
    original, version = drawn(data, cls)
    content = encoded(original, version)
    assert decoded(cls, version, content) == original
    form = to_json(original, version)
    described = from_json(cls, version, form)
    assert to_json(decoded(cls, version, encoded(described, version)), version) == form


@each_class
@given(noise=st.binary(max_size=80), position=st.integers(0, 200), data=st.data())
@some
def test_noise_is_a_message_or_a_peer_error(
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


@each_class
def test_every_field_of_a_version_round_trips(cls: type[Message]) -> None:
    for version in all_versions(cls):
        original = full(cls, version)
        content = encoded(original, version)
        assert decoded(cls, version, content) == original, f"v{version}"
        prefix = decode_prefix(cls, version)(memoryview(content + FRAME_TAIL), 0, len(content))
        assert prefix == (original, len(content)), f"v{version}"


@each_class
def test_truncated_or_extended_message_is_an_error(cls: type[Message]) -> None:
    for version in layouts_of(cls):
        content = encoded(full(cls, version), version)
        decode, prefix = decoder(cls, version), decode_prefix(cls, version)
        buffer = memoryview(content + FRAME_TAIL)
        for end in range(0, len(content), 1 + 2 * (len(content) // 600)):
            cut = buffer[:end] if end % 2 else buffer
            for read in (decode, prefix):
                assert refusal(read, cut, end).startswith(f"{cls.__name__} v{version}: ")
        with pytest.raises(RemoteProtocolError, match="1 trailing bytes"):
            decode(buffer, 0, len(content) + 1)


def test_nonexistent_version_is_an_internal_error() -> None:
    for cls in CLASSES:
        versions = versions_of(cls)
        for version in (versions.min - 1, versions.max + 1):
            with pytest.raises(AssertionError, match=f"{cls.__name__} has no version {version}"):
                decoder(cls, version)
