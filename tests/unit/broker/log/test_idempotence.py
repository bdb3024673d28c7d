"""Idempotent producers: no record is stored twice."""

from collections import defaultdict

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import BatchHeader, iter_batches
from tests.support.records import batch
from tests.support.virtual_broker import WALL_START_MS, broker_with_topic

PRODUCER = 7


class IdempotentProducer(RuleBasedStateMachine):
    """Random retries, reordered batches, leader changes that lose the last records, and new producer epochs."""

    def __init__(self) -> None:
        super().__init__()
        broker = broker_with_topic()
        self.log = broker.partition().log
        self.sent: list[tuple[int, int, int]] = []  # epoch, base sequence, record count
        self.epoch = self.next_sequence = self.leader_epoch = 0

    @rule(batches=st.lists(st.integers(1, 3), min_size=1, max_size=7), is_lost=st.booleans())
    def send(self, batches: list[int], is_lost: bool) -> None:
        for records in batches:
            self.sent.append((self.epoch, self.next_sequence, records))
            self.next_sequence += records
            if not is_lost:
                self.arrive(*self.sent[-1])

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        newest_first = [*reversed(self.sent)]
        self.arrive(*data.draw(st.sampled_from(newest_first)))

    @rule()
    def raise_epoch(self) -> None:
        self.epoch += 1
        self.next_sequence = 0

    @rule(records=st.integers(1, 4))
    def lose_last_records(self, records: int) -> None:
        self.leader_epoch += 1
        self.log.truncate_to(self.log.batch_start(max(0, self.log.log_end_offset - records)))

    @invariant()
    def sequences_are_consecutive(self) -> None:
        stored = [(header.producer_epoch, header.base_sequence, header.record_count) for header in self.headers()]
        assert [epoch for epoch, _, _ in stored] == sorted(epoch for epoch, _, _ in stored)
        sequences_by_epoch: dict[int, list[int]] = defaultdict(list)
        for epoch, first, records in stored:
            sequences_by_epoch[epoch] += range(first, first + records)
        for epoch, sequences in sequences_by_epoch.items():
            assert sequences == [*range(sequences[0], sequences[0] + len(sequences))], (
                f"epoch {epoch}: sequences are not consecutive: {sequences}"
            )

    def arrive(self, epoch: int, sequence: int, records: int) -> None:
        data = batch(*[b"v"] * records, producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence)
        end_before = self.log.log_end_offset
        stored_offsets = {
            (header.producer_epoch, header.base_sequence): header.base_offset for header in self.headers()
        }
        result = self.log.append(memoryview(data), WALL_START_MS, self.leader_epoch)
        if (epoch, sequence) in stored_offsets:
            assert self.log.log_end_offset == end_before, "a stored batch is not stored again"
            rejections = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH)
            assert result.error_code in rejections or result.base_offset == stored_offsets[epoch, sequence]

    def headers(self) -> list[BatchHeader]:
        self.log.high_watermark = self.log.log_end_offset  # reads end there
        read = self.log.read(0, 10**9, self.log.high_watermark, True)
        return [header for _, header in iter_batches(b"".join(read.parts))]


IdempotentProducer.TestCase.settings = settings(max_examples=settings().max_examples // 2, stateful_step_count=25)
TestIdempotentProducer = IdempotentProducer.TestCase
