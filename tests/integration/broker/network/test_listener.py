"""A listening socket that refuses connections, on a real port."""

import asyncio

import pytest

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


async def test_closing_a_refusing_listener_releases_its_port() -> None:
    listener, port = await listening()
    listener.refuse()
    listener.close()
    bind("127.0.0.1", port, BACKLOG).close()


async def listening() -> tuple[Listener, int]:
    sock = bind("127.0.0.1", 0, BACKLOG)
    port: int = sock.getsockname()[1]
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", port)
    listener = Listener(endpoint, Reader, sock, BACKLOG, asyncio.get_running_loop(), is_tls=False)
    await listener.listen()
    return listener, port
