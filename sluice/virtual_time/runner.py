"""The execution of a coroutine in a loop of virtual time."""

import asyncio
import random  # noqa: TID251  (a run seeds the module for other libraries)
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .event_loop import VirtualLoop
from .time_module import patch_time

T = TypeVar("T")


def run_in(loop: VirtualLoop, main: Coroutine[Any, Any, T], *, seed: int) -> T:
    """Run a coroutine in a loop, which is then closed, with the modules `time` and `random` in its time and seed."""
    with _seeded_random(seed), patch_time(loop), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main)


@contextmanager
def _seeded_random(seed: int) -> Iterator[None]:
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
