"""The loop of an exploration: paused, killed and preempted hosts."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from sluice import testing
from sluice.explore.process_loop import ProcessLoop
from sluice.virtual_time.runner import run_in


def run(main: Callable[[ProcessLoop], Coroutine[Any, Any, None]]) -> None:
    loop = ProcessLoop(seed=0, until=1000, max_turns=10_000)
    run_in(loop, main(loop), seed=0)


def ticking(loop: ProcessLoop, host: str, times: list[int]) -> asyncio.Task[None]:
    """Start a task on a host that notes the time in each second."""

    async def tick() -> None:
        began = loop.time()
        while True:
            await asyncio.sleep(1)
            times.append(int(loop.time() - began))

    with testing.network().host(host):
        return loop.create_task(tick())


def test_paused_host_continues_later() -> None:
    async def main(loop: ProcessLoop) -> None:
        paused, others = list[int](), list[int]()
        tasks = [ticking(loop, "app-1", paused), ticking(loop, "app-2", others)]
        await asyncio.sleep(2.5)
        loop.pause("app-1")
        loop.pause("app-1")  # no effect
        assert loop.is_paused("app-1")
        await asyncio.sleep(3)
        loop.resume("app-1")
        await asyncio.sleep(2.2)
        for task in tasks:
            task.cancel()
        assert paused == [1, 2, 5, 6, 7]  # the tick at 3 s is late: it comes at 5.5 s
        assert others == [1, 2, 3, 4, 5, 6, 7]

    run(main)


def test_callbacks_of_a_paused_host_keep_their_order() -> None:
    async def main(loop: ProcessLoop) -> None:
        called: list[int] = []
        with testing.network().host("app-1"):
            loop.call_soon(called.append, 1)
            cancelled = loop.call_later(1, called.append, 0)
            loop.call_later(2, called.append, 3)
            loop.pause("app-1")
            loop.call_soon(called.append, 2)
            cancelled.cancel()
        await asyncio.sleep(5)
        assert called == []
        loop.resume("app-1")
        await asyncio.sleep(1)
        assert called == [1, 2, 3]

    run(main)


def test_killed_host_continues_only_at_the_end() -> None:
    times: list[int] = []

    async def main(loop: ProcessLoop) -> None:
        task = ticking(loop, "app-1", times)
        loop.kill("app-1")
        loop.resume("app-1")
        await asyncio.sleep(5)
        assert times == []
        loop.resume_all()
        await asyncio.sleep(0.1)
        assert not task.done()

    run(main)  # cancels the task


def test_timers_are_late_within_the_tolerance() -> None:
    async def main(loop: ProcessLoop) -> None:
        loop.vary(Random(1), [])
        delays: list[float] = []
        for _ in range(20):
            began = loop.time()
            await asyncio.sleep(1)
            delays.append(loop.time() - began - 1)
        assert 0 <= min(delays) < max(delays) <= 0.005 + 1e-6

    run(main)


@pytest.mark.parametrize("step", [1, 3], ids=["the first step", "a later step"])
def test_preempted_host_stops_for_a_time(step: int) -> None:
    async def main(loop: ProcessLoop) -> None:
        loop.vary(Random(1), [(step, 4.5)])
        times, others = list[int](), list[int]()
        tasks = [ticking(loop, "app-1", times), ticking(loop, "app-2", others)]
        await asyncio.sleep(6.9)
        for task in tasks:
            task.cancel()
        assert min(len(times), len(others)) < max(len(times), len(others)) == 6

    run(main)
