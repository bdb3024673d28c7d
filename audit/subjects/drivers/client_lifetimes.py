"""How long one client lives, where a driver makes several, one after the other."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress


async def live(ms: int, work: Coroutine[object, object, None]) -> None:
    """Works for so long, then is cancelled; 0: until then who works is cancelled."""
    with suppress(TimeoutError):
        await asyncio.wait_for(work, ms / 1000 or None)
