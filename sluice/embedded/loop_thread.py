"""A thread whose event loop runs a Broker, for code without an event loop or with another one.

Calls from any thread run in the broker's loop, one at a time. An unexpected exception in the loop is raised to the next
caller, or at the end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import CancelledError, Future, wait
from threading import Event, Lock, Thread, current_thread
from typing import TypeVar

from sluice.broker.network.fair_selector import new_loop
from sluice.clock import Clock, LoopClock
from sluice.errors import BlockedError, NotRunningError, SluiceError

from .broker import Broker

_T = TypeVar("_T")

# A broker stops within a second. The limit prevents a deadlock if its loop itself waits for the caller.
_STOPS_WITHIN_S = 5.0
# Much longer than the longest event-loop iteration on a busy machine.
_RUNS_WITHIN_S = 30.0


def _stopped() -> NotRunningError:
    return NotRunningError("the broker has stopped")


def _blocked() -> BlockedError:
    return BlockedError(f"the broker's event loop has not run for {_RUNS_WITHIN_S:g} s; does a callback block it?")


class BrokerThread:
    clock: Clock  # of the loop, for reading only; set once it has started

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._thread = Thread(target=self._run, name="sluice", daemon=True)
        self._started: Future[None] = Future()
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None  # set while it accepts calls
        self._ended = Event()
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Return when clients may connect; raise the error of a failed start."""
        if self._thread.ident is not None:
            raise SluiceError("a broker can be started only once; create another one")
        self._thread.start()
        try:
            if not wait([self._started], _RUNS_WITHIN_S).done:
                raise _blocked()
            self._started.result()
        except BlockedError:
            raise
        except Exception:
            self._thread.join()
            raise

    def stop(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is not None:
                loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_RUNS_WITHIN_S)
        if self._thread.is_alive():
            raise _blocked()

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise SluiceError(f"in the broker's thread: {self._failure!r}") from self._failure

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def pause(self, ms: float) -> None:
        """Wait for a time, or until the broker stops."""
        self._ended.wait(ms / 1000)

    def call(self, function: Callable[[], _T]) -> _T:
        """Call a function in the broker's loop or, after the loop has ended, in this thread."""
        if self._ended.is_set() or current_thread() is self._thread:
            return function()

        async def called() -> _T:
            return function()

        try:
            return self.run(called)
        except NotRunningError:
            if not self._started.done() or not self._ended.wait(_STOPS_WITHIN_S):
                raise
            return function()

    def run(self, function: Callable[[], Awaitable[_T]]) -> _T:
        """Run a coroutine function in the broker's loop; not for the broker's own thread."""
        if current_thread() is self._thread:
            raise SluiceError("a blocking call in the broker's own thread would never return")
        self.raise_failure()

        async def awaited() -> _T:
            return await function()

        with self._lock:
            if self._loop is None:
                if self._started.done():
                    raise _stopped()
                raise NotRunningError("a broker is available only within `with`")
            loop = self._loop
            future = asyncio.run_coroutine_threadsafe(awaited(), loop)
        try:
            while not wait([future], _RUNS_WITHIN_S).done:
                self._ensure_running(loop)
            return future.result()
        except CancelledError:
            raise _stopped() from None
        finally:
            future.cancel()  # its result is not needed after an interrupt

    def _ensure_running(self, loop: asyncio.AbstractEventLoop) -> None:
        ran = Event()
        try:
            loop.call_soon_threadsafe(ran.set)
        except RuntimeError:  # closed
            raise _stopped() from None
        if not ran.wait(_RUNS_WITHIN_S) and not self._ended.is_set():
            raise _blocked()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # for the thread that waits for the start, or the next caller
            if self._started.done():
                self._failure = self._failure or error
            else:
                self._started.set_exception(error)
        finally:
            with self._lock:
                self._loop = None
            self._ended.set()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_loop_exception)
        self._stop = asyncio.Event()
        async with self._broker:
            self.clock = LoopClock(loop)
            self._loop = loop
            self._started.set_result(None)
            await self._stop.wait()

    def _on_loop_exception(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self._failure = self._failure or error
        loop.default_exception_handler(dict(context))
