"""Clients that do not read their responses, on real sockets with small buffers."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from random import Random

from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.network.connection import Connection
from sluice.broker.network.unsent_responses import PIECE_BYTES
from sluice.broker.server.cluster_server import ClusterServer
from sluice.clock import LoopClock
from sluice.config.broker_config import Config
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import batch, fetch, produce
from tests.support.wire import frame

# asyncio's default: above this many unsent bytes a transport pauses its protocol.
HIGH_WATER_BYTES = 64 * 1024
SOCKET_BYTES = 4096  # the kernel doubles it
MIB = 1024 * 1024


def serve(test: Callable[[ClusterServer], Awaitable[None]], *overrides: str) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        config = Config.load(None, ["listeners=PLAINTEXT://127.0.0.1:0", *overrides])
        server = ClusterServer(config, LoopClock(loop), Random(0), loop)
        await server.start()
        try:
            await asyncio.wait_for(test(server), 30)
        finally:
            await server.stop()

    asyncio.run(run())


async def connect(server: ClusterServer) -> tuple[socket.socket, Connection]:
    """Connect with small buffers on both sides."""
    loop = asyncio.get_running_loop()
    broker = server.servers[1]
    accepted: asyncio.Future[Connection] = loop.create_future()
    broker.on_connected = accepted.set_result
    client = socket.socket()
    client.setblocking(False)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
    await loop.sock_connect(client, ("127.0.0.1", broker.endpoints[0].port))
    connection = await accepted
    assert connection.transport is not None
    connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
    return client, connection


async def broker_handles_requests() -> None:
    for _ in range(100):  # event-loop iterations
        await asyncio.sleep(0)


def unsent_bytes(connection: Connection) -> int:
    assert connection.transport is not None
    return connection.transport.get_write_buffer_size()


def test_transport_has_a_piece_of_an_unread_response() -> None:
    async def test(server: ClusterServer) -> None:
        loop = asyncio.get_running_loop()
        server.cluster.create(NewTopic("t", 1))
        client, connection = await connect(server)
        with client:
            await loop.sock_sendall(client, frame(produce(9, batch(bytes(900_000))), 9, client_id="c"))
            await receive(client, 4)
            await loop.sock_sendall(client, frame(fetch(0), 11, client_id="c"))
            await broker_handles_requests()
            assert 0 < unsent_bytes(connection) <= HIGH_WATER_BYTES + PIECE_BYTES
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MIB)
            await receive(client, 900_000)

    serve(test)


def test_requests_of_a_client_that_does_not_read_large_responses_are_not_handled() -> None:
    requests = 200

    async def test(server: ClusterServer) -> None:
        loop = asyncio.get_running_loop()
        server.cluster.create(NewTopic("t", 200))
        client, _ = await connect(server)
        with client:
            await loop.sock_sendall(client, frame(MetadataRequest(topics=None), 9, client_id="c") * requests)
            await broker_handles_requests()
            (route,) = server.servers[1].exchange.routes
            assert 0 < route.requests < requests / 2
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MIB)
            while route.requests < requests:
                await receive(client, 1)

    serve(test)


async def receive(client: socket.socket, at_least: int) -> None:
    received = 0
    while received < at_least:
        data = await asyncio.get_running_loop().sock_recv(client, MIB)
        assert data, "the broker closed the connection"
        received += len(data)
