"""An asyncio event loop in virtual time: when nothing is ready, its clock jumps to the next timer.

It is asyncio's BaseEventLoop with an in-memory network and without a selector. Each iteration takes a nanosecond, and
nothing comes from outside (no threads, sockets, or signals but Ctrl-C), so runs are repeatable.

Callbacks run in asyncio's order, but iterations and handles (handles.py) need fewer Python calls than asyncio's, which
were a fifth of the time of a simulation.

One source of nondeterminism in asyncio is the order of sets: `asyncio.wait` returns sets of tasks, ordered by address.
Here tasks and futures hash by a counter. Set PYTHONHASHSEED to compare runs of different processes.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextvars import Context, copy_context
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from random import Random  # noqa: TID251  (the loop's single source of randomness)
from types import CodeType
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack

from sluice.errors import DeadlockError, RunawayError, SluiceError

from .handles import Handle, TimerHandle
from .network import MemoryServer, Network
from .transport import MemorySocket, MemoryTransport

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
P = TypeVar("P", bound=asyncio.BaseProtocol)

DAY_S = 86_400.0
# At some 10 us an iteration this is some minutes of real time.
MAX_TURNS = 20_000_000
# Not zero, so that an unset time is not mistaken for a measured one.
_START_NS = 10_000 * 10**9
_WALL_START_NS = 1_700_000_000 * 10**9
# Time passes in each iteration for clients that poll: aiokafka waits *until* the time to commit, but commits *after*
# it.
_TURN_NS = 1
_SLACK_NS = 1_000_000  # margin for work that ends exactly at the limit
_RESOLUTION_S = 1e-9  # timers this close to now are due
# As asyncio's: cancelled timers are removed if they are more than half of more than 100.
_MIN_TIMERS = 100
_MAX_CANCELLED_SHARE = 0.5
# For cancellation after a limit was reached.
_TO_CLEAN_UP_NS = 3600 * 10**9
_TURNS_TO_CLEAN_UP = 1_000_000
_NAMED_TASKS = 20
_new_handle = object.__new__


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop; `network` carries its connections, and `random` is seeded with `seed`.

    Raises RunawayError after `until` virtual seconds or `max_turns` iterations, and DeadlockError. Both list the tasks
    and where they wait.
    """

    # Attributes of BaseEventLoop that typeshed lacks.
    _ready: deque[Handle | TimerHandle]
    _scheduled: list[TimerHandle]  # a heap
    _timer_cancelled_count: int
    _stopping: bool
    _closed: bool
    _debug: bool
    _task_factory: object
    _thread_id: int | None  # None: it does not run

    def __init__(self, *, seed: int = 0, until: float = DAY_S, max_turns: int = MAX_TURNS) -> None:
        super().__init__()
        self.random = Random(seed)  # noqa: S311  (repeatable on purpose)
        self._now_ns = _START_NS
        self._now_s = _START_NS / 1e9
        self._wall_offset_ns = _WALL_START_NS - _START_NS
        self._until_ns = _START_NS + round(until * 1e9) + _SLACK_NS
        self._turns = 0
        self._max_turns = max_turns
        self.next_number = count(1).__next__
        self.network = Network(self, self.random)
        self.create_future = partial(_Future, loop=self)  # type: ignore[method-assign]  # without a call in Python

    # -- time --------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        """Return virtual seconds, starting at 10,000."""
        return self._now_s

    def monotonic_ns(self) -> int:
        return self._now_ns

    def wall_ns(self) -> int:
        """Return virtual nanoseconds since the epoch, starting in November 2023."""
        return self._wall_offset_ns + self._now_ns

    def set_wall_clock(self, later_s: float) -> None:
        """Set the wall clock forward, or back."""
        self._wall_offset_ns += round(later_s * 1e9)

    # -- callbacks ---------------------------------------------------------------------------------------------------

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if self._closed or self._debug:
            return super().call_soon(callback, *args, context=context)
        handle = _new_handle(Handle)
        handle._callback = callback
        handle._args = args
        handle._context = copy_context() if context is None else context
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if self._closed or self._debug or when is None:
            return super().call_at(when, callback, *args, context=context)
        return self._add_timer(when, callback, args, context)

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if self._closed or self._debug or delay is None:
            return super().call_later(delay, callback, *args, context=context)
        return self._add_timer(self._now_s + delay, callback, args, context)

    def _add_timer(
        self, when: float, callback: Callable[..., object], args: Sequence[Any], context: Context | None
    ) -> TimerHandle:
        timer = _new_handle(TimerHandle)
        timer._callback = callback
        timer._args = args
        timer._context = copy_context() if context is None else context
        timer._loop = self
        timer._when = when
        timer._scheduled = True
        heappush(self._scheduled, timer)
        return timer

    def _run_once(self) -> None:
        """Run iterations until `stop`; asyncio's method runs one, which `run_forever` repeats."""
        ready, timers = self._ready, self._scheduled
        handle: Handle | TimerHandle | None
        args: Sequence[Any] | None
        now_ns, until_ns = self._now_ns, self._until_ns
        turns = self._turns
        try:
            while True:
                if timers and (timers[0]._callback is None or self._timer_cancelled_count > _MIN_TIMERS // 2):
                    self._drop_cancelled_timers()
                if not (ready or self._stopping):
                    now_ns = self._next_timer_ns()
                # Time, and the limits.
                self._now_ns = now_ns = now_ns + _TURN_NS
                self._now_s = now_s = now_ns / 1e9
                turns += 1
                if turns > self._max_turns or now_ns > until_ns:
                    self._turns = turns
                    self._run_away()
                end_s = now_s + _RESOLUTION_S
                while timers and timers[0]._when < end_s:
                    timer = heappop(timers)
                    timer._scheduled = False
                    ready.append(timer)
                left = len(ready)  # not those that these callbacks add
                while left:  # faster than a range, because most iterations have one callback
                    left -= 1
                    handle = ready.popleft()
                    callback = handle._callback
                    if callback is None:
                        continue
                    try:
                        if args := handle._args:  # without arguments, a call costs less
                            handle._context.run(callback, *args)
                        else:
                            handle._context.run(callback)
                    except (SystemExit, KeyboardInterrupt):
                        raise
                    except BaseException as error:
                        self._report(handle, error)
                handle = callback = args = None  # the arguments may end here
                if self._stopping:
                    break
        finally:
            self._turns = turns

    def _next_timer_ns(self) -> int:
        """Return the time of the next timer."""
        if not self._scheduled:
            raise DeadlockError(f"deadlock: all tasks wait, and no timer is pending\n{self._waiting_tasks()}")
        timeout_s = self._scheduled[0]._when - self._now_s
        return max(self._now_ns, round((self._now_s + timeout_s) * 1e9))

    def _drop_cancelled_timers(self) -> None:
        timers = self._scheduled
        if len(timers) > _MIN_TIMERS and self._timer_cancelled_count / len(timers) > _MAX_CANCELLED_SHARE:
            for timer in timers:
                timer._scheduled = timer._callback is not None
            timers[:] = [timer for timer in timers if timer._scheduled]
            heapify(timers)
            self._timer_cancelled_count = 0
        while timers and timers[0]._callback is None:
            heappop(timers)._scheduled = False
            self._timer_cancelled_count -= 1

    def _report(self, handle: asyncio.Handle, error: BaseException) -> None:
        context = {"message": f"Exception in callback {handle!r}", "exception": error, "handle": handle}
        self.call_exception_handler(context)

    # -- limits ------------------------------------------------------------------------------------------------------

    def _run_away(self) -> NoReturn:
        """Raise the error of a limit, and raise the limit for the cleanup."""
        if self._turns > self._max_turns:
            self._max_turns = self._turns + _TURNS_TO_CLEAN_UP
            passed_s = (self._now_ns - _START_NS) / 1e9
            limit = f"{self._turns - 1} event-loop iterations, {passed_s:g} s"
        else:
            limit = f"{(self._until_ns - _SLACK_NS - _START_NS) / 1e9:g} virtual seconds"
            self._until_ns = self._now_ns + _TO_CLEAN_UP_NS
        raise RunawayError(f"not done after {limit}\n{self._waiting_tasks()}")

    def _waiting_tasks(self) -> str:
        tasks = sorted(asyncio.all_tasks(self), key=hash)
        lines = [f"  {task.get_name()} waits in {_where(task)}" for task in tasks[:_NAMED_TASKS]]
        if len(tasks) > _NAMED_TASKS:
            lines.append(f"  and {len(tasks) - _NAMED_TASKS} more tasks")
        return "\n".join(lines) or "  no tasks"

    # -- the network -------------------------------------------------------------------------------------------------

    async def create_connection(  # of asyncio's overloads, the one without sockets
        self,
        protocol_factory: Callable[[], P],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: object = None,
        sock: object = None,
        **options: object,  # for several addresses; a host has only one
    ) -> tuple[MemoryTransport, P]:
        """Connect over the memory network, without TLS."""
        _ensure(ssl is None or ssl is False, "TLS")
        _ensure(sock is None and host is not None and port is not None, "real sockets: give host and port")
        assert host is not None
        assert port is not None
        return await self.network.connect(protocol_factory, host, port)

    async def create_server(  # type: ignore[override]  # as above
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: object = None,
        sock: object = None,
        start_serving: bool = True,
        **options: object,  # of sockets, ignored
    ) -> MemoryServer:
        """Listen at one address of the memory network, or a socket of `bind`, without TLS."""
        _ensure(ssl is None or ssl is False, "TLS")
        _ensure(sock is None or isinstance(sock, MemorySocket), "real sockets: give host and port")
        listening = sock if isinstance(sock, MemorySocket) else self.network.bind(host or "0.0.0.0", port or 0)
        server = MemoryServer(self.network, protocol_factory, listening)
        if start_serving:
            await server.start_serving()
        return server

    def bind(self, host: str, port: int, backlog: int) -> MemorySocket:
        """Return a `sock` for `create_server`; port 0 picks the next free one. Raises SluiceError."""
        try:
            return self.network.bind(host or "0.0.0.0", port)
        except OSError as error:
            raise SluiceError(f"cannot listen on {host}:{port}: {error.strerror}") from None

    async def getaddrinfo(  # type: ignore[override]  # constants of sockets are plain ints here
        self, host: str | bytes | None, port: str | int | None, **hints: object
    ) -> list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]]:
        name = host.decode() if isinstance(host, bytes) else host
        address = self.network.address(name or "localhost")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, int(port or 0)))]

    async def getnameinfo(self, sockaddr: tuple[str, int], flags: int = 0) -> tuple[str, str]:  # type: ignore[override]
        return self.network.name(sockaddr[0]), str(sockaddr[1])

    # -- external events ---------------------------------------------------------------------------------------------

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: object) -> asyncio.Future[T]:
        """Call `func` in the next iteration, in this thread, because threads are not deterministic."""
        future: asyncio.Future[T] = self.create_future()

        def call() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:
                future.set_exception(error)

        self.call_soon(call)
        return future

    def create_task(self, coro: Generator[Any, None, T] | Coroutine[Any, Any, T], **options: Any) -> asyncio.Task[T]:
        if self._closed or self._task_factory is not None:
            return super().create_task(coro, **options)
        return VirtualTask(coro, loop=self, **options)

    def set_debug(self, enabled: bool) -> None:
        super().set_debug(enabled)
        self.get_debug = partial(bool, enabled)  # type: ignore[method-assign]  # as create_future; each task calls it

    def _write_to_self(self) -> None:
        """Do nothing: the loop never blocks."""


class _Numbered:
    """Hashes by its number in the loop, so that sets of futures have the same order in every run."""

    number = 0
    _loop: VirtualLoop

    def __hash__(self) -> int:
        number = self.number
        if not number:
            number = self.number = self._loop.next_number()
        return number


class _Future(_Numbered, asyncio.Future[T]):
    pass


class VirtualTask(_Numbered, asyncio.Task[T]):
    pass


def _ensure(is_possible: bool, what: str) -> None:
    if not is_possible:
        raise NotImplementedError(f"the memory network does not support {what}")


def _where(task: "asyncio.Task[object]") -> str:
    inner: object = task.get_coro()
    found = repr(inner)
    while inner is not None:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None) or getattr(inner, "ag_frame", None)
        if frame is not None:
            code: CodeType = frame.f_code
            found = f"{code.co_qualname}, {code.co_filename}:{frame.f_lineno}"
        inner = (
            getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None) or getattr(inner, "ag_await", None)
        )
    return found
