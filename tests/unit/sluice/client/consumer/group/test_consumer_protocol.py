"""The embedded consumer protocol: subscriptions and assignments in every version."""

import pytest

from sluice.client.consumer.group import consumer_protocol as protocol
from sluice.client.metadata.cluster import TopicPartition
from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import encoder
from sluice.protocol.consumer_protocol import Subscription

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.mark.parametrize("rack", ["b", ""], ids=["with a rack", "without a rack"])
def test_subscription_round_trip(rack: str) -> None:
    read = protocol.read_subscription(protocol.subscription_bytes({"u", "t"}, [U0, T1, T0], 5, rack))
    assert (read.topics, read.generation_id, read.rack_id) == (["t", "u"], 5, rack or None)
    assert protocol.partitions_of(read.owned_partitions) == [T0, T1, U0]


def test_assignment_round_trip() -> None:
    assert protocol.read_assignment(protocol.assignment_bytes([U0, T1, T0])) == [T0, T1, U0]
    assert protocol.read_assignment(protocol.assignment_bytes([])) == []


def test_empty_assignment_has_no_partitions() -> None:
    assert protocol.read_assignment(b"") == []


def test_assignment_bytes_equal_kafkas() -> None:
    """Version 3; one topic, "t", with partitions 0 and 1; no user data."""
    expected = "0003 00000001 0001 74 00000002 00000000 00000001 ffffffff"
    assert protocol.assignment_bytes([T0, T1]) == bytes.fromhex(expected)


@pytest.mark.parametrize("version", range(4))
def test_every_subscription_version_is_read(version: int) -> None:
    parts: list[bytes | memoryview] = [version.to_bytes(2)]
    encoder(Subscription, version)(Subscription(topics=["t"], user_data=b"mine", generation_id=7), parts)
    read = protocol.read_subscription(b"".join(parts))
    assert (read.topics, read.user_data) == (["t"], b"mine")
    assert read.generation_id == (7 if version >= 2 else -1)


def test_unknown_fields_of_later_versions_are_ignored() -> None:
    later = (9).to_bytes(2) + protocol.subscription_bytes({"t"}, [], 1)[2:] + b"added later"
    assert protocol.read_subscription(later).topics == ["t"]


@pytest.mark.parametrize("cut", [1, 3, 8])
def test_truncated_bytes_are_rejected(cut: int) -> None:
    with pytest.raises(RemoteProtocolError):
        protocol.read_subscription(protocol.subscription_bytes({"topic"}, [T0], 1)[:cut])


PREVIOUS = {
    "this version": (protocol.previous_assignment_bytes([T0, U0], 5), [T0, U0], 5),
    "version without a generation": (protocol.previous_assignment_bytes([T0], 5)[:-4], [T0], -1),
    "undecodable": (b"\0\0\0\x09", [], -1),
    "none": (None, [], -1),
}


@pytest.mark.parametrize(("data", "partitions", "generation"), PREVIOUS.values(), ids=PREVIOUS)
def test_previous_assignment_is_read(data: bytes | None, partitions: list[TopicPartition], generation: int) -> None:
    read = protocol.read_previous_assignment(data)
    assert (protocol.partitions_of(read.topics), read.generation_id) == (partitions, generation)
