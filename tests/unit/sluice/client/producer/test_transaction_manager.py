from collections.abc import Callable
from random import Random

import pytest

from sluice.client.backoff import ExponentialBackoff, StaticBackoff
from sluice.client.errors import ApiException, KafkaException, UnsupportedVersionException, exception_of
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer.batch import Codec, ProducerBatch
from sluice.client.producer.sequences import ProducerIdAndEpoch
from sluice.client.producer.transaction_manager import TransactionManager
from sluice.client.producer.transactions import Transactions
from sluice.protocol.apis.init_producer_id import InitProducerIdResponse
from sluice.protocol.errors import ErrorCode
from tests.support.producing import Nobody

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def a_batch(records: int = 1, partition: TopicPartition = T0) -> ProducerBatch:
    batch = ProducerBatch(partition, Codec(), 1000, 0, memory=0, ratio=1.0)
    for _ in range(records):
        batch.try_append(0, None, b"v", (), Nobody())
    return batch


def with_id(epoch: int = 0) -> TransactionManager:
    manager = TransactionManager(StaticBackoff(100))
    manager.is_requesting = True
    manager.handle_init_producer_id(InitProducerIdResponse(producer_id=7, producer_epoch=epoch), None, 0)
    return manager


@pytest.fixture
def manager() -> TransactionManager:
    return with_id()


def drained(manager: TransactionManager, *batches: ProducerBatch) -> list[ProducerBatch]:
    for batch in batches:
        assert manager.may_drain(batch)
        manager.drained(batch)
    return list(batches)


RETRIABLE = {
    "it was lost": (None, exception_of(ErrorCode.NETWORK_EXCEPTION)),
    "a retriable error": (InitProducerIdResponse(error_code=14), None),
}


FATAL = {
    "an error": (InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST), None),
    "no such API": (None, UnsupportedVersionException("no")),
}


class TestTheId:
    def test_producer_id_is_requested_before_draining(self) -> None:
        manager = TransactionManager(StaticBackoff(100))
        assert not manager.may_drain(a_batch())
        due_ms = manager.next_request_ms()
        assert due_ms is not None
        assert due_ms < 0
        assert manager.request().transactional_id is None

    def test_producer_id_is_requested_once(self, manager: TransactionManager) -> None:
        assert manager.next_request_ms() is None
        assert manager.may_drain(a_batch())

    @pytest.mark.parametrize(("response", "failure"), RETRIABLE.values(), ids=RETRIABLE)
    def test_producer_id_is_requested_again_after_a_backoff(
        self, response: InitProducerIdResponse | None, failure: KafkaException | None
    ) -> None:
        manager = TransactionManager(StaticBackoff(100))
        assert manager.handle_init_producer_id(response, failure, 500) is None
        assert manager.next_request_ms() == 600

    def test_backoff_of_the_producer_id_doubles_with_each_failure(self) -> None:
        manager = TransactionManager(ExponentialBackoff(100, 2, 1000, 0, Random(0).uniform))
        due_ms = []
        for _ in range(3):
            manager.handle_init_producer_id(None, exception_of(ErrorCode.NETWORK_EXCEPTION), 500)
            due_ms.append(manager.next_request_ms())
        assert due_ms == [600, 700, 900]

    def test_rejected_producer_id_fails_queued_batches_and_can_be_requested_later(self) -> None:
        manager = TransactionManager(StaticBackoff(100))
        refused = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        error = manager.handle_init_producer_id(refused, None, 500)
        assert isinstance(error, ApiException)
        assert error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert manager.next_request_ms() == 600

    @pytest.mark.parametrize(("response", "failure"), FATAL.values(), ids=FATAL)
    def test_fatal_producer_id_error_is_permanent(
        self, response: InitProducerIdResponse | None, failure: KafkaException | None
    ) -> None:
        manager = TransactionManager(StaticBackoff(100))
        assert manager.handle_init_producer_id(response, failure, 500) is manager.fatal_error
        assert manager.fatal_error is not None


class TestSequences:
    def test_sequences_count_records_by_partition(self, manager: TransactionManager) -> None:
        batches = drained(manager, a_batch(3), a_batch(2), a_batch(5, T1))
        assert [batch.state for batch in batches] == [(7, 0, 0, False), (7, 0, 3, False), (7, 0, 0, False)]

    def test_retried_batch_keeps_its_sequence(self, manager: TransactionManager) -> None:
        batch = a_batch(3)
        drained(manager, batch, batch)
        assert batch.state == (7, 0, 0, False)
        assert manager.sequences[T0].next_sequence == 3

    def test_retry_waits_for_the_previous_batch(self, manager: TransactionManager) -> None:
        first, second = drained(manager, a_batch(), a_batch())
        assert not manager.may_drain(second)
        manager.completed(first, 0)
        assert manager.may_drain(second)


def out_of_order(manager: TransactionManager, batch: ProducerBatch) -> bool:
    return manager.can_retry(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


class TestAGap:
    def test_out_of_order_error_behind_an_unresolved_batch_is_retried(self, manager: TransactionManager) -> None:
        _, second = drained(manager, a_batch(), a_batch())
        assert out_of_order(manager, second)
        manager.resolve_sequences()
        assert manager.producer == (7, 0)

    def test_out_of_order_error_of_the_first_batch_bumps_the_epoch(self, manager: TransactionManager) -> None:
        first, second, third, other = drained(manager, a_batch(3), a_batch(2), a_batch(4), a_batch(1, T1))
        manager.completed(first, 10)
        assert out_of_order(manager, second)
        manager.resolve_sequences()
        assert manager.producer == (7, 1)
        assert (second.state, third.state) == ((7, 1, 0, False), (7, 1, 2, False))
        assert other.state == (7, 0, 0, False), "no gap in its partition"
        assert not manager.may_drain(a_batch(1, T1)), "until its batches in flight complete"
        manager.completed(other, 0)
        (later,) = drained(manager, a_batch(1, T1))
        assert later.state == (7, 1, 0, False)

    def test_out_of_order_error_for_former_sequences_of_a_renumbered_batch(self, manager: TransactionManager) -> None:
        first, second = drained(manager, a_batch(), a_batch())
        out_of_order(manager, first)
        manager.resolve_sequences()
        assert out_of_order(manager, second)
        manager.resolve_sequences()
        assert manager.producer == (7, 1), "bumped once"

    def test_epoch_exhaustion_requests_a_new_producer_id(self) -> None:
        manager = with_id(2**15 - 1)
        (batch,) = drained(manager, a_batch())
        out_of_order(manager, batch)
        manager.resolve_sequences()
        assert manager.next_request_ms() is not None
        assert not manager.may_drain(a_batch())


class TestABatchThatFailed:
    def test_rejected_batch_bumps_the_epoch(self, manager: TransactionManager) -> None:
        (batch,) = drained(manager, a_batch())
        manager.failed(batch, ErrorCode.INVALID_RECORD, is_refused=True)
        manager.resolve_sequences()
        assert manager.producer == (7, 1)
        assert manager.sequences[T0].next_sequence == 0

    def test_possibly_written_batch_blocks_its_partition_until_resolved(self, manager: TransactionManager) -> None:
        first, second = drained(manager, a_batch(3), a_batch(2))
        manager.failed(first, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        manager.resolve_sequences()
        assert not manager.may_drain(a_batch())
        assert manager.may_drain(second), "a retry is allowed"
        assert manager.may_drain(a_batch(1, T1))
        manager.completed(second, 3)
        manager.resolve_sequences()
        assert manager.may_drain(a_batch())
        assert manager.producer == (7, 0), "the second was accepted, so the first was written"

    def test_unwritten_batch_is_detected_by_the_next(self, manager: TransactionManager) -> None:
        first, second = drained(manager, a_batch(3), a_batch(2))
        manager.failed(first, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        assert out_of_order(manager, second)
        manager.resolve_sequences()
        assert second.state == (7, 1, 0, False)

    def test_next_batch_keeps_its_sequence_while_an_attempt_may_arrive(self, manager: TransactionManager) -> None:
        first, second, third = drained(manager, a_batch(3), a_batch(2), a_batch(1))
        manager.failed(first, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        second.may_be_written = True
        assert out_of_order(manager, second)
        manager.resolve_sequences()
        assert second.state == (7, 0, 3, False)
        manager.failed(second, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        assert out_of_order(manager, third)
        manager.resolve_sequences()
        assert third.state == (7, 1, 0, False), "no attempt of this batch can arrive any more"

    def test_last_unresolved_batch_bumps_the_epoch(self, manager: TransactionManager) -> None:
        (batch,) = drained(manager, a_batch())
        manager.failed(batch, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        manager.resolve_sequences()
        assert manager.producer == (7, 1)
        drained(manager, a_batch())

    def test_authorization_error_is_fatal(self, manager: TransactionManager) -> None:
        (batch,) = drained(manager, a_batch())
        manager.failed(batch, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, is_refused=True)
        assert manager.fatal_error is not None

    def test_late_response_of_a_former_epoch_is_ignored(self, manager: TransactionManager) -> None:
        (late,) = drained(manager, a_batch(5))
        manager.failed(late, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        manager.resolve_sequences()
        manager.completed(late, 100)
        assert manager.sequences[T0].is_next(0)


FORGOTTEN = {
    "unknown log start offset: retried": (lambda manager, batch: None, -1, 0),
    "known log start offset: the epoch is bumped": (lambda manager, batch: None, 5, 1),
    "error for the sequences before a bump": (lambda manager, batch: batch.reset_state(batch.state), 5, 0),
}


@pytest.mark.parametrize(("prepare", "log_start_offset", "epoch"), FORGOTTEN.values(), ids=FORGOTTEN)
def test_forgotten_producer_id_restarts_its_sequences(
    prepare: Callable[[TransactionManager, ProducerBatch], None], log_start_offset: int, epoch: int
) -> None:
    manager = with_id()
    (batch,) = drained(manager, a_batch())
    prepare(manager, batch)
    assert manager.can_retry(batch, ErrorCode.UNKNOWN_PRODUCER_ID, log_start_offset)
    manager.resolve_sequences()
    assert manager.producer == ProducerIdAndEpoch(7, epoch)


FORGOTTEN_IN_TRANSACTION = {
    "unknown log start offset: retried": (-1, False, True, 2),
    "error for the sequence before it was renumbered: retried": (11, True, True, 2),
    "acknowledged records are still in the log: fails": (10, False, False, 2),
    "retention has deleted them: restarted": (11, False, True, 0),
}


@pytest.mark.parametrize(
    ("log_start_offset", "is_renumbered", "retried", "sequence"),
    FORGOTTEN_IN_TRANSACTION.values(),
    ids=FORGOTTEN_IN_TRANSACTION,
)
def test_forgotten_producer_id_of_a_transaction(
    log_start_offset: int, is_renumbered: bool, retried: bool, sequence: int
) -> None:
    """The epoch of a transaction is not bumped in the middle of it."""
    manager = Transactions(StaticBackoff(100), "tx", timeout_ms=60_000)
    manager.producer = ProducerIdAndEpoch(7, 0)
    acked, batch = a_batch(2), a_batch()
    manager.drained(acked)
    manager.drained(batch)
    manager.completed(acked, 9)
    if is_renumbered:
        batch.reset_state(batch.state)
    assert manager.can_retry(batch, ErrorCode.UNKNOWN_PRODUCER_ID, log_start_offset) == retried
    assert batch.state[:3] == (7, 0, sequence)


@pytest.mark.parametrize(
    ("code", "expected"), [(ErrorCode.NOT_LEADER_OR_FOLLOWER, True), (ErrorCode.INVALID_RECORD, False)]
)
def test_other_errors_are_returned_unchanged(manager: TransactionManager, code: ErrorCode, expected: bool) -> None:
    (batch,) = drained(manager, a_batch())
    assert manager.can_retry(batch, code, -1) == expected
