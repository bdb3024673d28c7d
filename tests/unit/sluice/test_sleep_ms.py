"""Sleeping by the injected clock, without leftover timers."""

import asyncio

import pytest

from sluice.clock import ManualClock, sleep_ms


async def test_sleep_ends_when_the_clock_reaches_its_time() -> None:
    clock = ManualClock()
    waiting = asyncio.ensure_future(sleep_ms(clock, 20))
    await asyncio.sleep(0)
    done = []
    for ms in (19, 1):
        clock.advance(ms)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        done.append(waiting.done())
    assert done == [False, True]


async def test_cancelled_sleep_leaves_no_timer() -> None:
    clock = ManualClock()
    waiting = asyncio.ensure_future(sleep_ms(clock, 20))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    clock.advance(20)


async def test_sleep_cancelled_as_it_ends_is_no_error() -> None:
    clock = ManualClock()
    waiting = asyncio.ensure_future(sleep_ms(clock, 20))
    await asyncio.sleep(0)
    waiting.cancel()
    clock.advance(20)  # before the sleeping task has run again
    with pytest.raises(asyncio.CancelledError):
        await waiting
