"""Where the runs of a search are executed: in this process, or in several."""

import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_all_start_methods, get_context

from sluice.errors import ArgumentError, ExploreError
from sluice.text.arguments import Count, check_argument
from sluice.text.error_text import expected

from .execution import Options, Outcome, Program, Schedule, execute
from .search import Evaluate


@contextmanager
def evaluating(program: Program, options: Options, jobs: int) -> Iterator[Evaluate]:
    """Provide a function that executes runs, in `jobs` processes. Raises ArgumentError."""
    check_argument("explore", "jobs", jobs, Count)
    if jobs == 1:
        yield in_this_process(program, options)
        return
    if "fork" not in get_all_start_methods():
        raise ArgumentError(f"explore: jobs: {expected('1, because this system cannot fork processes', jobs)}")
    # Forked processes have the program, which may be a closure that cannot be pickled.
    pool = ProcessPoolExecutor(jobs, get_context("fork"), _begin, (program, options))
    try:
        yield partial(_executed, pool, jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def in_this_process(program: Program, options: Options) -> Evaluate:
    return lambda schedules: (execute(program, schedule, options) for schedule in schedules)


def _executed(pool: ProcessPoolExecutor, jobs: int, schedules: Sequence[Schedule]) -> Iterator[Outcome]:
    """Execute a few runs ahead of the search, as it may stop at each of them."""
    ahead: deque[Future[Outcome]] = deque()
    try:
        for schedule in schedules:
            ahead.append(pool.submit(_execute, schedule))
            if len(ahead) > jobs:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    except BrokenProcessPool:
        raise ExploreError("explore: the program ended its process; run it with jobs=1 to see how") from None
    finally:
        for future in ahead:
            future.cancel()


# -- in a forked process -----------------------------------------------------------------------------------------------

_own: list[tuple[Program, Options]] = []


def _begin(program: Program, options: Options) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches all processes; the first one stops them
    _own.append((program, options))


def _execute(schedule: Schedule) -> Outcome:
    program, options = _own[-1]
    return execute(program, schedule, options)
