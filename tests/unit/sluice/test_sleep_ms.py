"""A sleep lasts as long as the injected clock says, and leaves no timer behind."""

import asyncio

import pytest

from sluice.clock import ManualClock, sleep_ms


def test_it_ends_when_the_clock_has_got_there() -> None:
    async def run() -> list[bool]:
        clock = ManualClock()
        waiting = asyncio.ensure_future(sleep_ms(clock, 20))
        await asyncio.sleep(0)
        done = []
        for ms in (19, 1):
            clock.advance(ms)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            done.append(waiting.done())
        return done

    assert asyncio.run(run()) == [False, True]


def test_one_that_is_given_up_is_forgotten() -> None:
    async def run() -> None:
        clock = ManualClock()
        waiting = asyncio.ensure_future(sleep_ms(clock, 20))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        clock.advance(20)

    asyncio.run(run())


def test_one_that_is_given_up_as_it_ends_is_no_mistake() -> None:
    async def run() -> None:
        clock = ManualClock()
        waiting = asyncio.ensure_future(sleep_ms(clock, 20))
        await asyncio.sleep(0)
        waiting.cancel()
        clock.advance(20)  # before the one that waited has run again
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(run())
