"""A thread with an event loop in which a Broker lives, for those who have no loop or another one.

Whatever is asked of the broker is handed to its loop, which does one thing after the other; so any thread may ask. An
exception that nobody there expected is raised to whoever asks next, or at the end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import CancelledError, Future
from threading import Event, Lock, Thread, current_thread
from typing import TypeVar

from sluice.broker.network.fair_selector import new_loop
from sluice.clock import Clock, LoopClock
from sluice.errors import SluiceError

from .broker import Broker

_T = TypeVar("_T")

# A broker that stops takes a second at most. Who is asked by the broker's own loop as it stops must not wait for ever.
_STOPS_WITHIN_S = 5.0


class _StoppedError(SluiceError):
    """It was too late to ask the broker's loop."""

    def __init__(self) -> None:
        super().__init__("the broker has stopped")


class BrokerThread:
    """Runs a broker from `start` to `stop`."""

    clock: Clock  # of its loop, for reading only; there once it has started

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._thread = Thread(target=self._run, name="sluice", daemon=True)
        self._started: Future[None] = Future()
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None  # while it takes what it is asked
        self._ended = Event()
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Returns when clients may connect. Raises what keeps the broker from it."""
        if self._thread.ident is not None:
            raise SluiceError("a broker is started once: make another one")
        self._thread.start()
        try:
            self._started.result()
        except Exception:
            self._thread.join()
            raise

    def stop(self) -> None:
        """Returns when the broker has stopped."""
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is not None:
                loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def raise_failure(self) -> None:
        """Raises what went wrong in the thread, if something did."""
        if self._failure is not None:
            raise SluiceError(f"in the broker's thread: {self._failure!r}") from self._failure

    @property
    def has_ended(self) -> bool:
        """Whether there is no broker any more."""
        return self._ended.is_set()

    def pause(self, ms: float) -> None:
        """Returns after so many milliseconds, or when the broker ends."""
        self._ended.wait(ms / 1000)

    def call(self, function: Callable[[], _T]) -> _T:
        """What a function returns that is called between two things that the broker does, or after its end, which is
        waited for where the broker is stopping.
        """
        if self._ended.is_set() or current_thread() is self._thread:
            return function()

        async def called() -> _T:
            return function()

        try:
            return self.run(called)
        except _StoppedError:
            if not self._ended.wait(_STOPS_WITHIN_S):
                raise
            return function()

    def run(self, function: Callable[[], Awaitable[_T]]) -> _T:
        """What a coroutine function returns that runs in the broker's loop. Not for the broker's own thread."""
        if current_thread() is self._thread:
            raise SluiceError("this waits for the broker's thread, and must not be called in it")
        self.raise_failure()

        async def awaited() -> _T:
            return await function()

        with self._lock:
            if self._loop is None:
                raise _StoppedError if self._started.done() else SluiceError("a broker runs within `with`")
            future = asyncio.run_coroutine_threadsafe(awaited(), self._loop)
        try:
            return future.result()
        except CancelledError:
            raise _StoppedError from None
        finally:
            future.cancel()  # nobody waits for it any more, where this was interrupted

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # whoever it is for is in another thread
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
