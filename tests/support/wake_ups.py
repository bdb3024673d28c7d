"""The wake-up lateness of the machine: a thread that repeatedly sleeps for a millisecond."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

QUIET_S = 0.001  # if the machine's own p99 is above this, a late attempt proves nothing


@contextmanager
def wake_ups() -> Iterator[list[float]]:
    """Yield the lateness in s of each wake-up of a thread."""
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
