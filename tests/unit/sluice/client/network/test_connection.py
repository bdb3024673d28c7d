"""A single connection: writes and closing. The NetworkClient's tests cover most of the reading."""

import asyncio
import tracemalloc
from collections.abc import Iterable

from sluice.client.metadata.cluster import Node
from sluice.client.network.connection import Connection, ResponsePool
from sluice.errors import RemoteProtocolError


class Transport(asyncio.Transport):
    """A transport that records its calls."""

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
    """A handler that records its events."""

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


def test_large_requests_are_not_joined() -> None:
    connection, transport, _ = made()
    connection.write([b"abc", bytes(100_000), b"de"], 100_005)
    assert transport.calls == [("writelines", [3, 100_000, 2])]


def receive(connection: Connection, data: bytes) -> None:
    """Deliver bytes as asyncio does."""
    buffer = connection.get_buffer(-1)
    buffer[: len(data)] = data
    connection.buffer_updated(len(data))


def test_frames_are_complete_for_any_split_of_the_stream() -> None:
    connection, _, events = made()
    receive(connection, b"\0\0\0\3one\0\0\0\3tw")
    receive(connection, b"o\0\0")
    receive(connection, b"\0\5three")
    assert events.heard == ["made", "one", "two", "three"]


def test_frame_of_an_invalid_size_breaks_the_connection() -> None:
    connection, _, events = made()
    receive(connection, b"\xff\0\0\0")
    assert events.heard == ["made", "broken"]


def test_closing_flushes_written_data() -> None:
    connection, transport, events = made()
    connection.close()
    connection.connection_lost(None)
    assert transport.calls == [("close", [])]
    assert events.heard == ["made"], "no event after a local close"


def test_closing_aborts_if_the_broker_does_not_read() -> None:
    connection, transport, _ = made()
    connection.pause_writing()
    connection.close()
    assert transport.calls == [("abort", [])]


def test_abandoned_connection_is_not_established() -> None:
    events, transport = Events(), Transport()
    connection = Connection(Node(1, "a", 9092), events, ResponsePool(), 0.0)
    connection.abort()
    connection.connection_made(transport)
    assert transport.calls == [("abort", [])]
    assert events.heard == []


def test_events_are_reported() -> None:
    connection, _, events = made()
    connection.pause_writing()
    assert connection.is_paused
    connection.resume_writing()
    connection.connection_lost(ConnectionResetError())
    assert events.heard == ["made", "writable", "lost"]


def test_the_first_response_is_small() -> None:
    """An HTTP port responds to a Kafka request with text whose first bytes announce 1.2 GB."""
    connection, _, events = made()
    receive(connection, b"HTTP/1.1 400 Bad Request")
    assert events.heard == ["made", "broken"]


def test_size_prefix_allocates_no_memory() -> None:
    connection, _, events = made()
    connection.accept_large_responses()
    tracemalloc.start()
    receive(connection, b"HTTP")
    assert len(connection.get_buffer(-1)) > 1e9
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()
    connection.connection_lost(None)
    assert events.heard == ["made", "lost"]
