"""Lifetimes of clients, for drivers that create several in sequence."""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress

FOREVER_S = 1e6


async def run_for(ms: int, work: Coroutine[object, object, None]) -> None:
    """Cancel the work after this long; 0 means no limit."""
    with suppress(TimeoutError):
        await asyncio.wait_for(work, ms / 1000 or None)


def deadline_s(lifetime_ms: int) -> float:
    return time.monotonic() + (lifetime_ms / 1000 or FOREVER_S)
