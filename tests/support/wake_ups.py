"""How late this machine itself is: a thread that sleeps for a millisecond again and again."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

QUIET_S = 0.001  # the machine's own p99, above which an attempt that was late says nothing


@contextmanager
def wake_ups() -> Iterator[list[float]]:
    """By how much, in s, a thread of this machine wakes up too late."""
    late: list[float] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            started = monotonic()
            sleep(0.001)
            late.append(monotonic() - started - 0.001)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield late
    finally:
        over.set()
        thread.join()


def percentile_99(values: list[float]) -> float:
    return sorted(values)[len(values) * 99 // 100]
