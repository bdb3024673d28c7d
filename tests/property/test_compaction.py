"""A compacted log under all operations on logs, cleaned step by step, against a plain list of its records.

After every step:

- Offsets and records never change; they are only removed.
- The last committed record of each key exists, unless it is a tombstone past its delete horizon.
- A committed record is removed only if its key has a later one below the cleaned offset.
- Aborted records are never returned.
- A reader that starts anywhere gets exactly the remaining records, in order.
"""

from collections.abc import Generator, Iterator
from functools import lru_cache

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice.broker.log.cleaner.cleaner import LogCleaning
from sluice.broker.log.cleaner.selection import to_clean
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.memory_storage import MemoryStorage
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.retention import enforce_retention
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import batch_bounds, read_header
from sluice.protocol.records.build import ABORT, COMMIT, build_batch, build_transaction_marker
from sluice.protocol.records.log_validator import COORDINATOR, AppendConfig
from sluice.protocol.records.record import Record, iter_records

DELETE_RETENTION_MS = 1000
START_MS = 1_700_000_000_000
PRODUCERS = 3  # the first is idempotent, the others are transactional
IDEMPOTENT = 0
KEYS = [b"a", b"b", b"c", b"d", b"e"]
RECORDS = st.lists(st.tuples(st.sampled_from(KEYS), st.none() | st.binary(max_size=8)), min_size=1, max_size=4)
UNDECIDED, COMMITTED, ABORTED = "undecided", "committed", "aborted"


class Known:
    """The record stored at one offset, and its state."""

    def __init__(self, record: Record, state: str) -> None:
        self.record = record
        self.state = state
        self.found_ms = -1  # earliest time of its delete horizon


# The same batches are read after every step.
header_of = lru_cache(maxsize=4096)(read_header)


@lru_cache(maxsize=4096)
def records_of(batch: bytes) -> list[Record]:
    return list(iter_records(batch))


class Compaction(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms = START_MS
        # Small segments, so that there are many.
        append = AppendConfig(after_max_ms=2**62)
        config = LogConfig(append, segment_bytes=400, segment_ms=2, delete_retention_ms=DELETE_RETENTION_MS)
        self.log = PartitionLog("t-0", config, MemoryStorage(2**26))
        self.log.has_followers = False
        self.known: dict[int, Known] = {}
        self.sequences = [0] * PRODUCERS
        self.open: dict[int, list[int]] = {}
        self.cleaning: LogCleaning | None = None
        self.steps: Generator[None, None, None] | None = None
        self.cleaned_to = 0
        self.epoch_ends: dict[int, int] = {}
        # Cache for readers that start at different offsets of an unchanged log.
        self.answers: dict[tuple[int, int, int], tuple[list[bytes], int]] = {}
        self.epoch = 0

    def append(self, data: bytes, origin: int = 0) -> int:
        arguments = () if origin == 0 else (origin,)
        result = self.log.append(memoryview(bytearray(data)), self.now_ms, self.epoch, *arguments)
        assert result.error_code == ErrorCode.NONE
        return result.base_offset

    def remember(self, base_offset: int, records: list[Record], state: str) -> list[int]:
        for number, record in enumerate(records):
            stored = Record(base_offset + number, record.timestamp, record.key, record.value)
            self.known[stored.offset] = Known(stored, state)
        return list(range(base_offset, base_offset + len(records)))

    def records(self, pairs: list[tuple[bytes, bytes | None]]) -> list[Record]:
        return [Record(number, self.now_ms, key, value) for number, (key, value) in enumerate(pairs)]

    @rule(batches=st.lists(st.tuples(st.integers(-1, PRODUCERS - 1), RECORDS), min_size=1, max_size=6))
    def produce(self, batches: list[tuple[int, list[tuple[bytes, bytes | None]]]]) -> None:
        for producer, pairs in batches:
            self.now_ms += 1
            if producer < 0:
                records = self.records(pairs)
                compression = len(pairs) % 2
                self.remember(self.append(build_batch(records, compression=compression)), records, COMMITTED)
            else:
                self.produce_numbered(pairs, producer)

    def produce_numbered(self, pairs: list[tuple[bytes, bytes | None]], producer: int) -> None:
        records, transactional = self.records(pairs), producer != IDEMPOTENT
        batch = build_batch(
            records,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.sequences[producer],
            transactional=transactional,
        )
        self.sequences[producer] += len(records)
        offsets = self.remember(self.append(batch), records, UNDECIDED if transactional else COMMITTED)
        if transactional:
            self.open.setdefault(producer, []).extend(offsets)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), aborts=st.booleans())
    def end_transaction(self, data: st.DataObject, aborts: bool) -> None:
        producer = data.draw(st.sampled_from(sorted(self.open)))
        marker = build_transaction_marker(
            ABORT if aborts else COMMIT,
            offset=0,
            timestamp=self.now_ms,
            producer_id=producer,
            producer_epoch=0,
            coordinator_epoch=0,
        )
        self.append(marker, COORDINATOR)
        for offset in self.open.pop(producer):
            self.known[offset].state = ABORTED if aborts else COMMITTED

    @rule(what=st.sampled_from(["leader", "delete", "check", "memory", "later"]))
    def other_operation(self, what: str) -> None:
        log = self.log
        if what == "leader":
            self.epoch_ends[self.epoch] = log.log_end_offset
            self.epoch += 1
            log.begin_epoch(self.epoch)
        elif what == "delete":
            assert log.delete_records_before(min(log.log_start_offset + 2, log.high_watermark)) == ErrorCode.NONE
        elif what == "check":
            enforce_retention(log, self.now_ms)
        elif what == "memory" and len(log.segments) > 5:
            log.drop_oldest_segment()
        elif what == "later":
            self.now_ms += DELETE_RETENTION_MS * 2 // 3

    @rule(steps=st.sampled_from([3, 10, 1000, 1000]), most_keys=st.sampled_from([2, 100, 100]))
    def clean(self, steps: int, most_keys: int) -> None:
        if self.steps is None:
            self.begin_cleaning(most_keys)
        for _ in range(steps):
            if self.steps is not None and next(self.steps, "done") == "done":
                assert self.cleaning is not None
                self.log.first_dirty_offset = max(self.log.first_dirty_offset, self.cleaning.end_offset)
                self.steps = self.cleaning = None

    def begin_cleaning(self, most_keys: int) -> None:
        found = to_clean(self.log, self.now_ms)
        assert found.first_uncleanable_offset <= max(self.log.last_stable_offset, found.first_dirty_offset)
        if found.cleanable_bytes:
            self.cleaning = LogCleaning(
                self.log, found.first_dirty_offset, found.first_uncleanable_offset, self.now_ms, most_keys
            )
            self.steps = self.cleaning.steps()
            self.cleaned_to = max(self.cleaned_to, found.first_uncleanable_offset)
            for known in self.known.values():
                if known.found_ms < 0 and known.record.offset < self.cleaned_to:
                    known.found_ms = self.now_ms

    # What must hold

    def read(self, offset: int, up_to: int, max_bytes: int) -> Iterator[bytes]:
        """Yield the batches of a reader, fetch by fetch."""
        while offset < up_to:
            if (offset, up_to, max_bytes) not in self.answers:
                self.answers[offset, up_to, max_bytes] = self.answer(offset, up_to, max_bytes)
            batches, offset = self.answers[offset, up_to, max_bytes]
            if not batches:
                return
            yield from batches

    def answer(self, offset: int, up_to: int, max_bytes: int) -> tuple[list[bytes], int]:
        """Return the batches of one fetch, and the next offset of its reader."""
        answer = self.log.read(offset, max_bytes, up_to, True)
        assert answer.error_code == ErrorCode.NONE
        assert answer.size == self.log.size_available(offset, max_bytes, up_to, True)
        if not answer.size:
            return [], offset
        data, batches = b"".join(answer.parts), []
        for position, size, _ in batch_bounds(data):
            batch = data[position : position + size]
            last_offset = read_header(batch).last_offset
            assert offset <= last_offset, "a batch before the fetch offset"
            offset = last_offset + 1
            batches.append(batch)
        assert answer.next_offset == offset
        return batches, offset

    def committed_from(self, offset: int, max_bytes: int) -> list[Record]:
        """Return the records of a read_committed reader."""
        log, records = self.log, []
        aborted = sorted(log.aborted_transactions(offset, log.last_stable_offset), key=lambda txn: txn.first_offset)
        aborting: set[int] = set()
        for batch in self.read(offset, log.last_stable_offset, max_bytes):
            header = header_of(batch)
            while aborted and aborted[0].first_offset <= header.last_offset:
                aborting.add(aborted.pop(0).producer_id)
            if header.is_control:
                aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                records += [record for record in records_of(batch) if record.offset >= offset]
        return records

    @invariant()
    def read_committed_returns_the_remaining_records(self) -> None:
        log = self.log
        self.answers.clear()
        seen = self.committed_from(log.log_start_offset, 10**6)
        for record in seen:
            assert record == self.known[record.offset].record
            assert self.known[record.offset].state == COMMITTED
        left = {record.offset for record in seen}
        committed = [known for known in self.known.values() if known.state == COMMITTED]
        last = {known.record.key: known.record.offset for known in committed if known.record.offset < self.cleaned_to}
        for known in committed:
            offset = known.record.offset
            if log.log_start_offset <= offset < log.last_stable_offset and offset not in left:
                superseded = offset < last.get(known.record.key, -1)
                expired = known.record.value is None and 0 <= known.found_ms <= self.now_ms - DELETE_RETENTION_MS
                assert superseded or expired, f"{known.record} is lost"
        for offset in range(log.log_start_offset, log.last_stable_offset, 3):
            from_here = self.committed_from(offset, 100)
            assert from_here == [record for record in seen if record.offset >= offset]

    @invariant()
    def offsets_by_timestamp_are_right(self) -> None:
        log = self.log
        segments: list[tuple[int, list[bytes]]] = []
        for segment in log.segment_list.whole(log.log_end_offset):
            found = [each for part in segment.parts for each in part.batches(part.base_offset)]
            greatest = max((header.max_timestamp for header, _ in found), default=-1)
            reached = greatest if greatest >= 0 else segment.parts[-1].last_append_ms
            segments.append((reached, [bytes(batch) for _, batch in found]))
        for timestamp in {START_MS, self.now_ms, self.now_ms - 60, self.now_ms + 1}:
            batches = next((batches for reached, batches in segments if reached >= timestamp), [])
            expected = (
                record.offset
                for batch in batches
                for record in records_of(batch)
                if record.timestamp >= timestamp and record.offset >= log.log_start_offset
            )
            answer = log.offset_for_timestamp(timestamp)
            assert (None if answer is None else answer.offset) == next(expected, None)

    @invariant()
    def epoch_end_offsets_are_unchanged(self) -> None:
        for epoch, end in self.epoch_ends.items():
            found, offset = self.log.end_offset_for_epoch(epoch)
            if found == epoch and end > self.log.log_start_offset:
                assert offset == end

    @invariant()
    def size_equals_the_sum_of_its_segments(self) -> None:
        assert self.log.size_in_bytes == sum(segment.size for segment in self.log.segments)


TestCompaction = Compaction.TestCase
TestCompaction.settings = settings(max_examples=2 * settings().max_examples // 5, stateful_step_count=50)
