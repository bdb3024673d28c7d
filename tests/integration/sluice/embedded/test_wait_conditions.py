"""Waiting for events of a broker, and the errors of timed-out waits."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator

import pytest

from sluice import Broker
from sluice.errors import SluiceError
from sluice.journal_events import BrokerState, ClientEvent, ConnectionOpened, LeaderChange, Request
from tests.support.local_broker import request_metadata


def _returned(value: object) -> Callable[[], object]:
    return lambda: value


async def test_past_and_future_events_are_waited_for() -> None:
    async with Broker() as broker:
        await request_metadata(broker.bootstrap, "early")
        (early,) = await broker.wait_for(Request)
        waiting = asyncio.ensure_future(broker.wait_for(Request, times=2, after=early.seq, api="Metadata"))
        await request_metadata(broker.bootstrap, "late", versions=(9, 8, 7))
        assert [(each.client_id, each.version) for each in await waiting] == [("late", 9), ("late", 8)]


async def test_waiting_can_start_at_a_future_event() -> None:
    async with Broker() as broker:
        waiting = asyncio.ensure_future(broker.wait_for(Request, after=2))  # the connection and its first request
        await asyncio.sleep(0)
        await broker.wait_for(lambda: True)
        await request_metadata(broker.bootstrap, versions=(9, 8))
        assert [each.version for each in await waiting] == [8]


FOUND = {
    "by client": (Request, {"client_id": "b"}, ["b"]),
    "by one of several clients": (Request, {"client_id": ["a", "b"], "times": 2}, ["a", "b"]),
    "by broker": (Request, {"broker": 1, "times": 2}, ["a", "b"]),
    "matching a predicate": (Request, {"where": lambda event: event.client_id > "a"}, ["b"]),
    "of any kind by one client": (ClientEvent, {"times": 2, "client_id": "b"}, ["b", "b"]),
}


@pytest.mark.parametrize(("type_", "how", "clients"), FOUND.values(), ids=FOUND)
async def test_wait_returns_the_matching_events(
    type_: type[ClientEvent], how: dict[str, object], clients: object
) -> None:
    async with Broker() as broker:
        for name in ("a", "b"):
            await request_metadata(broker.bootstrap, name)
        found = await broker.wait_for(type_, **how)  # type: ignore[call-overload]  # one of its filters each
        assert [event.client_id for event in found] == clients


async def test_cluster_change_is_waited_for() -> None:
    async with Broker(2, config={"sluice.election.delay.ms": 20}) as broker:
        await broker.cluster.create_topic("t", assignments={0: (1, 2)})
        await broker.cluster.stop(1, controlled=False)
        (moved,) = await broker.wait_for(LeaderChange)
        assert (moved.topic, moved.before, moved.broker) == ("t", 1, 2)


async def test_function_result_is_waited_for() -> None:
    async with Broker() as broker:
        responses: Iterator[object] = iter([0, [], None, "now"])
        assert await broker.wait_for(lambda: next(responses)) == "now"


async def test_coroutine_function_is_rejected() -> None:
    async with Broker() as broker:

        async def later() -> bool:
            return True

        waiting = later()
        with pytest.raises(SluiceError, match="wait_for: expected a function to call repeatedly"):
            await broker.wait_for(_returned(waiting))
        await waiting


async def _too_late(broker: Broker, waiting: Awaitable[object]) -> str:
    with pytest.raises(TimeoutError) as raised:
        await waiting
    return str(raised.value)


async def test_timed_out_wait_reports_earlier_events() -> None:
    async with Broker() as broker:
        waiting = _too_late(broker, broker.wait_for(BrokerState, timeout_s=0))
        assert await waiting == "after 0 s: 0 of 1 BrokerState; no journal events during the wait, nor before"
        await request_metadata(broker.bootstrap, versions=(9,) * 12)
        await broker.wait_for(ConnectionOpened)
        message = await _too_late(broker, broker.wait_for(BrokerState, timeout_s=0))
        first, *events = message.splitlines()
        assert first == "after 0 s: 0 of 1 BrokerState; no journal events during the wait; last events:"
        assert len(events) == 10


async def test_timed_out_wait_for_a_function_reports_its_result() -> None:
    async with Broker() as broker:

        def leaders_known() -> dict[str, int]:
            return {}

        message = await _too_late(broker, broker.wait_for(leaders_known, timeout_s=0.02))
        assert re.match(
            r"after 0\.02 s: .*\bleaders_known still returns \{\}; no journal events during the wait", message
        )
