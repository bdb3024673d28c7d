"""Long requests, processed in slices, so that no request holds the event loop for long.

A request with more than a few elements runs on its own call stack: a greenlet, in the same thread. Its long arrays are
`PausingList`s, as are the results that a handler collects in `ctx.array`: iterating over one suspends the request when
its slice of TURN_MS is over, and so does a `ctx.mapping`. State with many elements is iterated over by `ctx.sliced`.
The rest waits in the `TurnQueue`. The exchange parks the connection meanwhile (`exchange/large_requests.py`).

Messages and results that are not used any more are emptied in slices of their own in that queue.

At most `num.io.threads` requests that need more than one slice are in progress; others wait after a short first one.
Otherwise the objects of hundreds, 100 times the size of a request, would be in memory at once.

Other requests run between two elements of a long one, never within an element. What must not be interrupted, and
what is kept after the response, uses a copy of an array (`array.copy()`), which does not pause.

These handlers need `ctx.sliced`. Without it, one request would hold the event loop for this long:

    AlterClientQuotas             parts of an entity                       10 MB: 0.25 s
    AlterShareGroupOffsets        partitions of the response               1 MB: 0.1 s
    DescribeShareGroupOffsets     topics of the response                   1 MB: 0.08 s
    Fetch                         partitions, also of a parked fetch       3 MB: 0.25 s
    ShareFetch                    partitions of a session                  3 MB: 0.9 s
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from sluice.protocol.codec.pausing import LargeDict, PausingDict, PausingList, Slices, paused
from sluice.protocol.codec.unused import Unused
from sluice.protocol.message import Message

from .garbage_collections import GARBAGE_COLLECTIONS
from .turn_queue import TURN_MS, TurnQueue

if TYPE_CHECKING:
    from greenlet import greenlet

K = TypeVar("K")
T = TypeVar("T")

# Share of a slice for a request that may have to wait after it: enough for most requests.
_FIRST_SLICE_SHARE = 1 / 8
# What is freed in slices has many objects, so no collection is due before its end.
_UNUSED_BYTES = 1 << 30


class LongRequest(Struct, eq=False):
    """A request that is suspended when its slice is over; `ctx.long` until its response is sent."""

    _requests: "LongRequests"
    _request_bytes: int
    _work: Callable[[], None]
    suspended: bool = False  # whether it ever was
    in_progress: bool = False  # counted by `_requests`
    _worker: "greenlet | None" = None
    _caller: "greenlet | None" = None  # set while a slice runs
    _error: Exception | None = None
    _finished: bool = False

    @property
    def is_running(self) -> bool:
        return self._caller is not None

    @property
    def slices(self) -> Slices:
        return self._requests.slices

    def sliced(self, elements: Iterable[T]) -> Iterator[T]:
        return paused(elements, self.pause)

    def array(self, elements: Iterable[T]) -> list[T]:
        """Return a list that pauses the request when it is iterated over."""
        return PausingList(elements, self._requests.slices)

    def mapping(self) -> dict[K, T]:
        """Return an empty dict that pauses the request when it is iterated over."""
        return PausingDict(self._requests.slices)

    def kept_mapping(self) -> dict[K, T]:
        """Return an empty dict that does not pause."""
        return LargeDict(self._requests.slices)

    def free(self, message: Message) -> None:
        """Empty the arrays of a message that is not used after this slice."""
        self._requests.free([message])

    def pause(self) -> None:
        """Suspend the request if its slice is over."""
        if self._caller is not None and self._requests.slice_is_over():
            self._caller.switch()

    def run_slice(self) -> bool:
        """Run until the slice is over; return whether the request is finished. Raises its error."""
        from greenlet import getcurrent

        if self._worker is None:
            self._worker = self._requests.take_worker()
        self._caller = getcurrent()
        self._worker.switch(self)
        self._caller = None
        if not self._finished:
            if not self.suspended:
                self.suspended = True
                GARBAGE_COLLECTIONS.postpone(self._request_bytes, self._requests.now_ms())
            return False
        if self.suspended:
            GARBAGE_COLLECTIONS.resume(self._request_bytes, self._requests.now_ms())
        self._requests.give_worker(self._worker)
        self._worker = None
        if self._error is not None:
            raise self._error
        return True

    def execute(self) -> "greenlet":
        """Do the work; return where to switch to."""
        work, self._work = self._work, _nothing  # whose messages are freed before collections resume
        try:
            work()
        except Exception as error:
            self._error = error
        self._finished = True
        caller = self._caller
        assert caller is not None  # a slice is running
        return caller

    def kill(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            from greenlet import getcurrent

            GARBAGE_COLLECTIONS.resume(self._request_bytes, self._requests.now_ms())
            worker.parent = getcurrent()
            worker.throw()


class LongRequests:
    """The long requests of all brokers of the process, which share one event loop."""

    def __init__(self, turns: TurnQueue, most: int) -> None:
        self.slice_ms = TURN_MS
        self.slices = Slices(self.pause, self.free)
        self.in_progress = 0
        self._most = most
        # Requests after their first slices, and what begins the next ones.
        self._waiting: deque[tuple[LongRequest, Callable[[], None]]] = deque()
        self._turns = turns
        self._end_ms = 0.0  # of the current slice
        self._running: LongRequest | None = None  # the request whose slice runs
        self._idle: greenlet | None = None  # a worker for the next request: creating one costs 10 us
        self._unused = Unused()
        self._is_freeing = False
        self._thread: int | None = get_ident()  # that of the event loop; None once it ends

    def run_slice(self, request: LongRequest) -> bool:
        """Do the work of a request for one slice; return whether it is finished. Raises the error of the work."""
        may_wait = not request.in_progress and self.in_progress >= self._most
        slice_ms = self.slice_ms * (_FIRST_SLICE_SHARE if may_wait else 1)
        self._end_ms = self._turns.clock.monotonic_ms() + slice_ms
        outer, self._running = self._running, request  # a request may complete another one
        try:
            finished = request.run_slice()
        except Exception:
            self._leave(request)
            raise
        finally:
            self._running = outer
        if finished:
            self._leave(request)
        return finished

    def run_later(self, request: LongRequest, next_slice: Callable[[], None]) -> None:
        """Call `next_slice` in a later event-loop iteration, when the request may be in progress."""
        if request.in_progress:
            self._turns.add(next_slice)
        elif self.in_progress < self._most:
            self._admit(request, next_slice)
        else:
            self._waiting.append((request, next_slice))

    def cancel(self, request: LongRequest) -> None:
        request.kill()
        self._leave(request)

    def pause(self) -> None:
        """Suspend the running request if its slice is over; do nothing between slices."""
        if self._running is not None:
            self._running.pause()

    def free(self, container: Collection[object]) -> None:
        """Empty a list or dict without other references in slices."""
        if get_ident() != self._thread:  # a garbage collection in another thread
            return
        self._unused.add(container)
        if not self._is_freeing:
            self._is_freeing = True
            GARBAGE_COLLECTIONS.postpone(_UNUSED_BYTES, self.now_ms())
            self._turns.add(self._free_slice)

    def _free_slice(self) -> None:
        end_ms = self.now_ms() + self.slice_ms
        while self._unused:
            self._unused.free_some()
            if self.now_ms() >= end_ms:
                break
        if self._unused:
            self._turns.add(self._free_slice)
        elif self._is_freeing:
            self._end_freeing()

    def close(self) -> None:
        """Free everything at once from now on: the event loop ends."""
        self._thread = None
        if self._is_freeing:
            self._unused = Unused()
            self._end_freeing()

    def _end_freeing(self) -> None:
        self._is_freeing = False
        GARBAGE_COLLECTIONS.resume(_UNUSED_BYTES, self.now_ms())

    def now_ms(self) -> float:
        return self._turns.clock.monotonic_ms()

    def slice_is_over(self) -> bool:
        return self._turns.clock.monotonic_ms() >= self._end_ms

    def take_worker(self) -> "greenlet":
        worker, self._idle = self._idle, None
        if worker is None:
            from greenlet import getcurrent, greenlet

            worker = greenlet(_serve_requests)
            worker.switch(getcurrent())
        return worker

    def give_worker(self, worker: "greenlet") -> None:
        self._idle = worker

    def _admit(self, request: LongRequest, next_slice: Callable[[], None]) -> None:
        self.in_progress += 1
        request.in_progress = True
        self._turns.add(next_slice)

    def _leave(self, request: LongRequest) -> None:
        if request.in_progress:
            request.in_progress = False
            self.in_progress -= 1
            if self._waiting:
                self._admit(*self._waiting.popleft())


def _serve_requests(caller: "greenlet") -> None:
    # The first request is not an argument, because greenlet would reference it until the end.
    while True:
        request: LongRequest = caller.switch()
        caller = request.execute()
        del request


def _nothing() -> None:
    pass
