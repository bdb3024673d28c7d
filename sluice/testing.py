"""An asyncio event loop in virtual time with an in-memory network, which runs hours of a program in seconds.

    async def main() -> None:
        async with Broker() as broker:
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
            ...
            testing.network().partition("localhost")
            await asyncio.sleep(600)

    testing.run(main(), seed=7)

Sluice's broker and client and any pure asyncio client (aiokafka) run unchanged. The same program with the same seed
produces the same bytes at the same nanoseconds; docs/virtual-time.md lists the requirements.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from sluice.errors import ArgumentError, DeadlockError, RunawayError, SluiceError
from sluice.text.arguments import Count, Duration, check_argument
from sluice.virtual_time.event_loop import DAY_S, MAX_TURNS, VirtualLoop
from sluice.virtual_time.link import Link
from sluice.virtual_time.network import MemoryServer, Network
from sluice.virtual_time.runner import run_in
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
    """Run a coroutine in virtual time, as `asyncio.run` does in real time, and return its result.

    Meanwhile the `time` module returns virtual time to it, and the `random` module is seeded.

    Args:
        main: The coroutine.
        seed: Seed of all randomness.
        until: Limit of virtual time in seconds.
        max_turns: Limit of event-loop iterations.

    Raises:
        ArgumentError: An argument has a wrong type.
        DeadlockError: All tasks wait and no timer is pending.
        RunawayError: A limit was reached.
    """
    try:
        check_argument("run", "main", main, Coroutine)
        check_argument("run", "seed", seed, int)
        check_argument("run", "until", until, Duration)
        check_argument("run", "max_turns", max_turns, Count)
    except ArgumentError:
        if isinstance(main, Coroutine):
            main.close()  # else Python also warns that it was never awaited
        raise
    loop = VirtualLoop(seed=seed, until=until, max_turns=max_turns)
    return run_in(loop, main, seed=seed)


def network() -> Network:
    """Return the network of the running loop. Raises SluiceError if the loop is not in virtual time."""
    loop = asyncio._get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise SluiceError("network: no event loop runs in virtual time; call it within sluice.testing.run()")
    return loop.network
