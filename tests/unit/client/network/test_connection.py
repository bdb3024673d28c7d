"""One connection by itself: how requests are written, and how it ends. What comes in is mostly the NetworkClient's."""

import asyncio
from collections.abc import Iterable

import pytest

from sluice.client.metadata.cluster import Node
from sluice.client.network import connection as connection_module
from sluice.client.network.connection import Connection, ResponsePool
from sluice.errors import RemoteProtocolError


class Transport(asyncio.Transport):
    """Writes down what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, list[int]]] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.calls.append(("write", [len(data)]))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.calls.append(("writelines", [len(data) for data in list_of_data]))

    def close(self) -> None:
        self.calls.append(("close", []))

    def abort(self) -> None:
        self.calls.append(("abort", []))


class Events:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def connection_made(self, connection: Connection) -> None:
        self.heard.append("made")

    def frame_received(self, connection: Connection, view: memoryview, start: int, end: int) -> None:
        self.heard.append(bytes(view[start:end]).decode())

    def connection_broken(self, connection: Connection, error: RemoteProtocolError) -> None:
        self.heard.append("broken")

    def connection_lost(self, connection: Connection, error: Exception | None) -> None:
        self.heard.append("lost")

    def connection_writable(self, connection: Connection) -> None:
        self.heard.append("writable")


def made() -> tuple[Connection, Transport, Events]:
    events, transport = Events(), Transport()
    connection = Connection(Node(1, "a", 9092), events, ResponsePool(), 0.0)
    connection.connection_made(transport)
    return connection, transport, events


def test_small_requests_are_one_write() -> None:
    connection, transport, _ = made()
    connection.write([b"abc", memoryview(b"defg")], 7)
    assert transport.calls == [("write", [7])]


@pytest.mark.parametrize(
    ("by_reference", "expected"),
    [
        pytest.param(True, [("writelines", [3, 100_000, 2])], id="with sendmsg"),
        pytest.param(False, [("write", [3]), ("write", [100_000]), ("write", [2])], id="without"),
    ],
)
def test_large_parts_are_not_copied(
    monkeypatch: pytest.MonkeyPatch, by_reference: bool, expected: list[tuple[str, list[int]]]
) -> None:
    monkeypatch.setattr(connection_module, "_WRITES_BY_REFERENCE", by_reference)
    connection, transport, _ = made()
    connection.write([b"abc", bytes(100_000), b"de"], 100_005)
    assert transport.calls == expected


def receive(connection: Connection, data: bytes) -> None:
    """Reads, as asyncio does."""
    buffer = connection.get_buffer(-1)
    buffer[: len(data)] = data
    connection.buffer_updated(len(data))


def test_frames_come_whole_however_they_were_cut() -> None:
    connection, _, events = made()
    receive(connection, b"\0\0\0\3one\0\0\0\3tw")
    receive(connection, b"o\0\0")
    receive(connection, b"\0\5three")
    assert events.heard == ["made", "one", "two", "three"]


def test_a_frame_of_an_impossible_size_breaks_it() -> None:
    connection, _, events = made()
    receive(connection, b"\xff\0\0\0")
    assert events.heard == ["made", "broken"]


def test_closing_lets_what_was_written_leave() -> None:
    connection, transport, events = made()
    connection.close()
    connection.connection_lost(None)
    assert transport.calls == [("close", [])]
    assert events.heard == ["made"], "who closed it need not be told"


def test_unless_the_broker_takes_nothing() -> None:
    connection, transport, _ = made()
    connection.pause_writing()
    connection.close()
    assert transport.calls == [("abort", [])]


def test_a_connection_that_was_given_up_is_not_made() -> None:
    events, transport = Events(), Transport()
    connection = Connection(Node(1, "a", 9092), events, ResponsePool(), 0.0)
    connection.abort()
    connection.connection_made(transport)
    assert transport.calls == [("abort", [])]
    assert events.heard == []


def test_what_happens_is_told() -> None:
    connection, _, events = made()
    connection.pause_writing()
    assert connection.is_paused
    connection.resume_writing()
    connection.connection_lost(ConnectionResetError())
    assert events.heard == ["made", "writable", "lost"]
