"""Long requests, processed in slices, so that no request holds the event loop for long.

A request with more than a few elements runs on its own call stack: a greenlet, in the same thread. Its long arrays are
`PausingList`s, as are the results that a handler collects in `ctx.array`: iterating over one suspends the request when
its slice of TURN_MS is over. Dicts and state with many elements are iterated over by `ctx.sliced`. The rest waits in
the `TurnQueue`. The exchange parks the connection meanwhile (`exchange/large_requests.py`).

At most `num.io.threads` requests that need more than one slice are in progress; others wait after a short first one.
Otherwise the objects of hundreds, 100 times the size of a request, would be in memory at once.

Other requests run between two elements of a long one, never within an element. What must not be interrupted, and
what is kept after the response, uses a copy of an array (`array.copy()`), which does not pause.

These handlers need `ctx.sliced`. Without it, one request would hold the event loop for this long:

    AddPartitionsToTxn            results by partition                     8 MB: 1.2 s
    AlterClientQuotas             parts of an entity                       3 MB: 0.02 s
    AlterReplicaLogDirs           directories by partition                 3 MB: 0.8 s
    AlterShareGroupOffsets        partitions of the response               1 MB: 0.1 s
    AlterUserScramCredentials     results by user                          3 MB: 0.04 s
    CreatePartitions              numbers by name                          3 MB: 0.2 s
    CreateTopics                  topics by name                           10 MB: 0.5 s
    DeleteRecords                 offsets by partition                     3 MB: 0.1 s
    DeleteTopics                  numbers by name or id                    10 MB: 0.7 s
    DescribeLogDirs               partitions by topic                      3 MB: 0.03 s
    DescribeShareGroupOffsets     topics of the response                   1 MB: 0.08 s
    DescribeUserScramCredentials  numbers by user                          3 MB: 0.2 s
    Fetch                         partitions, also of a parked fetch       3 MB: 0.25 s
    ListGroups                    all groups                               100,000 groups: 0.05 s
    ListOffsets                   results by topic                         3 MB: 0.1 s
    ListTransactions              all transactions                         100,000 transactions: 0.1 s
    OffsetFetch                   committed offsets, partitions            3 MB: 0.1 s
    Produce                       partitions of merged topics              3 MB: 0.3 s
    ShareAcknowledge              results by partition                     100,000 partitions: 0.3 s
    ShareFetch                    results by partition                     3 MB: 0.9 s
    WriteTxnMarkers               results by partition                     10 MB: 0.7 s
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sluice.protocol.codec.pausing_list import ELEMENTS_PER_PAUSE, PausingList
from sluice.protocol.message import free_array

from .garbage_collections import GARBAGE_COLLECTIONS
from .turn_queue import TURN_MS, TurnQueue

if TYPE_CHECKING:
    from greenlet import greenlet

T = TypeVar("T")

# Share of a slice for a request that may have to wait after it: enough for most requests.
_FIRST_SLICE_SHARE = 1 / 8


class LongRequest:
    """A request that is suspended when its slice is over; `ctx.long` until its response is sent."""

    __slots__ = (
        "_caller",
        "_error",
        "_finished",
        "_request_bytes",
        "_requests",
        "_unfreed",
        "_work",
        "_worker",
        "in_progress",
        "suspended",
    )

    def __init__(self, requests: "LongRequests", request_bytes: int, work: Callable[[], None]) -> None:
        self.suspended = False  # whether it ever was
        self.in_progress = False  # counted by `requests`
        self._request_bytes = request_bytes
        self._requests = requests
        self._unfreed: list[Callable[[Callable[[], None]], None]] = []  # empties an array of results
        self._work = work
        self._worker: greenlet | None = None
        self._caller: greenlet | None = None  # set while a slice runs
        self._error: Exception | None = None
        self._finished = False

    @property
    def is_running(self) -> bool:
        return self._caller is not None

    def sliced(self, elements: Iterable[T]) -> Iterator[T]:
        left = ELEMENTS_PER_PAUSE
        for element in elements:
            yield element
            left -= 1
            if not left:
                left = ELEMENTS_PER_PAUSE
                self.pause()

    def array(self, elements: Iterable[T]) -> list[T]:
        """Return a list that pauses the request when it is iterated over."""
        array = PausingList(elements, self._requests.pause)
        self._unfreed.append(partial(free_array, array))
        return array

    def free(self) -> None:
        """Empty its arrays, with pauses; none of them is used after the response."""
        while self._unfreed:
            self._unfreed.pop()(self.pause)

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
        self.in_progress = 0
        self._most = most
        # Requests after their first slices, and what begins the next ones.
        self._waiting: deque[tuple[LongRequest, Callable[[], None]]] = deque()
        self._turns = turns
        self._end_ms = 0.0  # of the current slice
        self._running: LongRequest | None = None  # the request whose slice runs
        self._idle: greenlet | None = None  # a worker for the next request: creating one costs 10 us

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
