"""Faults over real sockets in real time: connection resets, and delays that do not end early."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from time import monotonic

import pytest

from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.no_response import Close
from sluice.broker.faults.rule import Rule
from sluice.broker.server.cluster_server import ClusterServer
from sluice.clock import LoopClock
from sluice.config.broker_config import Config
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from tests.support.wire import frame

CONNECTIONS = 20
REQUESTS = 5
MIN_DELAY_MS = 20
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HEARTBEAT = frame(HeartbeatRequest(), 3, client_id="test")


@asynccontextmanager
async def running() -> AsyncIterator[tuple[ClusterServer, Callable[[], Awaitable[Streams]]]]:
    """Start a broker, and return it with a function that connects to it."""
    loop = asyncio.get_running_loop()
    config = Config.load(None, ["listeners=PLAINTEXT://127.0.0.1:0"])
    server = ClusterServer(config, LoopClock(loop), Random(0), loop)
    await server.start()
    port = server.servers[1].endpoints[0].port
    try:
        yield server, lambda: asyncio.open_connection("127.0.0.1", port)
    finally:
        await server.stop()


async def send_request(streams: Streams) -> None:
    reader, writer = streams
    writer.write(HEARTBEAT)
    size = int.from_bytes(await reader.readexactly(4))
    await reader.readexactly(size)


CLOSES = {"FIN": ("fin", asyncio.IncompleteReadError), "RST": ("rst", ConnectionResetError)}


@pytest.mark.parametrize("when", ["before", "after", "mid-response"])
@pytest.mark.parametrize(("how", "error"), CLOSES.values(), ids=CLOSES)
async def test_closed_connection_ends_with_fin_or_rst(how: str, error: type[Exception], when: str) -> None:
    async with running() as (server, connect):
        server.faults.add(Rule(Close(when=when, how=how), api="Heartbeat"))  # type: ignore[arg-type]  # values of the Literal types
        streams = await connect()
        with pytest.raises(error):
            await send_request(streams)
        streams[1].close()


async def test_no_delay_ends_early() -> None:
    shortest_ms: list[float] = []

    async def send_requests(streams: Streams) -> None:
        for _ in range(REQUESTS):
            sent = monotonic()
            await send_request(streams)
            shortest_ms.append((monotonic() - sent) * 1e3)
        streams[1].close()

    async with running() as (server, connect):
        server.faults.add(Rule(Delay(min=MIN_DELAY_MS, max=60), api="Heartbeat"))
        await asyncio.gather(*[send_requests(await connect()) for _ in range(CONNECTIONS)])
    assert len(shortest_ms) == CONNECTIONS * REQUESTS
    assert min(shortest_ms) >= MIN_DELAY_MS
