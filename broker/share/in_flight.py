"""Records in flight: the delivery state of each batch or record, and their acquisition locks.

A batch has one state until a part of it changes; from then on, each offset has its own. Follows Kafka's InFlightBatch,
InFlightState and AcquisitionLockTimerTask. Different on purpose: offsets acquired together share one lock, which counts
them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

from sluice.purgatory.operation import DelayedOperation

from .delivery import NO_MEMBER, RecordState, ShareSettings


class AcquisitionLock(DelayedOperation):
    __slots__ = ("_on_timeout", "first_offset", "has_expired", "holders", "last_offset", "member_id")

    def __init__(
        self,
        member_id: str,
        first_offset: int,
        last_offset: int,
        duration_ms: int,
        on_timeout: Callable[["AcquisitionLock"], None],
    ) -> None:
        super().__init__(duration_ms)
        self.member_id = member_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.has_expired = False
        self.holders = 1
        self._on_timeout = on_timeout

    def release(self) -> None:
        self.holders -= 1
        if not self.holders:
            self.force_complete()

    def on_complete(self) -> None:
        pass

    def on_expiration(self) -> None:
        self.has_expired = True
        self._on_timeout(self)


class _Rollback(NamedTuple):
    state: RecordState
    member_id: str
    settings: ShareSettings


class InFlightState(Struct, eq=False):
    """The state of a batch or of one record; during a transition, the new one, which can be rolled back."""

    state: RecordState
    delivery_count: int
    member_id: str = NO_MEMBER
    lock: AcquisitionLock | None = None
    _rollback: _Rollback | None = None
    _archived_meanwhile: bool = False
    parts: "list[InFlightState]" = []  # after a split during a transition

    @property
    def in_transition(self) -> bool:
        return self._rollback is not None

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE and self._rollback is None

    @property
    def is_complete(self) -> bool:
        return self.state.is_terminal and self._rollback is None

    def acquire(self, member_id: str, lock: AcquisitionLock) -> None:
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.lock = lock

    def begin(self, state: RecordState, settings: ShareSettings) -> bool:
        """Leave ACQUIRED until `end`; return False during another transition."""
        if self.in_transition:
            return False
        self._rollback = _Rollback(self.state, self.member_id, settings)
        self._leave(state, settings)
        return True

    def end(self, *, committed: bool) -> None:
        before, self._rollback = self._rollback, None
        assert before is not None
        for part in self.parts:
            part.end(committed=committed)
        if committed or self._archived_meanwhile:
            self.drop_lock()
        elif self.lock is not None and self.lock.has_expired:
            is_last = self.delivery_count >= before.settings.delivery_count_limit
            self.state = before.settings.undelivered if is_last else RecordState.AVAILABLE
            self.member_id = NO_MEMBER
            self.drop_lock()
        else:
            self.state, self.member_id = before.state, before.member_id

    def expire(self, state: RecordState, settings: ShareSettings) -> RecordState:
        self._leave(state, settings)
        self.drop_lock()
        return self.state

    def archive(self) -> None:
        self._archived_meanwhile = True
        self.state = RecordState.ARCHIVED
        self.member_id = NO_MEMBER
        self.drop_lock()

    def drop_lock(self) -> None:
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    def renew(self, lock: AcquisitionLock) -> None:
        self.drop_lock()
        self.lock = lock

    def share(self) -> "InFlightState":
        if self.lock is not None:
            self.lock.holders += 1
        part = InFlightState(self.state, self.delivery_count, self.member_id, self.lock)
        if self.in_transition:
            part._rollback = self._rollback
            self.parts.append(part)
        return part

    def _leave(self, state: RecordState, settings: ShareSettings) -> None:
        if state is RecordState.AVAILABLE and self.delivery_count >= settings.delivery_count_limit:
            state = settings.undelivered
        self.state = state
        self.member_id = NO_MEMBER


class InFlightBatch(Struct, eq=False):
    """Consecutive records, with the state of all in `whole` or of each in `offsets`."""

    first_offset: int
    last_offset: int
    whole: InFlightState | None
    offsets: dict[int, InFlightState] = {}  # in order

    def split(self) -> None:
        whole = self.whole
        if whole is not None:
            self.offsets = {offset: whole.share() for offset in range(self.first_offset, self.last_offset + 1)}
            whole.drop_lock()
            self.whole = None

    def limit_acquired(self, last_offset: int) -> None:
        """Return the records after `last_offset` of a batch just acquired, as if they had not been delivered."""
        self.split()
        for offset, state in self.offsets.items():
            if offset > last_offset:
                state.drop_lock()
                self.offsets[offset] = InFlightState(RecordState.AVAILABLE, state.delivery_count - 1)

    def states(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, InFlightState]]:
        start, end = max(first_offset, self.first_offset), min(last_offset, self.last_offset)
        for offset in range(start, end + 1):
            yield offset, self.offsets[offset]

    def parts(self) -> list[tuple[int, int, InFlightState]]:
        if self.whole is not None:
            return [(self.first_offset, self.last_offset, self.whole)]
        return [(offset, offset, state) for offset, state in self.offsets.items()]

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        return self.first_offset >= first_offset and self.last_offset <= last_offset

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1


_first_offset = attrgetter("first_offset")


class InFlightBatches:
    """The batches of a share partition by first offset; they do not overlap."""

    __slots__ = ("_batches",)

    def __init__(self) -> None:
        self._batches: list[InFlightBatch] = []

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def first(self) -> InFlightBatch:
        return self._batches[0]

    @property
    def last(self) -> InFlightBatch:
        return self._batches[-1]

    def add(self, batch: InFlightBatch) -> None:
        self._batches.insert(bisect_left(self._batches, batch.first_offset, key=_first_offset), batch)

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the batch with the greatest first offset up to `offset`."""
        at = bisect_right(self._batches, offset, key=_first_offset)
        return self._batches[at - 1] if at else None

    def next_first_offset(self, offset: int) -> int:
        return self._batches[bisect_right(self._batches, offset, key=_first_offset)].first_offset

    def starting_in(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        start = bisect_left(self._batches, first_offset, key=_first_offset)
        return self._batches[start : bisect_right(self._batches, last_offset, key=_first_offset)]

    def remove_until(self, last_offset: int) -> None:
        at = bisect_right(self._batches, last_offset, key=attrgetter("last_offset"))
        del self._batches[:at]

    def clear(self) -> None:
        self._batches.clear()
