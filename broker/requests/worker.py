"""Long work on records, in a thread beside the event loop.

A compressed batch of 100 KB can have 10 million records, whose validation takes 10 s. Such work uses no state of the
broker.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TypeVar

from sluice.protocol.message import Message

from .context import Outcome, RequestContext
from .deferred_response import respond_when_done

T = TypeVar("T")
_Job = Callable[[], object]

# The event loop gets the interpreter lock back within this time.
_SWITCH_S = 0.0005


class Worker:
    """A worker that does its work at once: in virtual time, work takes no time."""

    def run(self, work: Callable[[], T], done: Callable[[Callable[[], T]], None]) -> None:
        """Call `work`, then `done` on the event loop with a function that returns its value or raises its error."""
        done(_outcome_of(work))

    def close(self) -> None:
        """End after the current work."""


class ThreadWorker(Worker):
    def __init__(self, call_soon_threadsafe: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon_threadsafe = call_soon_threadsafe
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: Thread | None = None

    def run(self, work: Callable[[], T], done: Callable[[Callable[[], T]], None]) -> None:
        def job() -> None:
            with _SWITCHING:
                outcome = _outcome_of(work)
            with suppress(RuntimeError):  # the event loop is closed
                self._call_soon_threadsafe(lambda: done(outcome))

        if self._thread is None:
            self._thread = Thread(target=self._run_jobs, name="sluice-worker", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def close(self) -> None:
        self._jobs.put(None)

    def _run_jobs(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


class _Switching:
    """A short switch interval between threads, while any worker works."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._workers = 0
        self._before_s = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._workers:
                self._before_s = sys.getswitchinterval()
                sys.setswitchinterval(_SWITCH_S)
            self._workers += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._workers -= 1
            if not self._workers:
                sys.setswitchinterval(self._before_s)


_SWITCHING = _Switching()


def _outcome_of(work: Callable[[], T]) -> Callable[[], T]:
    try:
        value = work()
    except Exception as error:
        failure = error

        def fail() -> T:
            raise failure

        return fail
    return lambda: value


def respond_after(
    ctx: RequestContext,
    worker: Worker,
    work: Callable[[], T],
    respond: Callable[[T], Message | Outcome],
    request_bytes: int = 0,
    *,
    survives_disconnect: bool = False,
) -> Message | Outcome:
    """Do `work` in the worker, and respond with `respond(value)`; its errors close the connection.

    Until then, `request_bytes` count as a request in flight. If the client has left, `respond` is called only with
    `survives_disconnect`.
    """

    def start(done: Callable[[Callable[[], T]], None]) -> None:
        memory = ctx.session.connection.request_memory
        memory.charge(request_bytes)

        def finish(outcome: Callable[[], T]) -> None:
            memory.release(request_bytes)
            done(outcome)

        worker.run(work, finish)

    return respond_when_done(ctx, start, lambda outcome: respond(outcome()), survives_disconnect=survives_disconnect)
