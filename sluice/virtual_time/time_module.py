"""Virtual time for code that asks the `time` module, as clients written by others do.

An event loop's own time is what `loop.time()` says. aiokafka also reads `time.monotonic()` (backoff, batch expiry,
heartbeats, auto-commit) and `time.time()` (age of metadata); and where a record is given no timestamp, its compiled
record builder asks the operating system, past the `time` module. Left alone, such a client would see a year pass in
its timers and a minute on its clock.

`time.perf_counter` and `time.process_time` stay real: by them it can be told what a run in virtual time took.
"""

import sys
import time  # noqa: TID251  (what is patched here)
from asyncio import _get_running_loop
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from .event_loop import VirtualLoop

T = TypeVar("T", int, float)


@contextmanager
def patch_time(loop: VirtualLoop) -> Iterator[None]:
    """While it is entered, `time.time`, `time.time_ns`, `time.monotonic` and `time.monotonic_ns` tell the loop's time
    to what the loop runs, and real time to everybody else: other threads, other loops, and code between two runs.

    A name taken from the module before (`from time import monotonic`) goes on telling real time, and so does
    `datetime.now()`. aiokafka must have been imported by then.
    """
    readings: dict[str, Callable[[], float]] = {
        "time": lambda: loop.wall_ns() // 1000 / 1e6,  # as many digits as a float of these has
        "time_ns": loop.wall_ns,
        "monotonic": lambda: loop.monotonic_ns() / 1e9,
        "monotonic_ns": loop.monotonic_ns,
    }
    with ExitStack() as undo:
        for name, virtual in readings.items():
            _replace(undo, time, name, _seen_by(loop, virtual, getattr(time, name)))
        accumulator = sys.modules.get("aiokafka.producer.message_accumulator")
        if accumulator is not None:
            _stamp_records(undo, accumulator.BatchBuilder, loop)
        yield


def _seen_by(loop: VirtualLoop, virtual: Callable[[], T], real: Callable[[], T]) -> Callable[[], T]:
    def read() -> T:
        return virtual() if _get_running_loop() is loop else real()

    return read


def _stamp_records(undo: ExitStack, builder: type, loop: VirtualLoop) -> None:
    """aiokafka's records without a timestamp get one here, before its compiled code asks for the machine's."""
    append: Callable[..., object] = builder.append  # type: ignore[attr-defined]  # aiokafka has no types

    def stamped(self: object, *, timestamp: int | None, **record: object) -> object:
        if timestamp is None and _get_running_loop() is loop:
            timestamp = loop.wall_ns() // 1_000_000
        return append(self, timestamp=timestamp, **record)

    _replace(undo, builder, "append", stamped)


def _replace(undo: ExitStack, owner: object, name: str, value: object) -> None:
    undo.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)
