"""Waiting in a coroutine, by the injected clock: for those who watch a broker. Requests wait in the purgatory."""

import asyncio
from functools import partial

from sluice.clock import Clock


async def pause(clock: Clock, ms: float) -> None:
    """Returns after so many milliseconds."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_at(clock.monotonic_ms() + ms, partial(_end, over))
    try:
        await over
    finally:
        timer.cancel()


def _end(over: "asyncio.Future[None]") -> None:
    if not over.done():  # who waited was cancelled in the same turn of the loop, and has not run since
        over.set_result(None)
