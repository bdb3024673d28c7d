"""A listening socket that refuses connections, on a real port."""

import asyncio
import os
import socket
from collections.abc import Callable

import pytest

from sluice.broker.network import listener as module
from sluice.broker.network.listener import Listener
from sluice.broker.network.socket_server import bind
from sluice.config.broker_config import Endpoint
from sluice.errors import SluiceError

BACKLOG = 8


class Reader(asyncio.BufferedProtocol):
    def get_buffer(self, sizehint: int) -> bytearray:
        return bytearray(1)


async def test_refusing_listener_keeps_its_port_and_can_listen_again() -> None:
    listener, port = await listening()
    listener.refuse()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    with pytest.raises(SluiceError, match="Address already in use"):
        bind("127.0.0.1", port, BACKLOG)
    await listener.listen_again()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    await writer.wait_closed()
    listener.close()


async def test_connections_wait_while_few_descriptors_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise no file could be opened, also not for requests on earlier connections."""
    monkeypatch.setattr(module, "_RETRY_AFTER_S", 0.01)
    made, failed = asyncio.Queue[Reader](), asyncio.Queue[None]()
    has_descriptors = Listener._has_descriptors

    def accept() -> Reader:
        made.put_nowait(reader := Reader())
        return reader

    def checked(self: Listener) -> bool:
        if not (found := has_descriptors(self)):
            failed.put_nowait(None)
        return found

    monkeypatch.setattr(Listener, "_has_descriptors", checked)
    first = os.dup(0)
    os.close(first)
    monkeypatch.setattr(module, "most_descriptors", lambda: first + 4)
    listener, port = await listening(accept)
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    await made.get()
    for _ in range(3):
        await failed.get()
    assert made.empty()
    for client in opened[:4]:
        client.close()
    for _ in range(4):
        await made.get()
    opened[4].close()
    listener.close()


async def test_closing_a_refusing_listener_releases_its_port() -> None:
    listener, port = await listening()
    listener.refuse()
    listener.close()
    bind("127.0.0.1", port, BACKLOG).close()


async def listening(accept: Callable[[], asyncio.BufferedProtocol] = Reader) -> tuple[Listener, int]:
    sock = bind("127.0.0.1", 0, BACKLOG)
    port: int = sock.getsockname()[1]
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", port)
    listener = Listener(endpoint, accept, sock, BACKLOG, asyncio.get_running_loop(), is_tls=False)
    await listener.listen()
    return listener, port
