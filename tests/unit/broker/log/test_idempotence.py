"""No record is twice in a log, whatever its network and its brokers do to a producer that numbers what it sends."""

from collections import defaultdict

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import BatchHeader, iter_batches
from tests.support.records import batch
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker

PRODUCER = 7


class IdempotentProducer(RuleBasedStateMachine):
    """What was sent once may come any number of times, late and in any order. Leaders move, and the last records go
    with them. Now and then the producer raises its epoch, and what it numbered before may still be on its way.
    """

    def __init__(self) -> None:
        super().__init__()
        broker = VirtualBroker()
        broker.topic()
        self.log = broker.partition().log
        self.sent: list[tuple[int, int, int]] = []  # epoch, first sequence, how many records
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
    def lose(self, records: int) -> None:
        self.leader_epoch += 1
        self.log.truncate_to(self.log.batch_start(max(0, self.log.log_end_offset - records)))

    @invariant()
    def numbers_follow_each_other(self) -> None:
        told = [(header.producer_epoch, header.base_sequence, header.record_count) for header in self.headers()]
        assert [epoch for epoch, _, _ in told] == sorted(epoch for epoch, _, _ in told)
        of_epochs: dict[int, list[int]] = defaultdict(list)
        for epoch, first, records in told:
            of_epochs[epoch] += range(first, first + records)
        for epoch, numbers in of_epochs.items():
            assert numbers == [*range(numbers[0], numbers[0] + len(numbers))], f"of epoch {epoch}: {numbers}"

    def arrive(self, epoch: int, sequence: int, records: int) -> None:
        data = batch(*[b"v"] * records, producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence)
        before = self.log.log_end_offset
        there = {(header.producer_epoch, header.base_sequence): header.base_offset for header in self.headers()}
        result = self.log.append(memoryview(data), WALL_START_MS, self.leader_epoch)
        if (epoch, sequence) in there:
            assert self.log.log_end_offset == before, "what is there is not stored again"
            refused = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH)
            assert result.error_code in refused or result.base_offset == there[epoch, sequence]

    def headers(self) -> list[BatchHeader]:
        self.log.high_watermark = self.log.log_end_offset  # or nothing can be read
        read = self.log.read(0, 10**9, self.log.high_watermark, True)
        return [header for _, header in iter_batches(b"".join(read.parts))]


IdempotentProducer.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestIdempotentProducer = IdempotentProducer.TestCase
