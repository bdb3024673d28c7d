"""The ports of lost upstream brokers: closed as those of dead brokers, until a probe connects."""

import asyncio
import itertools
import time
from collections.abc import Callable, Collection
from typing import NamedTuple

import pytest

from sluice import testing
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.proxy.server import ProxyServer
from tests.support.named_upstream import HOST, PORT, NamedUpstream, proxy
from tests.support.wire import frame

MOVED = PORT + 10
BROKERS = {1: PORT, 2: PORT + 1, 3: PORT + 2}
OUTAGE_S = 60
# A probe follows within the longest backoff, and a new address is found within the interval of Metadata requests.
RECOVERS_WITHIN_S = 2.5
# The cluster has not listed it for a minute, and the last probe of before is over.
REMOVED_AFTER_S = OUTAGE_S + 2.5
# The interval of Metadata requests while all other brokers are healthy, and a probe.
RETURNS_WITHIN_S = 5.5
METADATA = frame(MetadataRequest(), 9, client_id="c", correlation_id=1)


async def attempt(opened: ProxyServer, node_id: int) -> str:
    """Connect as a client, send a request, and return what happened."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", opened.servers[node_id].endpoints[0].port)
    except ConnectionRefusedError:
        return "refused"
    writer.write(METADATA)
    received = await reader.read(4)
    writer.close()
    await writer.wait_closed()
    return "answered" if received else "closed"


async def attempts(opened: ProxyServer) -> dict[int, str]:
    return {node_id: await attempt(opened, node_id) for node_id in opened.servers}


def kill(*node_ids: int) -> None:
    network = testing.network()
    for node_id in node_ids:
        network.refuse(f"{HOST}:{BROKERS[node_id]}")
        network.reset(f"{HOST}:{BROKERS[node_id]}")


def restart(*node_ids: int) -> None:
    for node_id in node_ids:
        testing.network().accept(f"{HOST}:{BROKERS[node_id]}")


def move(upstream: NamedUpstream) -> None:
    upstream.brokers = [*(BROKERS | {2: MOVED}).items()]


class Outage(NamedTuple):
    lost: Collection[int]
    heal: Callable[[NamedUpstream], None]
    is_at_start: bool = False


OUTAGES = {
    "a broker that is down at the start": Outage([2], lambda _: restart(2), is_at_start=True),
    "a broker that is down at the start and comes back on another port": Outage([2], move, is_at_start=True),
    "a broker that dies and comes back on the same port": Outage([2], lambda _: restart(2)),
    "a broker that dies and comes back on another port": Outage([2], move),
    "the bootstrap broker": Outage([1], lambda _: restart(1)),
    "two brokers": Outage([1, 3], lambda _: restart(1, 3)),
    "all brokers": Outage([1, 2, 3], lambda _: restart(1, 2, 3)),
}


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
async def test_the_port_of_a_lost_broker_is_closed_until_it_answers(outage: Outage) -> None:
    upstream = NamedUpstream([*BROKERS.items()])
    await upstream.listen(*BROKERS.values(), MOVED)
    if outage.is_at_start:
        kill(*outage.lost)
    async with proxy() as opened:
        if not outage.is_at_start:
            assert await attempts(opened) == dict.fromkeys(BROKERS, "answered")
            kill(*outage.lost)
            found = await attempts(opened)
            assert {found[node_id] for node_id in outage.lost} == {"closed"}
        others = dict.fromkeys(BROKERS, "answered")
        during = others | dict.fromkeys(outage.lost, "refused")
        until_s = time.monotonic() + OUTAGE_S
        while time.monotonic() < until_s:
            assert await attempts(opened) == during
            await asyncio.sleep(1)
        assert [opened.upstream_state(node_id).is_reachable for node_id in BROKERS] == [
            node_id not in outage.lost for node_id in BROKERS
        ]
        outage.heal(upstream)
        await asyncio.sleep(RECOVERS_WITHIN_S)
        assert await attempts(opened) == others


def test_a_lost_broker_is_probed_with_a_growing_backoff() -> None:
    async def main() -> list[float]:
        upstream = NamedUpstream([*BROKERS.items()])
        await upstream.listen(*BROKERS.values())
        async with proxy() as opened:
            kill(2)
            attempted: list[float] = []
            testing.network().on_connect = lambda: attempted.append(time.monotonic())
            assert await attempt(opened, 2) == "closed"
            await asyncio.sleep(OUTAGE_S)
            return attempted

    _, first, *attempted = testing.run(main())  # the client's, and the one for it
    waits = [later - earlier for earlier, later in itertools.pairwise([first, *attempted])]
    for failures, wait in enumerate(waits):
        base = min(0.05 * 2**failures, 1)
        assert 0.8 * base <= wait <= min(1.2 * base, 1) + 0.001
    assert len(waits) > OUTAGE_S


def test_a_removed_broker_is_probed_ever_more_rarely_until_it_is_listed_again() -> None:
    async def main() -> list[float]:
        upstream = NamedUpstream([*BROKERS.items()])
        await upstream.listen(*BROKERS.values())
        async with proxy() as opened:
            kill(2)
            assert await attempt(opened, 2) == "closed"
            upstream.brokers = [(node_id, port) for node_id, port in BROKERS.items() if node_id != 2]
            await asyncio.sleep(REMOVED_AFTER_S)
            attempted: list[float] = []
            testing.network().on_connect = lambda: attempted.append(time.monotonic())
            await asyncio.sleep(10 * OUTAGE_S)
            testing.network().on_connect = lambda: None
            restart(2)
            upstream.brokers = [*BROKERS.items()]
            await asyncio.sleep(RETURNS_WITHIN_S)
            assert await attempts(opened) == dict.fromkeys(BROKERS, "answered")
            return attempted

    waits = [later - earlier for earlier, later in itertools.pairwise(testing.run(main()))]
    assert all(
        later > min(1.3 * earlier, 0.8 * 60) for earlier, later in itertools.pairwise(waits)
    )  # double, with jitter
    assert 0.8 * 60 <= waits[-1] <= 60 + 0.001


async def test_a_broker_of_the_proxy_that_starts_again_stays_closed() -> None:
    upstream = NamedUpstream([*BROKERS.items()])
    await upstream.listen(*BROKERS.values())
    async with proxy() as opened:
        kill(2)
        await attempts(opened)
        opened.stop_broker(2)
        await opened.start_broker(2)
        assert await attempt(opened, 2) == "refused"
        opened.stop_broker(2)
        restart(2)
        await asyncio.sleep(RECOVERS_WITHIN_S)
        assert await attempt(opened, 2) == "refused"
        await opened.start_broker(2)
        assert await attempt(opened, 2) == "answered"


async def test_a_rule_that_refuses_connections_outlasts_the_outage() -> None:
    upstream = NamedUpstream([*BROKERS.items()])
    await upstream.listen(*BROKERS.values())
    async with proxy() as opened:
        kill(2)
        assert await attempt(opened, 2) == "closed"
        rule = opened.faults.add({"action": "refuse-connections", "broker": 2})
        restart(2)
        await asyncio.sleep(RECOVERS_WITHIN_S)
        assert await attempt(opened, 2) == "refused"
        rule.remove()
        await asyncio.sleep(0)
        assert await attempt(opened, 2) == "answered"
