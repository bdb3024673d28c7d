"""Producer state of one partition: accepted, duplicate and rejected batches, and aborted transactions."""

import pytest

from sluice.broker.log.producer_state import MAX_EPOCH, AbortedTransaction, Marker, ProducerState, Refusal, StoredBatch
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, BatchHeader

PRODUCER = 1000
LARGEST_SEQUENCE = 2**31 - 1


def header(
    sequence: int, records: int = 1, *, epoch: int = 0, producer: int = PRODUCER, transactional: bool = False
) -> BatchHeader:
    attributes = TRANSACTIONAL_FLAG if transactional else 0
    return BatchHeader(0, 100, 0, 2, 0, attributes, records - 1, 0, 0, producer, epoch, sequence, records)


def marker_header(epoch: int = 0, producer: int = PRODUCER) -> BatchHeader:
    return BatchHeader(0, 78, 0, 2, 0, TRANSACTIONAL_FLAG | CONTROL_FLAG, 0, 0, 0, producer, epoch, -1, 1)


class Partition:
    """A partition that stores accepted batches at consecutive offsets; the high watermark stays at 0."""

    def __init__(self) -> None:
        self.state = ProducerState("t-0")
        self.end_offset = 0

    def send(self, batch: BatchHeader, timestamp: int = 5) -> StoredBatch | Refusal | None:
        verdict = self.state.check_batch(batch, self.end_offset)
        if verdict is None:
            last_offset = self.end_offset + batch.last_offset_delta
            self.state.batch_stored(batch, self.end_offset, last_offset, timestamp)
            self.end_offset = last_offset + 1
        return verdict

    def end(self, batch: BatchHeader, *, aborts: bool, coordinator_epoch: int = 0, version: int = 1) -> Refusal | None:
        marker = Marker(aborts, coordinator_epoch, 9)
        verdict = self.state.check_marker(batch, marker, self.end_offset, version)
        if verdict is None:
            self.state.marker_stored(batch, marker, self.end_offset)
            self.end_offset += 1
        return verdict


def code_of(verdict: StoredBatch | Refusal | None) -> int:
    return verdict.error_code if isinstance(verdict, Refusal) else 0


def partition_with(*batches: BatchHeader) -> Partition:
    partition = Partition()
    for batch in batches:
        assert partition.send(batch) is None
    return partition


OPEN = header(0, transactional=True)


ACCEPTED = {
    "the first batch of a producer": ([], header(0)),
    "an unknown producer, with any sequence and epoch": ([], header(77, epoch=5)),
    "the next sequence": ([header(0, 3)], header(3)),
    "the next sequence of a newer epoch": ([header(0), header(0, epoch=1)], header(1, epoch=1)),
    "a newer epoch that starts at sequence 0": ([header(0, 3)], header(0, epoch=1)),
    "sequence 0 after 2147483647": ([header(LARGEST_SEQUENCE)], header(0)),
    "the next sequence after a batch that wraps around": ([header(LARGEST_SEQUENCE - 1, 4)], header(2)),
    "another producer, with its own sequence": ([header(0, 3)], header(0, producer=7)),
    "the next batch of the open transaction": ([OPEN], header(1, transactional=True)),
    "a newer epoch in the open transaction": ([OPEN], header(0, epoch=1, transactional=True)),
    "a batch without an epoch, with any sequence": ([header(5, epoch=-1)], header(99, epoch=-1)),
}


@pytest.mark.parametrize(("stored", "sent"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepted_batch(stored: list[BatchHeader], sent: BatchHeader) -> None:
    assert partition_with(*stored).send(sent) is None


OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def out_of_order(sequence: int) -> tuple[ErrorCode, str]:
    """Return the error of a batch after sequence 2 at offset 2."""
    numbers = f"{sequence} (incoming seq. number), 2 (current end sequence number)"
    return OUT_OF_ORDER, f"Out of order sequence number for producer 1000 at offset 3 in partition t-0: {numbers}"


NOT_TRANSACTIONAL = (
    ErrorCode.INVALID_TXN_STATE,
    "Expected transactional write from producer 1000 at offset 1 in partition t-0",
)
REJECTED_BATCHES = {
    "a gap in the sequence numbers": ([header(0, 3)], header(4), *out_of_order(4)),
    "a batch that overlaps the last one": ([header(0, 3)], header(2, 2), *out_of_order(2)),
    "a batch with the base sequence of the last one but more records": ([header(0, 3)], header(0, 4), *out_of_order(0)),
    "a newer epoch that does not start at sequence 0": (
        [header(0, epoch=1)],
        header(5, epoch=2),
        OUT_OF_ORDER,
        "Invalid sequence number for new epoch of producer 1000 at offset 1 in partition t-0: 2 (request epoch), "
        "5 (seq. number), 1 (current producer epoch)",
    ),
    "an older epoch": (
        [header(0, epoch=1)],
        header(1, epoch=0),
        ErrorCode.INVALID_PRODUCER_EPOCH,
        "Epoch of producer 1000 at offset 1 in t-0 is 0, which is < the last seen epoch 1 (TV-1)",
    ),
    "an older epoch in a transaction": (
        [header(0, epoch=1)],
        header(1, epoch=0, transactional=True),
        ErrorCode.INVALID_PRODUCER_EPOCH,
        "Epoch of producer 1000 is 0, which is smaller than the last seen epoch 1",
    ),
    "a non-transactional batch while a transaction is open": ([OPEN], header(1), *NOT_TRANSACTIONAL),
    "a non-transactional batch of a newer epoch while a transaction is open": (
        [OPEN],
        header(0, epoch=1),
        *NOT_TRANSACTIONAL,
    ),
}


@pytest.mark.parametrize(("stored", "sent", "error_code", "reason"), REJECTED_BATCHES.values(), ids=REJECTED_BATCHES)
def test_rejected_batch(stored: list[BatchHeader], sent: BatchHeader, error_code: ErrorCode, reason: str) -> None:
    assert partition_with(*stored).send(sent) == Refusal(error_code, reason)


def test_duplicate_of_one_of_the_last_five_batches_returns_the_first_copy() -> None:
    partition = partition_with(*(header(2 * number, 2) for number in range(7)))
    for number in range(2, 7):
        first_offset = 2 * number
        expected = StoredBatch(first_offset, first_offset + 1, first_offset, first_offset + 1, 5)
        assert partition.send(header(2 * number, 2)) == expected


def test_duplicate_of_the_sixth_last_batch_is_out_of_order() -> None:
    partition = partition_with(*(header(number) for number in range(6)))
    assert code_of(partition.send(header(0))) == OUT_OF_ORDER


def test_duplicate_is_found_after_the_sequence_wraps_around() -> None:
    partition = partition_with(header(0), header(LARGEST_SEQUENCE, producer=7), header(0, producer=7))
    assert partition.send(header(0, producer=7)) == StoredBatch(0, 0, 2, 2, 5)


def test_marker_ends_the_transaction() -> None:
    partition = partition_with(OPEN)
    assert partition.end(marker_header(), aborts=False) is None
    assert partition.send(header(1)) is None


def test_marker_of_a_newer_epoch_fences_the_older_epoch() -> None:
    partition = partition_with(OPEN)
    assert partition.end(marker_header(epoch=1), aborts=True) is None
    assert code_of(partition.send(header(1, transactional=True))) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_first_batch_after_a_marker_without_a_transaction_must_have_sequence_0() -> None:
    partition = Partition()
    assert partition.end(marker_header(epoch=3), aborts=True) is None
    assert partition.state.aborted_transactions(0, 100) == []
    assert code_of(partition.send(header(1, epoch=3))) == OUT_OF_ORDER
    assert partition.send(header(0, epoch=3)) is None


def test_marker_of_an_older_producer_epoch_is_rejected() -> None:
    verdict = partition_with(header(0, epoch=2)).end(marker_header(epoch=1), aborts=True)
    reason = "Epoch of producer 1000 is 1, which is smaller than the last seen epoch 2"
    assert verdict == Refusal(ErrorCode.INVALID_PRODUCER_EPOCH, reason)


def test_marker_of_an_older_coordinator_epoch_is_fenced() -> None:
    partition = partition_with(OPEN)
    assert partition.end(marker_header(), aborts=False, coordinator_epoch=4) is None
    verdict = partition.end(marker_header(), aborts=False, coordinator_epoch=3)
    reason = "Invalid coordinator epoch for producerId 1000 at offset 2 in partition t-0: 3 (zombie), 4 (current)"
    assert verdict == Refusal(ErrorCode.TRANSACTION_COORDINATOR_FENCED, reason)


def test_first_unstable_offset_is_the_start_of_the_oldest_open_transaction() -> None:
    partition = partition_with(header(0, 3, producer=7), header(0, transactional=True), header(0, producer=8))
    assert partition.state.first_unstable_offset(5) == 3
    assert partition.state.has_undecided()


def test_transaction_is_undecided_until_its_marker_is_below_the_high_watermark() -> None:
    partition = partition_with(OPEN, header(0, producer=7, transactional=True))
    partition.end(marker_header(), aborts=False)  # the marker is at offset 2
    assert partition.state.first_unstable_offset(2) == 0
    assert partition.state.first_unstable_offset(3) == 1
    partition.end(marker_header(producer=7), aborts=False)  # the marker is at offset 3
    assert partition.state.first_unstable_offset(4) is None
    assert not partition.state.has_undecided()


def partition_with_aborted() -> Partition:
    """Return producers 1 at offsets 0-4 (aborted), 2 at 1-3 (aborted), 3 at 5-6 (committed), 4 at 7-8 (aborted)."""
    partition = Partition()
    for producer in (1, 2):
        partition.send(header(0, producer=producer, transactional=True))
    partition.send(header(0, producer=9))
    partition.end(marker_header(producer=2), aborts=True)
    partition.end(marker_header(producer=1), aborts=True)
    for producer, aborts in ((3, False), (4, True)):
        partition.send(header(0, producer=producer, transactional=True))
        partition.end(marker_header(producer=producer), aborts=aborts)
    return partition


ABORTED = {
    "all, ordered by marker": (0, 9, [2, 1, 4]),
    "not a transaction that starts at the upper bound": (0, 7, [2, 1]),
    "a transaction that starts below the upper bound and ends above it": (0, 1, [1]),
    "a transaction with its marker at the first offset": (4, 9, [1, 4]),
    "not a transaction with its marker below the first offset": (5, 9, [4]),
    "no transaction in the range": (5, 7, []),
}


@pytest.mark.parametrize(("offset", "upper_offset", "producers"), ABORTED.values(), ids=ABORTED)
def test_aborted_transactions(offset: int, upper_offset: int, producers: list[int]) -> None:
    found = partition_with_aborted().state.aborted_transactions(offset, upper_offset)
    assert [aborted.producer_id for aborted in found] == producers


def test_aborted_transaction_has_the_last_stable_offset_at_its_end() -> None:
    found = partition_with_aborted().state.aborted_transactions(0, 9)
    assert found == [
        AbortedTransaction(2, first_offset=1, last_offset=3, last_stable_offset=0),
        AbortedTransaction(1, first_offset=0, last_offset=4, last_stable_offset=5),
        AbortedTransaction(4, first_offset=7, last_offset=8, last_stable_offset=9),
    ]


def test_aborted_transactions_below_the_log_start_are_removed() -> None:
    state = partition_with_aborted().state
    state.truncate_from_start(4)
    assert [aborted.producer_id for aborted in state.aborted_transactions(0, 9)] == [1, 4]


def test_idle_producers_expire() -> None:
    partition = Partition()
    partition.send(header(0, producer=1), timestamp=100)
    partition.send(header(0, producer=2), timestamp=101)
    partition.state.expire(now_ms=200, expiration_ms=100)
    assert len(partition.state) == 1
    assert partition.send(header(50, producer=1)) is None  # the producer is unknown again: any sequence is accepted


def test_producer_with_an_open_transaction_does_not_expire() -> None:
    partition = partition_with(OPEN)
    partition.state.expire(now_ms=10**15, expiration_ms=1)
    assert len(partition.state) == 1


# -- transaction version 2 (KIP-890) -----------------------------------------------------------------------------------


MARKER_EPOCHS = {
    "an unknown producer": ([], [], marker_header(0), False),
    "a higher epoch than the records": ([OPEN], [], marker_header(1), False),
    "the epoch of the records: a marker of an earlier transaction": ([OPEN], [], marker_header(0), True),
    "the same marker again: the response was lost": ([OPEN], [1], marker_header(1), False),
    "an epoch that has ended": ([OPEN], [1], marker_header(0), True),
    "the epoch of a producer without a transaction": ([header(0)], [], marker_header(0), False),
    "the last epoch": ([header(0, epoch=MAX_EPOCH, transactional=True)], [], marker_header(MAX_EPOCH), False),
}


@pytest.mark.parametrize(("stored", "ended", "marker", "rejected"), MARKER_EPOCHS.values(), ids=MARKER_EPOCHS)
def test_marker_of_transaction_version_2_must_have_a_higher_epoch_than_the_records(
    stored: list[BatchHeader], ended: list[int], marker: BatchHeader, rejected: bool
) -> None:
    partition = partition_with(*stored)
    for epoch in ended:
        assert partition.end(marker_header(epoch), aborts=True, version=2) is None
    expected = ErrorCode.INVALID_PRODUCER_EPOCH if rejected else 0
    assert code_of(partition.end(marker, aborts=True, version=2)) == expected


def test_duplicate_marker_ends_no_transaction() -> None:
    partition = partition_with(OPEN)
    for _ in range(2):
        assert partition.end(marker_header(1), aborts=True, version=2) is None
    assert len(partition.state.aborted_transactions(0, 10)) == 1


# -- producers under verification --------------------------------------------------------------------------------------


def verifying(
    sequence: int, *, epoch: int = 0, raises_epochs: bool = False, stored: tuple[BatchHeader, ...] = ()
) -> Partition:
    """Return a partition with a batch under verification by the coordinator."""
    partition = partition_with(*stored)
    partition.state.start_verification(PRODUCER, epoch, sequence, raises_epochs=raises_epochs, now_ms=0)
    return partition


def transactional(sequence: int, epoch: int = 0) -> BatchHeader:
    return header(sequence, epoch=epoch, transactional=True)


FIRST_BATCHES = {
    "the batch under verification": (verifying(3), transactional(3), 0),
    "an earlier batch than the one under verification": (verifying(3), transactional(2), 0),
    "a later batch than the one under verification": (verifying(3), transactional(4), OUT_OF_ORDER),
    "a batch of another producer": (verifying(3), header(4, producer=7), 0),
    "transaction version 2 starts with sequence 0": (verifying(0, raises_epochs=True), transactional(0), 0),
    "transaction version 2 does not start with sequence 3": (
        verifying(3, raises_epochs=True),
        transactional(3),
        OUT_OF_ORDER,
    ),
    "transaction version 2 continues with sequence 1": (
        verifying(1, raises_epochs=True, stored=(header(0),)),
        transactional(1),
        0,
    ),
    "an epoch that has ended": (
        verifying(0, epoch=1, stored=(header(0, epoch=1),)),
        transactional(0),
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ),
}


@pytest.mark.parametrize(("partition", "sent", "code"), FIRST_BATCHES.values(), ids=FIRST_BATCHES)
def test_first_stored_batch_must_not_be_later_than_the_verified_one(
    partition: Partition, sent: BatchHeader, code: int
) -> None:
    assert code_of(partition.send(sent)) == code


def test_duplicate_is_recognized_during_verification() -> None:
    partition = verifying(1, stored=(header(0), header(1), header(2)))
    assert isinstance(partition.send(header(2)), StoredBatch)


UNDER_VERIFICATION = {
    "an earlier batch": (1, 2, 2),
    "a later batch": (1, 5, 3),
    "a higher epoch resets the sequence": (2, 9, 9),
    "a lower epoch is ignored": (0, 0, 3),
}


@pytest.mark.parametrize(("epoch", "sequence", "lowest_sequence"), UNDER_VERIFICATION.values(), ids=UNDER_VERIFICATION)
def test_earliest_batch_under_verification_must_be_stored_first(
    epoch: int, sequence: int, lowest_sequence: int
) -> None:
    partition = verifying(3, epoch=1)
    partition.state.start_verification(PRODUCER, epoch, sequence, raises_epochs=False, now_ms=0)
    assert isinstance(partition.send(transactional(lowest_sequence + 1, 2)), Refusal)
    assert partition.send(transactional(lowest_sequence, 2)) is None


CLEARED = {
    "transaction version 1": (False, 0, True),
    "version 2: the marker of the previous transaction": (True, 1, False),
    "version 2: the marker of the transaction under verification": (True, 2, True),
}


@pytest.mark.parametrize(("raises_epochs", "marker_epoch", "cleared"), CLEARED.values(), ids=CLEARED)
def test_marker_clears_the_verification_of_its_transaction(
    raises_epochs: bool, marker_epoch: int, cleared: bool
) -> None:
    partition = verifying(0, epoch=1 if raises_epochs else 0, raises_epochs=raises_epochs, stored=(OPEN,))
    assert partition.end(marker_header(marker_epoch), aborts=False, version=2 if raises_epochs else 1) is None
    late = transactional(1, marker_epoch + 1)
    verdict = partition.state.check_batch(late, partition.end_offset)
    assert isinstance(verdict, Refusal)
    assert ("earliest seen" in verdict.reason or "no existing state" in verdict.reason) == (not cleared)


def test_stored_batch_ends_the_verification() -> None:
    partition = verifying(0)
    assert partition.send(transactional(0)) is None
    assert partition.send(transactional(1)) is None


@pytest.mark.parametrize(("now_ms", "cleared"), [(99, False), (100, True)])
def test_verification_expires(now_ms: int, cleared: bool) -> None:
    partition = verifying(0)
    partition.state.expire(now_ms, 100)
    assert (partition.send(transactional(1)) is None) == cleared


def test_open_transactions_and_fenced_epochs_of_a_producer() -> None:
    state = partition_with(header(0, epoch=2, transactional=True)).state
    assert [state.has_ongoing_transaction(PRODUCER, epoch) for epoch in (1, 2, 3)] == [False, True, False]
    assert [state.is_fenced(PRODUCER, epoch) for epoch in (1, 2, 3)] == [True, False, False]
    assert not state.has_ongoing_transaction(7, 2)
    assert not state.is_fenced(7, 0)
    assert [(producer_id, entry.epoch) for producer_id, entry in state] == [(PRODUCER, 2)]
