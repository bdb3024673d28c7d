"""An event loop whose ready sockets wait for timers, and not the reverse.

asyncio handles all ready sockets before it checks its timers. With 200 clients that send at once, throttles end 25 ms
late. Here the selector calls the readers of sockets itself, for up to READS_S, and keeps the rest for its next calls.
Small writes are sent at the end of that time (socket_transport.py).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector, SelectorKey
from typing import TYPE_CHECKING, Any, TypeVarTuple, Unpack

from sluice.clock import monotonic_s

from .socket_transport import SendQueue

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

Ts = TypeVarTuple("Ts")

# Half of the time that the requests of one read may take (TURN_MS).
READS_S = 0.001
# Of asyncio's own transports, such as those of the admin port.
AT_ONCE = 16


class Watch:
    """The functions to call when a socket is ready, which `FairLoop` registers as the data of its key."""

    def __init__(self) -> None:
        self.reader: Callable[[], object] | None = None
        self.writer: Callable[[], object] | None = None

    @property
    def events(self) -> int:
        return (EVENT_READ if self.reader else 0) | (EVENT_WRITE if self.writer else 0)


class FairSelector(DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.on_error: Callable[[Exception], None] | None = None  # called with the error of a `Watch`
        self._keys: dict[int, SelectorKey] = {}
        self._ready: deque[tuple[SelectorKey, int]] = deque()
        self.sends = SendQueue()

    def register(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> SelectorKey:
        key = super().register(fileobj, events, data)
        self._keys[key.fd] = key
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
        """Return the registered watch of a socket, or a new one."""
        key = self._keys.get(fileobj if isinstance(fileobj, int) else fileobj.fileno())
        return Watch() if key is None or not isinstance(key.data, Watch) else key.data

    def update(self, fileobj: "FileDescriptorLike", watch: Watch) -> None:
        key = self._keys.get(fileobj if isinstance(fileobj, int) else fileobj.fileno())
        events = watch.events
        if key is None:
            if events:
                self.register(fileobj, events, watch)
        elif not events:
            self.unregister(fileobj)
        elif key.events != events:
            self.modify(fileobj, events, watch)

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Call the watches of ready sockets; return up to AT_ONCE other ready sockets."""
        ready = self._ready
        if not ready:
            ready.extend(super().select(timeout))
        self.sends.is_open = len(ready) > 1
        try:
            return self._call_watches(ready)
        finally:
            if self.sends.is_open:
                self.sends.is_open = False
                self.sends.flush()

    def _call_watches(self, ready: deque[tuple[SelectorKey, int]]) -> list[tuple[SelectorKey, int]]:
        keys = self._keys
        others: list[tuple[SelectorKey, int]] = []
        end_s = monotonic_s() + READS_S
        while ready and len(others) < AT_ONCE:
            key, events = ready.popleft()
            _, fd, _, watch = key
            if keys.get(fd) is not key:  # closed or paused meanwhile; the next poll reports its state
                continue
            if type(watch) is not Watch:
                others.append((key, events))
                continue
            try:
                # A call through a variable is faster than one through a slot.
                if events & EVENT_READ and (reader := watch.reader) is not None:
                    reader()
                if events & EVENT_WRITE and (writer := watch.writer) is not None:
                    writer()
            except Exception as error:
                if self.on_error is None:
                    raise
                self.on_error(error)
            if monotonic_s() >= end_s:
                break
        return others


class FairLoop(asyncio.SelectorEventLoop):
    """The functions of its watchers are called without a context, and before other callbacks of the iteration."""

    def __init__(self) -> None:
        self._fair = FairSelector()
        super().__init__(self._fair)
        self.sends = self._fair.sends
        self._fair.on_error = self._on_error

    def add_reader(self, fd: "FileDescriptorLike", callback: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        watch = self._fair.watch_of(fd)
        watch.reader = partial(callback, *args) if args else callback
        self._fair.update(fd, watch)

    def remove_reader(self, fd: "FileDescriptorLike") -> bool:
        watch = self._fair.watch_of(fd)
        had, watch.reader = watch.reader is not None, None
        self._fair.update(fd, watch)
        return had

    def add_writer(self, fd: "FileDescriptorLike", callback: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        watch = self._fair.watch_of(fd)
        watch.writer = partial(callback, *args) if args else callback
        self._fair.update(fd, watch)

    def remove_writer(self, fd: "FileDescriptorLike") -> bool:
        watch = self._fair.watch_of(fd)
        had, watch.writer = watch.writer is not None, None
        self._fair.update(fd, watch)
        return had

    def _on_error(self, error: Exception) -> None:
        self.call_exception_handler({"message": "error of a socket's reader or writer", "exception": error})


def new_loop() -> asyncio.AbstractEventLoop:
    return FairLoop()
