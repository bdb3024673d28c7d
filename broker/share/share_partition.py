"""The state machine of one share partition: which records of a partition a share group has in flight.

            acquire                  accept
 AVAILABLE ---------> ACQUIRED ----------------> ACKNOWLEDGED
     ^                    |   reject, or the
     |  release, timeout  |   delivery limit
     '--------------------+--------------------> ARCHIVED

A transition out of ACQUIRED takes effect when the share coordinator has written it; if that fails, it is rolled back.

Follows Kafka's SharePartition; the caller does all I/O. Different on purpose: records before the start offset never
prevent it from moving, and are not made available again if a write fails.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from sluice.broker.coordinator.share.persisted import StateBatch, StateWrite
from sluice.broker.log.producer_state import AbortedTransaction
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.purgatory import DelayedOperationPurgatory

from .aborted_records import aborted_batches, without
from .acquisition import SMALLEST_THROTTLED_COUNT, Acquisition, batch_end, divided, joined, throttled_count
from .delivery import (
    ACCEPT,
    GAP,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledged,
    AcknowledgementBatch,
    AcknowledgeResult,
    Acquired,
    FetchedBatch,
    RecordState,
    ShareSettings,
)
from .in_flight import AcquisitionLock, InFlightBatch, InFlightState
from .in_flight_window import Gaps, InFlightWindow

_SUCCESS = AcknowledgeResult()


def _invalid_state(message: str) -> AcknowledgeResult:
    return AcknowledgeResult(ErrorCode.INVALID_RECORD_STATE, message)


# Kafka's messages.
_NOT_IN_CACHE = _invalid_state("Batch record not found. The request batch offsets are not found in the cache.")
_FIRST_NOT_ACQUIRED = AcknowledgeResult(
    ErrorCode.INVALID_REQUEST, "Batch record not found. The first offset in request is past acquired records."
)
_LAST_NOT_ACQUIRED = AcknowledgeResult(
    ErrorCode.INVALID_REQUEST, "Batch record not found. The last offset in request is past acquired records."
)
_BATCH_NOT_ACQUIRED = _invalid_state("The batch cannot be acknowledged. The batch is not in the acquired state.")
_SUBSET_NOT_ACQUIRED = _invalid_state(
    "The batch cannot be acknowledged. The subset batch is not in the acquired state."
)
_OFFSET_NOT_ACQUIRED = _invalid_state("The offset cannot be acknowledged. The offset is not acquired.")
_BATCH_OF_ANOTHER_MEMBER = _invalid_state("Member is not the owner of batch record")
_OFFSET_OF_ANOTHER_MEMBER = _invalid_state("Member is not the owner of offset")
_IN_TRANSITION = _invalid_state(ErrorCode.INVALID_RECORD_STATE.message)
_NOT_CHANGED = _invalid_state("Unable to acknowledge records for the batch")
_RENEWAL_DISABLED = _invalid_state("Renewing acquisition locks is not enabled for the group.")

_ACKNOWLEDGED = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
}


class Status(IntEnum):
    EMPTY = 0
    LOADING = 1
    ACTIVE = 2
    FENCED = 3


# First and last offset, delivery count, and the callback.
KeepDeadLetter = Callable[[int, int, int, Callable[[], None]], None]


class _Change(NamedTuple):
    state: InFlightState
    batch: StateBatch


class SharePartition(InFlightWindow):
    """The records in flight of one group and partition, on the leader of the partition."""

    def __init__(
        self,
        leader_epoch: int,
        settings: Callable[[], ShareSettings],
        locks: DelayedOperationPurgatory,
        write: Callable[[StateWrite, Acknowledged], None],
        on_available: Callable[[], None],
        keep_dead_letter: KeepDeadLetter,
        on_timeout: Callable[[AcquisitionLock], None],
    ) -> None:
        """Create a partition without state.

        Args:
            leader_epoch: The epoch of the partition's leader; a later one fences writes.
            settings: Returns the current settings of the group.
            locks: Purgatory of the acquisition locks.
            write: Writes state, then calls back with the result for a client.
            on_available: Called if records may have become available without a request.
            keep_dead_letter: Writes records to the dead-letter queue, then calls back in any case.
            on_timeout: Called after the timeout of an acquisition lock of records.
        """
        super().__init__()
        self.leader_epoch = leader_epoch
        self.status = Status.EMPTY
        self.state_epoch = 0
        self.timed_out_records = 0
        self._settings = settings
        self._locks = locks
        self._write = write
        self._on_available = on_available
        self._keep_dead_letter = keep_dead_letter
        self._on_timeout = on_timeout

    # -- loading -------------------------------------------------------------------------------------------------------

    def load(self, start_offset: int, state_epoch: int, batches: Iterable[StateBatch]) -> bool:
        self.start_offset, self.state_epoch = start_offset, state_epoch
        gap = None
        expected = start_offset
        for first, last, state_number, count in batches:
            if first < start_offset or last < first:
                return False
            if gap is None and first > expected:
                gap = expected
            expected = last + 1
            state = RecordState(state_number)
            self.batches.add(InFlightBatch(first, last, InFlightState(state, count)))
            if state.is_terminal:
                self.delivery_complete_count += last - first + 1
        self.status = Status.ACTIVE
        if not len(self.batches):
            self.end_offset = start_offset
            return True
        self._may_have_available = True
        self.end_offset = self.batches.last.last_offset
        if gap is not None:
            self._gaps = Gaps(gap, self.end_offset)
        for batch in list(self.batches):
            for first, last, part in batch.parts():
                self._bury(part, first, last)
        self._advance_start()
        return True

    def fence(self) -> None:
        """Stop: another broker leads the partition, or the group is gone."""
        self.status = Status.FENCED
        for batch in self.batches:
            for _, _, state in batch.parts():
                state.drop_lock()

    # -- fetching ------------------------------------------------------------------------------------------------------

    def can_acquire(self) -> bool:
        return (
            self.next_fetch_offset() != self.end_offset + 1
            or self.in_flight < self._settings().partition_max_record_locks
        )

    def acquire(
        self,
        member_id: str,
        mode: int,
        batch_size: int,
        max_records: int,
        fetch_offset: int,
        fetched: Sequence[FetchedBatch],
        aborted: Sequence[AbortedTransaction] = (),
    ) -> list[Acquired]:
        """Acquire fetched records for a member, without those of aborted transactions.

        Args:
            member_id: The member that fetches.
            mode: BATCH_OPTIMIZED returns whole batches and may exceed `max_records`; RECORD_LIMIT does not.
            batch_size: The size from which acquired records are divided, at the borders of fetched batches.
            max_records: The maximum number of records.
            fetch_offset: The offset that was read from.
            fetched: Batches from the log, the first of which contains or follows `fetch_offset`.
            aborted: Aborted transactions to skip.
        """
        if self.status is not Status.ACTIVE or max_records <= 0 or not fetched:
            return []
        last_offset = fetched[-1].last_offset
        if last_offset < self.start_offset:
            return []
        last_offset, most = self._limits(fetch_offset, max_records, last_offset)
        if most <= 0:
            return []
        acquisition = Acquisition(member_id, mode == RECORD_LIMIT, batch_size, most, last_offset, fetched)
        self._acquire(acquisition, fetch_offset)
        removed = list(aborted_batches(fetched, aborted)) if aborted else []
        for first, last in removed:
            self._archive(first, last, RecordState.ACQUIRED, counts=True)
        return without(acquisition.found, removed) if removed else acquisition.found

    def _limits(self, fetch_offset: int, max_records: int, last_offset: int) -> tuple[int, int]:
        most = min(max_records, self._settings().partition_max_record_locks - self.in_flight)
        if most <= 0 and fetch_offset <= self.end_offset:
            return min(last_offset, self.end_offset), min(max_records, self.end_offset - fetch_offset + 1)
        return last_offset, most

    def _acquire(self, acquisition: Acquisition, fetch_offset: int) -> None:
        base_offset = acquisition.first
        self._archive_missing(fetch_offset, base_offset)
        floor = self.batches.floor(base_offset)
        if floor is not None and floor.last_offset >= base_offset:
            base_offset = floor.first_offset
        overlapping = self.batches.starting_in(min(acquisition.first, base_offset), acquisition.last)
        if not overlapping:
            self._acquire_new(acquisition, base_offset, acquisition.last)
            return
        gap = base_offset
        for batch in overlapping:
            if acquisition.remaining <= 0:
                break
            if self._active_gaps() is not None:
                if gap < batch.first_offset:
                    self._acquire_new(acquisition, gap, batch.first_offset - 1)
                gap = batch.last_offset + 1
                if acquisition.remaining <= 0:
                    break
            if not self._acquire_batch(acquisition, batch):
                acquisition.most = 0
                break
        end = overlapping[-1].last_offset
        if acquisition.remaining > 0 and end < acquisition.last:
            self._acquire_new(acquisition, end + 1, acquisition.last)
        if acquisition.found:
            self._move_gaps(acquisition.found[-1].last_offset + 1)

    def _acquire_batch(self, acquisition: Acquisition, batch: InFlightBatch) -> bool:
        """Acquire the available records of a batch; return False if records with failed deliveries end the fetch."""
        is_throttled = self._is_throttled(acquisition, batch)
        if is_throttled and acquisition.count:
            return False
        whole = batch.whole
        if whole is not None and not whole.is_available:
            return True
        exceeds = acquisition.by_record and len(batch) > acquisition.remaining
        if whole is None or exceeds or is_throttled or not batch.is_within(acquisition.first, acquisition.last):
            batch.split()
            acquired = self._acquire_offsets(acquisition, batch)
            return not (is_throttled and acquired)
        lock = self._new_lock(acquisition.member_id, batch.first_offset, batch.last_offset)
        whole.acquire(acquisition.member_id, lock)
        acquisition.found.append(Acquired(batch.first_offset, batch.last_offset, whole.delivery_count))
        acquisition.count += len(batch)
        return True

    def _acquire_offsets(self, acquisition: Acquisition, batch: InFlightBatch) -> int:
        """Acquire available records, fewer of those whose deliveries failed; return their number.

        A record before its last delivery is acquired alone.
        """
        limit = self._settings().delivery_count_limit
        slow_from = throttled_count(limit)
        limits = [acquisition.remaining] if acquisition.by_record else []  # Kafka stops where one is met exactly
        is_slow = False
        acquired: list[tuple[int, InFlightState]] = []
        for offset, state in batch.states(acquisition.first, acquisition.last):
            if not state.is_available:
                continue
            count = state.delivery_count
            is_last = limit > SMALLEST_THROTTLED_COUNT and count == limit - 1
            if is_last and acquired:
                break
            if count >= slow_from and not is_slow:
                is_slow = True
                limits.append(max(1, len(batch) >> (count - slow_from + 1)))
            acquired.append((offset, state))
            if is_last or len(acquired) in limits:
                break
        if not acquired:
            return 0
        lock = self._new_lock(acquisition.member_id, acquired[0][0], acquired[-1][0])
        lock.holders = len(acquired)
        for _, state in acquired:
            state.acquire(acquisition.member_id, lock)
        acquisition.found += joined(acquired)
        acquisition.count += len(acquired)
        return len(acquired)

    def _is_throttled(self, acquisition: Acquisition, batch: InFlightBatch) -> bool:
        """Whether deliveries failed so often that fewer available records are delivered at once."""
        limit = throttled_count(self._settings().delivery_count_limit)
        whole = batch.whole
        if whole is not None:
            return whole.is_available and whole.delivery_count >= limit
        states = batch.states(acquisition.first, acquisition.last)
        return any(state.is_available and state.delivery_count >= limit for _, state in states)

    def _acquire_new(self, acquisition: Acquisition, first: int, last: int) -> None:
        first = max(first, self.start_offset if len(self.batches) else self.end_offset)
        if first > last:
            return
        if acquisition.remaining < last - first + 1:
            whole = batch_end(acquisition.fetched, first + acquisition.remaining - 1)
            last = min(whole, last) if self._active_gaps() is not None else whole
        ranges = divided(acquisition, first, last)
        acquired_last = last
        for start, end in ranges:
            lock = self._new_lock(acquisition.member_id, start, end)
            state = InFlightState(RecordState.ACQUIRED, 1, acquisition.member_id, lock)
            batch = InFlightBatch(start, end, state)
            self.batches.add(batch)
            if acquisition.by_record and len(batch) > acquisition.remaining:
                acquired_last = end = start + acquisition.remaining - 1
                batch.limit_acquired(end)
                self._may_have_available = True
            acquisition.found.append(Acquired(start, end, 1))
        if self.batches.first.first_offset == first:
            self.start_offset = first
        self.end_offset = max(self.end_offset, last)
        self._move_gaps(acquired_last + 1)
        acquisition.count += acquired_last - first + 1

    # -- acknowledging -------------------------------------------------------------------------------------------------

    def acknowledge(self, member_id: str, batches: Iterable[AcknowledgementBatch], done: Acknowledged) -> None:
        """Apply acknowledgements of a member, all or none, then call `done`."""
        changes: list[_Change] = []
        result = _SUCCESS
        for batch in batches:
            if batch.last_offset < self.start_offset:
                continue
            result = self._acknowledge(member_id, batch, changes)
            if result.code:
                break
        self._finish(changes, result, done)

    def release(self, member_id: str, done: Acknowledged) -> None:
        """Make all records of a member available again, then call `done`."""
        changes: list[_Change] = []
        error = ErrorCode.NONE
        for batch in self.batches:
            whole = batch.whole
            if whole is not None and whole.member_id == member_id and self._start_is_within(batch):
                batch.split()
            for first, last, state in batch.parts():
                if state.member_id == member_id and state.state is RecordState.ACQUIRED and not error:
                    target = RecordState.ARCHIVED if last < self.start_offset else RecordState.AVAILABLE
                    error = self._begin(first, last, state, target, changes)
        self._finish(changes, AcknowledgeResult(error), done)

    def _acknowledge(self, member_id: str, batch: AcknowledgementBatch, changes: list[_Change]) -> AcknowledgeResult:
        concerned = self._concerned(batch)
        if isinstance(concerned, AcknowledgeResult):
            return concerned
        for found in concerned:
            if found.last_offset < self.start_offset:
                continue
            whole = found.whole
            if whole is not None:
                if not whole.member_id:
                    return _BATCH_NOT_ACQUIRED
                if whole.member_id != member_id:
                    return _BATCH_OF_ANOTHER_MEMBER
                if whole.in_transition:
                    return _IN_TRANSITION
                is_whole = found.is_within(batch.first_offset, batch.last_offset) and not self._start_is_within(found)
                if whole.state is not RecordState.ACQUIRED:
                    return _BATCH_NOT_ACQUIRED if is_whole and len(batch.types) == 1 else _SUBSET_NOT_ACQUIRED
                if is_whole and len(batch.types) == 1:
                    result = self._acknowledge_part(
                        found.first_offset, found.last_offset, whole, member_id, batch.types[0], changes
                    )
                    if result.code:
                        return result
                    continue
                found.split()
            for offset, state in found.states(max(batch.first_offset, self.start_offset), batch.last_offset):
                kind = batch.types[0] if len(batch.types) == 1 else batch.types[offset - batch.first_offset]
                result = self._acknowledge_part(offset, offset, state, member_id, kind, changes)
                if result.code:
                    return result
        return _SUCCESS

    def _concerned(self, batch: AcknowledgementBatch) -> list[InFlightBatch] | AcknowledgeResult:
        floor = self.batches.floor(batch.first_offset)
        if floor is None:
            if batch.first_offset < self.start_offset <= batch.last_offset:
                floor = self.batches.floor(self.start_offset)
            if floor is None:
                return _NOT_IN_CACHE
        found = self.batches.starting_in(floor.first_offset, batch.last_offset)
        end = found[-1].last_offset
        if end < batch.first_offset:
            return _FIRST_NOT_ACQUIRED
        if end < batch.last_offset:
            return _LAST_NOT_ACQUIRED
        return found

    def _acknowledge_part(
        self, first: int, last: int, state: InFlightState, member_id: str, kind: int, changes: list[_Change]
    ) -> AcknowledgeResult:
        if state.state is not RecordState.ACQUIRED:
            return _OFFSET_NOT_ACQUIRED
        if state.in_transition:
            return _IN_TRANSITION
        if state.member_id != member_id:
            return _OFFSET_OF_ANOTHER_MEMBER
        if kind != RENEW:
            target = self._settings().undelivered if kind == REJECT else _ACKNOWLEDGED[kind]
            return _NOT_CHANGED if self._begin(first, last, state, target, changes) else _SUCCESS
        if not self._settings().renew_acknowledge:
            return _RENEWAL_DISABLED
        state.renew(self._new_lock(member_id, first, last))
        return _SUCCESS

    def _begin(
        self, first: int, last: int, state: InFlightState, target: RecordState, changes: list[_Change]
    ) -> ErrorCode:
        if not state.begin(target, self._settings()):
            return ErrorCode.INVALID_RECORD_STATE
        changes.append(_Change(state, StateBatch(first, last, state.state, state.delivery_count)))
        if state.state.is_terminal:
            self.delivery_complete_count += self._count(first, last)
        return ErrorCode.NONE

    def _finish(self, changes: list[_Change], result: AcknowledgeResult, done: Acknowledged) -> None:
        if result.code:
            self._roll_back(changes)
            done(result)
        elif not changes:
            done(result)
        else:

            def written(result: AcknowledgeResult) -> None:
                self._written(changes, result.code)
                done(result)
                if not result.code:
                    self._on_available()

            self._write(self._state_write([change.batch for change in changes]), written)

    def _written(self, changes: list[_Change], code: ErrorCode) -> None:
        if code:
            self._roll_back(changes)
            return
        for state, batch in changes:
            state.end(committed=True)
            self._may_have_available |= state.state is RecordState.AVAILABLE
            self._bury(state, batch.first_offset, batch.last_offset)
        self._advance_start()

    def _roll_back(self, changes: list[_Change]) -> None:
        for state, batch in changes:
            state.end(committed=False)
            if batch.first_offset < self.start_offset:  # the log does not have them any more
                self._archive(batch.first_offset, self.start_offset - 1, RecordState.AVAILABLE, counts=False)
            self._may_have_available |= state.state is RecordState.AVAILABLE
            self._bury(state, batch.first_offset, batch.last_offset)
            if RecordState(batch.delivery_state).is_terminal and not state.state.is_terminal:
                self.delivery_complete_count -= self._count(batch.first_offset, batch.last_offset)

    def _state_write(self, batches: list[StateBatch]) -> StateWrite:
        return StateWrite(self.state_epoch, self.leader_epoch, self.start_offset, self.delivery_complete_count, batches)

    # -- acquisition locks ---------------------------------------------------------------------------------------------

    def expire_locks(self) -> int:
        held = {state.lock for batch in self.batches for _, _, state in batch.parts() if state.lock is not None}
        before = self.timed_out_records
        for lock in sorted(held, key=lambda lock: lock.first_offset):
            if lock.force_complete():
                lock.on_expiration()
        return self.timed_out_records - before

    def _new_lock(self, member_id: str, first: int, last: int) -> AcquisitionLock:
        duration_ms = self._settings().record_lock_duration_ms
        lock = AcquisitionLock(member_id, first, last, duration_ms, self._lock_timed_out)
        self._locks.delay(lock)
        return lock

    def _lock_timed_out(self, lock: AcquisitionLock) -> None:
        settings = self._settings()
        changed: list[_Change] = []
        floor = self.batches.floor(lock.first_offset)
        if floor is None:
            return
        for batch in self.batches.starting_in(floor.first_offset, lock.last_offset):
            if batch.whole is not None and batch.whole.lock is lock and self._start_is_within(batch):
                batch.split()
            for first, last, state in batch.parts():
                if state.lock is not lock or state.state is not RecordState.ACQUIRED:
                    continue
                target = RecordState.ARCHIVED if last < self.start_offset else RecordState.AVAILABLE
                reached = state.expire(target, settings)
                self.timed_out_records += last - first + 1
                changed.append(_Change(state, StateBatch(first, last, reached, state.delivery_count)))
                if reached.is_terminal:
                    self.delivery_complete_count += self._count(first, last)
                elif reached is RecordState.AVAILABLE:
                    self._may_have_available = True
        if changed:
            self._on_timeout(lock)
            write = self._state_write([batch for _, batch in changed])
            self._write(write, lambda _: self._timeout_written(changed))
            self._on_available()

    def _timeout_written(self, changed: list[_Change]) -> None:
        for state, batch in changed:
            if batch.delivery_state == RecordState.ARCHIVING:  # not if a later timeout archives it: its write does
                self._bury(state, batch.first_offset, batch.last_offset)
        self._advance_start()

    # -- dead letters --------------------------------------------------------------------------------------------------

    def _bury(self, state: InFlightState, first: int, last: int) -> None:
        if state.state is not RecordState.ARCHIVING or state.in_transition:
            return

        def buried() -> None:
            if self.status is not Status.ACTIVE or state.state is not RecordState.ARCHIVING:
                return
            state.archive()
            self.delivery_complete_count += self._count(first, last)
            batch = StateBatch(first, last, RecordState.ARCHIVED, state.delivery_count)
            self._write(self._state_write([batch]), self._buried_written)

        self._keep_dead_letter(first, last, state.delivery_count, buried)

    def _buried_written(self, _: AcknowledgeResult) -> None:
        self._advance_start()
