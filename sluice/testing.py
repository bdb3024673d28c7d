"""Hours in seconds: an asyncio event loop in virtual time, with a network in memory, for tests of asyncio programs.

    async def main() -> None:
        async with Broker() as broker:
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
            ...
            testing.network().partition("localhost")
            await asyncio.sleep(600)

    testing.run(main(), seed=7)

Sluice's broker and client and any client that is pure asyncio (aiokafka) run as they are. The same program with the
same seed does the same, to the byte and the nanosecond; docs/virtual-time.md says what else that takes.
"""

import asyncio
import random  # noqa: TID251  (a run seeds the module that others draw from)
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sluice.virtual_time.event_loop import DAY_S, MAX_TURNS, DeadlockError, RunawayError, VirtualLoop
from sluice.virtual_time.link import Link
from sluice.virtual_time.network import MemoryServer, Network
from sluice.virtual_time.time_module import patch_time
from sluice.virtual_time.transport import MemoryTransport

__all__ = [
    "DeadlockError",
    "Link",
    "MemoryServer",
    "MemoryTransport",
    "Network",
    "RunawayError",
    "VirtualLoop",
    "network",
    "patch_time",
    "run",
]

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T], *, seed: int = 0, until: float = DAY_S, max_turns: int = MAX_TURNS) -> T:
    """Runs a coroutine in virtual time, as `asyncio.run` does in real time, and returns what it returns.

    While it runs, the `time` module tells virtual time to it, and the `random` module draws from `seed`. Raises
    DeadlockError when nothing can happen any more, RunawayError when it is not done after `until` virtual seconds or
    `max_turns` turns of the loop.
    """
    loop = VirtualLoop(seed=seed, until=until, max_turns=max_turns)
    with _seeded_random(seed), patch_time(loop), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main)


def network() -> Network:
    """The network of the loop that runs. Raises RuntimeError where that is none in virtual time."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise RuntimeError("this event loop is in real time; sluice.testing.run() runs one that is not")
    return loop.network


@contextmanager
def _seeded_random(seed: int) -> Iterator[None]:
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
