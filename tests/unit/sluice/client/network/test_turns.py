"""The order of a group's requests: one waits until the earlier ones are sent, or until its deadline."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from sluice.client.errors import TimeoutException
from sluice.client.network.asyncio_network import AsyncNetwork, Turns
from sluice.clock import LoopClock


def turns() -> Turns:
    loop = asyncio.get_running_loop()
    network = SimpleNamespace(clock=LoopClock(loop), timeout=TimeoutException)
    return Turns(cast(AsyncNetwork, network))


async def test_turns_come_in_order_and_one_that_waits_can_leave() -> None:
    taken, order = turns(), list[str]()

    async def take(name: str) -> None:
        async with taken.take(float("inf")):
            order.append(name)
            await asyncio.sleep(0)

    tasks = {name: asyncio.create_task(take(name)) for name in "abc"}
    await asyncio.sleep(0)
    tasks["b"].cancel()
    await asyncio.wait(tasks.values())
    assert order == ["a", "c"]


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_deadline_of_a_turn(is_cancelled: bool) -> None:
    """Also in a task that was cancelled: it may be closing its client."""
    taken = turns()

    async def wait() -> None:
        try:
            await asyncio.sleep(3600 if is_cancelled else 0)
        finally:
            async with taken.take(0):
                raise AssertionError

    async with taken.take(0):
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        if is_cancelled:
            task.cancel()
        with pytest.raises(TimeoutException, match="an earlier request was not sent in time"):
            await task
