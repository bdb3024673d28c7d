"""An asyncio event loop whose clock does not tick: when there is nothing to do it jumps to the next timer.

It is asyncio's own loop (`BaseEventLoop` has the ready queue and the heap of timers) over another selector and another
network. A selector waits for sockets until the next timer is due; this one has no sockets, so it moves the clock there
and returns. What asyncio would run it runs, in the same order, each turn taking a nanosecond; nothing comes from
outside: no thread, no socket, no signal but Ctrl-C. So the same program does the same, each time.

Chance in asyncio is the order of sets: `asyncio.wait` returns sets of tasks, and these are ordered by address. Here
tasks and futures hash by a number that counts up, and sets of them come out alike. Sets of strings depend on
PYTHONHASHSEED, which has to be set to compare runs of different processes.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Generator
from itertools import count
from random import Random  # noqa: TID251  (the loop's one source of chance is made here)
from types import CodeType
from typing import Any, NoReturn, TypeVar

from sluice.errors import SluiceError

from .network import MemoryServer, Network
from .transport import MemorySocket, MemoryTransport

T = TypeVar("T")
P = TypeVar("P", bound=asyncio.BaseProtocol)

DAY_S = 86_400.0
# At some 10 us a turn this is some minutes of real time.
MAX_TURNS = 20_000_000
# Not zero: a moment that was never set must not pass for a measured one.
_START_NS = 10_000 * 10**9
_WALL_START_NS = 1_700_000_000 * 10**9
# So time passes for who looks again and again until it has: aiokafka commits when it is *past* the time to do so, and
# waits until it *is* that time.
_TURN_NS = 1
# A million turns: what is done at the very end of its time is in time.
_SLACK_NS = 1_000_000
# What is cancelled because a limit was reached has this much more to end in.
_TO_CLEAN_UP_NS = 3600 * 10**9
_TURNS_TO_CLEAN_UP = 1_000_000
# Tasks that an error names.
_NAMED_TASKS = 20


class DeadlockError(SluiceError):
    """Everything waits, and there is no timer that could end that."""


class RunawayError(SluiceError):
    """More virtual time, or more turns of the loop, than the run was given."""


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop; `network` is what its connections run over, and `random` the chance in that, from `seed`.

    It runs until `until` virtual seconds have passed, or `max_turns` turns, then raises RunawayError; when nothing can
    happen any more it raises DeadlockError. Both name the tasks and where they wait.
    """

    def __init__(self, *, seed: int = 0, until: float = DAY_S, max_turns: int = MAX_TURNS) -> None:
        super().__init__()
        self.random = Random(seed)  # noqa: S311  (repeatable on purpose)
        self._now_ns = _START_NS
        self._now_s = _START_NS / 1e9
        self._until_ns = _START_NS + round(until * 1e9) + _SLACK_NS
        self._turns = 0
        self._max_turns = max_turns
        self.next_number = count(1).__next__
        # What BaseEventLoop expects of a loop: a selector, and how exact its clock is (floats of seconds are).
        self._selector = self
        self._clock_resolution = 1e-9
        self.network = Network(self, self.random)
        self.set_task_factory(self._new_task)

    # -- time --------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        """Virtual seconds; they start at 10,000."""
        return self._now_s

    def monotonic_ns(self) -> int:
        """The same in nanoseconds."""
        return self._now_ns

    def wall_ns(self) -> int:
        """Virtual nanoseconds since the epoch; they start in November 2023."""
        return _WALL_START_NS - _START_NS + self._now_ns

    def select(self, timeout: float | None) -> list[NoReturn]:
        """What BaseEventLoop asks its selector before each turn: here time passes. `timeout` is 0 when there is
        something to do, None when there is nothing, not even a timer.
        """
        self._turns += 1
        if self._turns > self._max_turns:
            self._max_turns = self._turns + _TURNS_TO_CLEAN_UP
            passed_s = (self._now_ns - _START_NS) / 1e9
            turns = self._turns - 1
            raise RunawayError(f"not done after {turns} turns of the loop in {passed_s:g} s\n{self._waiting_tasks()}")
        if timeout is None:
            raise DeadlockError(f"nothing can happen any more\n{self._waiting_tasks()}")
        if timeout > 0:
            self._now_ns = max(self._now_ns, round((self._now_s + timeout) * 1e9))
        self._now_ns += _TURN_NS
        self._now_s = self._now_ns / 1e9
        if self._now_ns > self._until_ns:
            self._out_of_time()
        return []

    def _out_of_time(self) -> NoReturn:
        passed_s = (self._until_ns - _SLACK_NS - _START_NS) / 1e9
        self._until_ns = self._now_ns + _TO_CLEAN_UP_NS
        raise RunawayError(f"not done after {passed_s:g} virtual seconds\n{self._waiting_tasks()}")

    def _waiting_tasks(self) -> str:
        tasks = sorted(asyncio.all_tasks(self), key=hash)
        lines = [f"  {task.get_name()} waits in {_where(task)}" for task in tasks[:_NAMED_TASKS]]
        if len(tasks) > _NAMED_TASKS:
            lines.append(f"  and {len(tasks) - _NAMED_TASKS} more tasks")
        return "\n".join(lines) or "  there is no task"

    # -- the network -------------------------------------------------------------------------------------------------

    async def create_connection(  # of asyncio's many ways the one without sockets
        self,
        protocol_factory: Callable[[], P],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: object = None,
        sock: object = None,
        **options: object,  # how addresses are tried, of which there is one
    ) -> tuple[MemoryTransport, P]:
        """As asyncio's, over the memory network; without TLS."""
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
        **options: object,  # of sockets
    ) -> MemoryServer:
        """As asyncio's, over the memory network: at one address, or on what `bind` returned. Without TLS."""
        _ensure(ssl is None or ssl is False, "TLS")
        _ensure(sock is None or isinstance(sock, MemorySocket), "real sockets: give host and port")
        listening = sock if isinstance(sock, MemorySocket) else self.network.bind(host or "0.0.0.0", port or 0)
        server = MemoryServer(self.network, protocol_factory, listening)
        if start_serving:
            await server.start_serving()
        return server

    def bind(self, host: str, port: int, backlog: int) -> MemorySocket:
        """What `create_server` takes for its `sock`; port 0 is the next free one. Raises SluiceError."""
        try:
            return self.network.bind(host or "0.0.0.0", port)
        except OSError as error:
            raise SluiceError(f"cannot listen on {host}:{port}: {error.strerror}") from None

    async def getaddrinfo(  # type: ignore[override]  # what sockets have constants for is an int here
        self, host: str | bytes | None, port: str | int | None, **hints: object
    ) -> list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]]:
        """Every name has one address."""
        name = host.decode() if isinstance(host, bytes) else host
        address = self.network.address(name or "localhost")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, int(port or 0)))]

    async def getnameinfo(self, sockaddr: tuple[str, int], flags: int = 0) -> tuple[str, str]:  # type: ignore[override]
        """The name that an address was made for."""
        return self.network.name(sockaddr[0]), str(sockaddr[1])

    # -- what would come from outside --------------------------------------------------------------------------------

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: object) -> asyncio.Future[T]:
        """Calls `func` in the loop's next turn, in this thread: a thread would make the order of things a matter of
        chance. Virtual time stands still meanwhile.
        """
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

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(loop=self)

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, coro: Generator[Any, None, T] | Coroutine[Any, Any, T], **options: Any
    ) -> asyncio.Task[T]:
        return _Task(coro, loop=loop, **options)

    def _process_events(self, events: list[NoReturn]) -> None:
        """What the selector found: nothing, ever."""

    def _write_to_self(self) -> None:
        """Wakes a selector that waits; this one never does."""


class _Future(asyncio.Future[T]):
    number = 0

    def __hash__(self) -> int:
        return self.number or _number(self)


class _Task(asyncio.Task[T]):
    number = 0

    def __hash__(self) -> int:
        return self.number or _number(self)


def _number(future: "_Future[T] | _Task[T]") -> int:
    """Gives the next number to one that is asked for its own for the first time."""
    loop = future.get_loop()
    assert isinstance(loop, VirtualLoop)
    future.number = loop.next_number()
    return future.number


def _ensure(is_possible: bool, what: str) -> None:
    if not is_possible:
        raise NotImplementedError(f"the memory network has no {what}")


def _where(task: "asyncio.Task[object]") -> str:
    """The innermost line at which a task waits, by file and function."""
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
