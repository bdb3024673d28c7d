"""An event loop whose ready sockets wait for timers, and not the reverse.

asyncio handles all ready sockets before it checks its timers. With 200 clients that send at once, throttles end 25 ms
late. Here the selector calls the readers of sockets itself, for up to READS_S, and keeps the rest for later. Small
writes are sent at the end of that time (socket_transport.py).

An iteration of asyncio's loop takes an eighth of a request. It is left out while only readers and writers are called:
the selector polls again unless a callback or an earlier timer was scheduled meanwhile, or a timer is due.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import partial
from math import inf
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector, EpollSelector, SelectorKey
from typing import TYPE_CHECKING, Any, TypeVarTuple, Unpack

from msgspec import Struct

from sluice.clock import monotonic_s

from .socket_transport import SendQueue

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

Ts = TypeVarTuple("Ts")

# Half of the time that the requests of one read may take (TURN_MS).
READS_S = 0.001
# Of asyncio's own transports, such as those of the admin port.
AT_ONCE = 16
_MOST_POLL_S = 86_400.0  # as in asyncio
# Of epoll. Its other events are errors, which wake up the reader and the writer.
_IN, _OUT = 1, 4


class Watch(Struct, eq=False):
    """The functions to call when a socket is ready."""

    reader: Callable[[], object] | None = None
    writer: Callable[[], object] | None = None

    @property
    def events(self) -> int:
        return (EVENT_READ if self.reader else 0) | (EVENT_WRITE if self.writer else 0)


class FairSelector(DefaultSelector):
    def __init__(self, loop: "FairLoop") -> None:
        super().__init__()
        self._loop = loop
        self._keys: dict[int, SelectorKey] = {}
        self._watches: dict[int, Watch] = {}
        self._ready: deque[tuple[int, int]] = deque()  # descriptors and events of the last poll
        self._new: set[int] = set()  # descriptors registered since; the next poll reports their state
        self.sends = SendQueue()
        # EpollSelector.select builds a key for each event, which takes a twentieth of a request.
        self.poll: Callable[[float | None], Iterable[tuple[int, int]]] = self._poll
        if isinstance(self, EpollSelector):
            self.poll = self._selector.poll  # type: ignore[attr-defined]  # it is not published

    def register(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> SelectorKey:
        key = super().register(fileobj, events, data)
        self._keys[key.fd] = key
        self._new.add(key.fd)
        return key

    def unregister(self, fileobj: "FileDescriptorLike") -> SelectorKey:
        key = super().unregister(fileobj)
        del self._keys[key.fd]
        return key

    def modify(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> SelectorKey:
        key = super().modify(fileobj, events, data)
        self._keys[key.fd] = key
        return key

    def watch_of(self, fileobj: "FileDescriptorLike") -> Watch:
        """Return the watch of a socket, or a new one."""
        return self._watches.get(fileobj if isinstance(fileobj, int) else fileobj.fileno()) or Watch()

    def update(self, fileobj: "FileDescriptorLike", watch: Watch) -> None:
        fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key, events = self._keys.get(fd), watch.events
        if key is None:
            if events:
                self.register(fd, events)
                self._watches[fd] = watch
        elif not events:
            self.unregister(fd)
            self._watches.pop(fd, None)  # asyncio itself may have registered it
        elif key.events != events:
            self.modify(fd, events)

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Call the watches of ready sockets until the loop has something to do; return up to AT_ONCE other sockets."""
        loop, ready = self._loop, self._ready
        callbacks, timers = loop._ready, loop._scheduled
        first = timers[0] if timers else None
        due_s = inf if first is None else first.when()
        while True:
            if not ready:
                self._new.clear()
                ready.extend(self.poll(timeout))
                if not ready:
                    return []
            others = self._call_watches(ready)
            if others or callbacks or loop._stopping or (timers and timers[0] is not first):
                return others
            timeout = min(due_s - monotonic_s(), _MOST_POLL_S)
            if timeout <= 0:
                return others

    def _call_watches(self, ready: deque[tuple[int, int]]) -> list[tuple[SelectorKey, int]]:
        watches, new = self._watches, self._new
        others: list[tuple[SelectorKey, int]] = []
        sends = self.sends
        sends.is_open = len(ready) > 1
        end_s = monotonic_s() + READS_S if sends.is_open else 0.0
        try:
            while ready:
                fd, events = ready.popleft()
                if fd in new:
                    continue
                watch = watches.get(fd)
                if watch is None:
                    self._add_other(others, fd, events)
                    if len(others) == AT_ONCE:
                        break
                    continue
                try:
                    # A call through a variable is faster than one through a slot.
                    if events != _OUT and (reader := watch.reader) is not None:
                        reader()
                    if events != _IN and (writer := watch.writer) is not None:
                        writer()
                except Exception as error:
                    self._loop.report(error)
                if ready and monotonic_s() >= end_s:
                    break
        finally:
            if sends.is_open:
                sends.is_open = False
                sends.flush()
        return others

    def _add_other(self, others: list[tuple[SelectorKey, int]], fd: int, events: int) -> None:
        key = self._keys.get(fd)
        if key is not None:  # else closed or paused meanwhile
            mask = ((EVENT_READ if events != _OUT else 0) | (EVENT_WRITE if events != _IN else 0)) & key.events
            if mask:
                others.append((key, mask))

    def _poll(self, timeout: float | None) -> Iterator[tuple[int, int]]:
        for key, events in super().select(timeout):
            yield key.fd, (_IN if events & EVENT_READ else 0) | (_OUT if events & EVENT_WRITE else 0)


class FairLoop(asyncio.SelectorEventLoop):
    """The functions of its watchers are called without a context, and before other callbacks of the iteration."""

    # Of asyncio: what an iteration has to do.
    _ready: Sized
    _scheduled: Sequence[asyncio.TimerHandle]
    _stopping: bool

    def __init__(self) -> None:
        self.selector = FairSelector(self)
        super().__init__(self.selector)
        self.sends = self.selector.sends

    def add_reader(self, fd: "FileDescriptorLike", callback: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        watch = self.selector.watch_of(fd)
        watch.reader = partial(callback, *args) if args else callback
        self.selector.update(fd, watch)

    def remove_reader(self, fd: "FileDescriptorLike") -> bool:
        watch = self.selector.watch_of(fd)
        had, watch.reader = watch.reader is not None, None
        self.selector.update(fd, watch)
        return had

    def add_writer(self, fd: "FileDescriptorLike", callback: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        watch = self.selector.watch_of(fd)
        watch.writer = partial(callback, *args) if args else callback
        self.selector.update(fd, watch)

    def remove_writer(self, fd: "FileDescriptorLike") -> bool:
        watch = self.selector.watch_of(fd)
        had, watch.writer = watch.writer is not None, None
        self.selector.update(fd, watch)
        return had

    def report(self, error: Exception) -> None:
        self.call_exception_handler({"message": "error of a socket's reader or writer", "exception": error})


def new_loop() -> asyncio.AbstractEventLoop:
    return FairLoop()
