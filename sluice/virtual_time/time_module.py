"""Virtual time for libraries that read the `time` module.

aiokafka reads not only `loop.time()` but also `time.monotonic()` (backoff, batch expiry, heartbeats, auto-commit) and
`time.time()` (age of metadata), and its compiled record builder reads the operating system's clock for records without
a timestamp. `time.perf_counter` and `time.process_time` stay real, to measure runs.
"""

import sys
import time  # noqa: TID251  (patched here)
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import get_ident
from typing import TypeVar

from .event_loop import VirtualLoop

T = TypeVar("T", int, float)


@contextmanager
def patch_time(loop: VirtualLoop) -> Iterator[None]:
    """Patch `time.time`, `time.time_ns`, `time.monotonic` and `time.monotonic_ns` for code that the loop runs.

    Other threads and loops still see real time. So do names imported before (`from time import monotonic`) and
    `datetime.now()`. aiokafka must already be imported.
    """
    readings: dict[str, Callable[[], float]] = {
        "time": lambda: loop.wall_ns() // 1000 / 1e6,  # a float is exact to microseconds
        "time_ns": loop.wall_ns,
        "monotonic": loop.time,
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
        return virtual() if loop._thread_id == get_ident() else real()

    return read


def _stamp_records(undo: ExitStack, builder: type, loop: VirtualLoop) -> None:
    """Add a timestamp to aiokafka's records without one, before its compiled code reads the machine's clock."""
    append: Callable[..., object] = builder.append  # type: ignore[attr-defined]  # aiokafka has no types

    def stamped(self: object, *, timestamp: int | None, **record: object) -> object:
        if timestamp is None and loop._thread_id == get_ident():
            timestamp = loop.wall_ns() // 1_000_000
        return append(self, timestamp=timestamp, **record)

    _replace(undo, builder, "append", stamped)


def _replace(undo: ExitStack, owner: object, name: str, value: object) -> None:
    undo.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)
