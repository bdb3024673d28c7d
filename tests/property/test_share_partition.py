"""A share partition under all operations, in virtual time, compared with a model that has one state for each record.

Members fetch, acknowledge, lose their locks and leave; writes of the state succeed or fail, now or later; dead letters
are kept; the log loses its start and some batches; the leader moves. At the end, all records are accepted: none may be
lost.
"""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sluice.broker.coordinator.share.persisted import StateBatch, StateWrite
from sluice.broker.share.delivery import (
    ACCEPT,
    BATCH_OPTIMIZED,
    GAP,
    NO_MEMBER,
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
from sluice.broker.share.share_partition import SharePartition
from sluice.clock import ManualClock
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.purgatory.timer import Timer

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState
LOCK_MS = 1_000
MEMBER = st.sampled_from(["a", "b", "c"])
ACKNOWLEDGED_AS = {ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED, GAP: ARCHIVED}


class Record:
    """The model of one record. `before` is its member during a write of its state."""

    def __init__(self, count: int = 0, state: RecordState = AVAILABLE) -> None:
        self.state, self.count, self.member, self.deadline = state, count, NO_MEMBER, 0.0
        self.before: str | None = None
        self.expired = AVAILABLE  # its state if its lock expires during the write, and that fails
        self.is_archived = False  # by the log, whatever the outcome of a write

    def archive(self) -> None:
        self.state, self.is_archived = ARCHIVED, True

    def seen(self) -> tuple[RecordState, int, str]:
        return self.state, self.count, self.member


class Members(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.limit = 2
        self.most_locks = 40
        self.keeps = False  # dead letters
        self.letters: list[tuple[int, int, int, Callable[[], None]]] = []
        self.log: list[tuple[int, int]] = []  # batches by first and last offset
        self.end = 0
        self.log_start = 0
        self.records: dict[int, Record] = {}  # all that were ever fetched from the current leader
        self.delivered: dict[int, int] = {}
        self.acquired: list[tuple[str, Acquired]] = []
        self.writes: list[tuple[StateWrite, Acknowledged]] = []
        self.begun: dict[int, list[Record]] = {}  # the records whose transition a write is about
        self.stored: dict[int, tuple[int, int]] = {}  # by the share coordinator
        self.stored_start = 0
        self.epoch = 0
        self.partition = self.new_partition()
        self.partition.load(0, 0, [])

    def new_partition(self) -> SharePartition:
        locks = DelayedOperationPurgatory("Locks", Timer(self.clock))
        return SharePartition(
            self.epoch,
            self.limits,
            locks,
            lambda *write: self.writes.append(write),
            lambda: None,
            lambda *letter: self.letters.append(letter),
            lambda _: None,
        )

    def limits(self) -> ShareSettings:
        return ShareSettings(
            self.limit, LOCK_MS, self.most_locks, renew_acknowledge=True, keeps_dead_letters=self.keeps
        )

    # -- the log -------------------------------------------------------------------------------------------------------

    @rule(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=3))
    def append(self, sizes: list[int]) -> None:
        for size in sizes:
            self.log.append((self.end, self.end + size - 1))
            self.end += size

    @rule(index=st.integers(0, 20))
    def compact(self, index: int) -> None:
        if index < len(self.log) - 1:
            del self.log[index]

    @rule(records=st.integers(1, 8))
    def delete_records(self, records: int) -> None:
        self.log_start = min(self.end, self.log_start + records)
        start = self.partition.start_offset
        if self.log_start > start:
            self.partition.log_start_moved(self.log_start)
            for offset, record in self.records.items():
                if start <= offset < self.log_start and record.state is AVAILABLE:
                    record.archive()

    # -- members -------------------------------------------------------------------------------------------------------

    @rule(
        member=MEMBER,
        mode=st.sampled_from([BATCH_OPTIMIZED, RECORD_LIMIT]),
        most=st.integers(1, 20),
        size=st.integers(1, 20),
        batches=st.integers(1, 4),
    )
    def fetch(self, member: str, mode: int, most: int, size: int, batches: int) -> None:
        if not self.partition.can_acquire():
            assert self.partition.in_flight >= self.most_locks
            return
        offset = max(self.partition.next_fetch_offset(), self.log_start)
        found = [FetchedBatch(*one, -1, False, False, memoryview(b"")) for one in self.log if one[1] >= offset][
            :batches
        ]
        if not found:
            return
        for missing in range(offset, found[0].base_offset):
            if missing in self.records and self.records[missing].state is AVAILABLE:
                self.records[missing].archive()
        acquired = self.partition.acquire(member, mode, size, most, offset, found)
        if mode == RECORD_LIMIT:
            assert sum(one.last_offset - one.first_offset + 1 for one in acquired) <= most
        for one in acquired:
            self.acquired.append((member, one))
            for number in range(one.first_offset, one.last_offset + 1):
                self.take(number, member, one.delivery_count)
        for batch in self.partition.batches:  # with a record limit, the rest is in flight and available
            for first, last, state in batch.parts():
                for number in range(first, last + 1):
                    if number not in self.records:
                        assert state.is_available
                        assert not state.delivery_count
                        self.records[number] = Record()

    def take(self, offset: int, member: str, count: int) -> None:
        record = self.records.setdefault(offset, Record())
        assert record.state is AVAILABLE
        assert record.before is None
        record.state, record.count, record.member = ACQUIRED, record.count + 1, member
        record.deadline = self.clock.monotonic_ms() + LOCK_MS
        assert record.count == count
        assert count <= self.limit
        self.delivered[offset] = self.delivered.get(offset, 0) + 1

    @rule(
        index=st.integers(0, 30),
        cut=st.integers(0, 3),
        kind=st.sampled_from([ACCEPT, ACCEPT, RELEASE, REJECT, GAP, RENEW]),
        each=st.booleans(),
        other=st.booleans(),
    )
    def acknowledge(self, index: int, cut: int, kind: int, each: bool, other: bool) -> None:
        if not self.acquired:
            return
        member, one = self.acquired.pop(index % len(self.acquired))
        first, last = min(one.first_offset + cut, one.last_offset), one.last_offset
        if first > one.first_offset:
            self.acquired.append((member, one._replace(last_offset=first - 1)))
        if other:
            member = "stranger"
        concerned = [
            self.records[at] for at in range(max(first, self.partition.start_offset), last + 1) if at in self.records
        ]
        is_valid = all(one.seen()[::2] == (ACQUIRED, member) for one in concerned)
        results: list[AcknowledgeResult] = []
        kinds = [kind] * (last - first + 1 if each else 1)
        before = len(self.writes)
        self.partition.acknowledge(member, [AcknowledgementBatch(first, last, kinds)], results.append)
        if not is_valid:
            assert [one.code for one in results] == [ErrorCode.INVALID_RECORD_STATE]
            return
        assert len(self.writes) - before == bool(concerned and kind != RENEW)
        for record in concerned:
            if kind == RENEW:
                record.deadline = self.clock.monotonic_ms() + LOCK_MS
            else:
                self.begin(record, self.undelivered if kind == REJECT else ACKNOWLEDGED_AS[kind])

    def begin(self, record: Record, state: RecordState) -> None:
        record.before, record.member = record.member, NO_MEMBER
        record.expired = self.undelivered if record.count >= self.limit else AVAILABLE
        record.state = self.undelivered if state is AVAILABLE and record.count >= self.limit else state
        self.begun.setdefault(id(self.writes[-1][0]), []).append(record)

    @rule(member=MEMBER)
    def leave(self, member: str) -> None:
        self.partition.release(member, lambda _: None)
        for offset, record in self.records.items():
            if record.seen()[::2] == (ACQUIRED, member):
                self.begin(record, ARCHIVED if offset < self.partition.start_offset else AVAILABLE)

    @rule(ms=st.sampled_from([1, 300, LOCK_MS]))
    def wait(self, ms: int) -> None:
        start = self.partition.start_offset
        self.clock.advance(ms)
        self.expire(start, lambda record: record.deadline <= self.clock.monotonic_ms())

    @rule()
    def lose_locks(self) -> None:
        start = self.partition.start_offset
        self.partition.expire_locks()
        self.expire(start, lambda _: True)
        for record in self.records.values():
            record.deadline = 0.0

    def expire(self, start: int, is_over: Callable[[Record], bool]) -> None:
        for offset, record in self.records.items():
            if record.state is ACQUIRED and is_over(record):
                exhausted = self.undelivered if record.count >= self.limit else AVAILABLE
                record.state, record.member = ARCHIVED if offset < start else exhausted, NO_MEMBER

    @property
    def undelivered(self) -> RecordState:
        return ARCHIVING if self.keeps else ARCHIVED

    @rule()
    def bury(self) -> None:
        while self.letters:
            first, last, count, done = self.letters.pop(0)
            done()
            for offset in range(first, last + 1):
                assert self.records[offset].seen() == (ARCHIVING, count, NO_MEMBER)
                self.records[offset].state = ARCHIVED

    @rule(limit=st.integers(2, 4), locks=st.integers(5, 40), keeps=st.booleans())
    def configure(self, limit: int, locks: int, keeps: bool) -> None:
        self.limit, self.most_locks, self.keeps = max(self.limit, limit), locks, keeps

    # -- the share coordinator -----------------------------------------------------------------------------------------

    @rule(fails=st.booleans(), every=st.booleans())
    def write(self, fails: bool, every: bool) -> None:
        while self.writes:
            write, done = self.writes.pop(0)
            records = self.begun.pop(id(write), [])
            offsets = {id(record): offset for offset, record in self.records.items()}
            if not fails:
                self.store(write)
            done(AcknowledgeResult(ErrorCode.COORDINATOR_NOT_AVAILABLE if fails else ErrorCode.NONE))
            for record in records:
                if record.is_archived:
                    pass
                elif fails and record.deadline <= self.clock.monotonic_ms():
                    record.state = record.expired
                    if record.state is AVAILABLE and offsets[id(record)] < self.partition.start_offset:
                        record.archive()
                elif fails:
                    record.state, record.member = ACQUIRED, record.before or NO_MEMBER
                record.before = None
            if not every:
                return

    def store(self, write: StateWrite) -> None:
        self.stored_start = write.start_offset
        for one in write.batches:
            for offset in range(one.first_offset, one.last_offset + 1):
                self.stored[offset] = max(self.stored.get(offset, (0, 0)), (one.delivery_count, one.delivery_state))

    @rule()
    def move_leader(self) -> None:
        """Another leader loads what is stored; records acquired from this one may be delivered again."""
        self.partition.fence()
        self.writes.clear()
        self.begun.clear()
        self.letters.clear()
        self.acquired.clear()
        self.epoch += 1
        start = self.stored_start
        kept = {offset: one for offset, one in self.stored.items() if offset >= start}
        batches = [StateBatch(offset, offset, state, count) for offset, (count, state) in sorted(kept.items())]
        self.records = {offset: Record(count, RecordState(state)) for offset, (count, state) in kept.items()}
        self.delivered = {offset: self.stored[offset][0] for offset in kept}
        self.partition = self.new_partition()
        assert self.partition.load(start, self.epoch, batches)
        if self.log_start > start:
            self.partition.log_start_moved(self.log_start)
            for offset, record in self.records.items():
                if start <= offset < self.log_start and record.state is AVAILABLE:
                    record.archive()

    # -- checks --------------------------------------------------------------------------------------------------------

    @invariant()
    def states_are_equal(self) -> None:
        partition = self.partition
        ends = [number for batch in partition.batches for number in (batch.first_offset, batch.last_offset)]
        assert ends == sorted(ends)
        tracked = {}
        for batch in partition.batches:
            for first, last, state in batch.parts():
                for offset in range(first, last + 1):
                    tracked[offset] = (state.state, state.delivery_count, state.member_id)
                    assert state.in_transition == (self.records[offset].before is not None)
        assert tracked == {offset: self.records[offset].seen() for offset in tracked}
        for offset, record in self.records.items():
            if offset not in tracked:
                assert record.state.is_terminal
                assert offset < partition.start_offset
            if offset < partition.start_offset and offset >= self.log_start:
                assert record.state.is_terminal
        complete = sum(state.is_terminal for offset, (state, *_) in tracked.items() if offset >= partition.start_offset)
        assert partition.delivery_complete_count == complete

    @invariant()
    def nothing_is_delivered_too_often(self) -> None:
        assert all(self.delivered[offset] <= self.limit for offset in self.delivered)

    def teardown(self) -> None:
        """All records that the log has are accepted in the end."""
        self.write(fails=False, every=True)
        self.most_locks = 40
        for _ in range(1_000):
            self.clock.advance(LOCK_MS)
            offset = max(self.partition.next_fetch_offset(), self.log_start)
            found = [one for one in self.log if one[1] >= offset]
            if not found:
                return
            fetched = [FetchedBatch(*one, -1, False, False, memoryview(b"")) for one in found]
            for one in self.partition.acquire("last", BATCH_OPTIMIZED, 20, 20, offset, fetched):
                batch = AcknowledgementBatch(one.first_offset, one.last_offset, [ACCEPT])
                self.partition.acknowledge("last", [batch], lambda _: None)
            while self.writes or self.letters:
                if self.writes:
                    self.writes.pop(0)[1](AcknowledgeResult())
                else:
                    self.letters.pop(0)[3]()
        raise AssertionError("the records were not accepted")


TestMembers = Members.TestCase
TestMembers.settings = settings(max_examples=settings().max_examples, stateful_step_count=50, deadline=None)


def test_record_that_times_out_again_before_the_first_timeout_is_stored_is_one_dead_letter() -> None:
    members = Members()
    members.configure(limit=2, locks=5, keeps=True)
    members.append([1])
    for _ in range(2):
        members.fetch("a", BATCH_OPTIMIZED, most=1, size=1, batches=1)
        members.lose_locks()
    members.write(fails=False, every=True)
    assert len(members.letters) == 1
    members.bury()
    members.states_are_equal()
