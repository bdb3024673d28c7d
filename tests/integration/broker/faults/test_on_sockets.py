"""Faults over real sockets in real time: connection resets, and punctual delays."""

import asyncio
from collections.abc import Awaitable, Callable
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
from sluice.purgatory.timer import LATENESS_BOUNDS_MS
from tests.support.wake_ups import QUIET_S, percentile_99, wake_ups
from tests.support.wire import frame

CONNECTIONS = 20
REQUESTS = 25
MIN_DELAY_MS = 20
MAX_LATENESS_MS = 5.0  # the maximum lateness of 99 % of the delays
ATTEMPTS = 4
FAILURES_TO_FAIL = 2  # failures on a quiet machine that fail the test
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HEARTBEAT = frame(HeartbeatRequest(), 3, client_id="test")


def run(test: Callable[[ClusterServer, Callable[[], Awaitable[Streams]]], Awaitable[None]]) -> None:
    """Run a test with a broker and a function that connects to it."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        config = Config.load(None, ["listeners=PLAINTEXT://127.0.0.1:0"])
        server = ClusterServer(config, LoopClock(loop), Random(0), loop)
        await server.start()
        port = server.servers[1].endpoints[0].port
        try:
            await test(server, lambda: asyncio.open_connection("127.0.0.1", port))
        finally:
            await server.stop()

    asyncio.run(main())


async def send_request(streams: Streams) -> None:
    reader, writer = streams
    writer.write(HEARTBEAT)
    size = int.from_bytes(await reader.readexactly(4))
    await reader.readexactly(size)


@pytest.mark.parametrize("when", ["before", "after", "mid-response"])
@pytest.mark.parametrize(
    ("how", "error"),
    [("fin", asyncio.IncompleteReadError), ("rst", ConnectionResetError)],
    ids=["FIN", "RST"],
)
def test_closed_connection_ends_with_fin_or_rst(how: str, error: type[Exception], when: str) -> None:
    async def test(server: ClusterServer, connect: Callable[[], Awaitable[Streams]]) -> None:
        server.faults.add(Rule(Close(when=when, how=how), api="Heartbeat"))  # type: ignore[arg-type]  # values of the Literal types
        streams = await connect()
        with pytest.raises(error):
            await send_request(streams)
        streams[1].close()

    run(test)


@pytest.mark.realtime
def test_99_percent_of_delays_end_at_most_5_ms_late_and_none_early() -> None:
    """Pass after one successful attempt; failures count only on a quiet machine."""
    shortest_ms: list[float] = []
    seen: list[str] = []

    async def send_requests(streams: Streams) -> None:
        for _ in range(REQUESTS):
            sent = monotonic()
            await send_request(streams)
            shortest_ms.append((monotonic() - sent) * 1e3)
        streams[1].close()

    async def test(server: ClusterServer, connect: Callable[[], Awaitable[Streams]]) -> None:
        server.faults.add(Rule(Delay(min=MIN_DELAY_MS, max=60), api="Heartbeat"))
        timer = server.servers[1].broker.timer
        with wake_ups() as late:
            await asyncio.gather(*[send_requests(await connect()) for _ in range(CONNECTIONS)])
        within = sum(timer.lateness_counts[: LATENESS_BOUNDS_MS.index(MAX_LATENESS_MS) + 1])
        share = within / sum(timer.lateness_counts)
        if share < 0.99:
            machine_s = percentile_99(late)
            quiet.append(machine_s < QUIET_S)
            seen.append(f"{share:.1%} within 5 ms, the machine's own p99 {machine_s * 1e3:.1f} ms")

    quiet: list[bool] = []
    for attempt in range(ATTEMPTS):
        run(test)
        assert min(shortest_ms) >= MIN_DELAY_MS, f"a delay of {MIN_DELAY_MS} ms or more took {min(shortest_ms):.3f} ms"
        if len(seen) == attempt:
            return
    if sum(quiet) < FAILURES_TO_FAIL:
        pytest.skip(f"this machine is too busy for a result: {seen}")
    pytest.fail(f"99 of 100 delays must end within {MAX_LATENESS_MS:g} ms: {seen}")
