from collections.abc import Callable

import pytest

from sluice.client.backoff import StaticBackoff
from sluice.client.errors import ApiException, KafkaException, UnsupportedVersionException, exception_of
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer.batch import Codec, ProducerBatch, RecordMetadata
from sluice.client.producer.sequences import ProducerIdAndEpoch
from sluice.client.producer.transaction_manager import TransactionManager
from sluice.protocol.apis.init_producer_id import InitProducerIdResponse
from sluice.protocol.errors import ErrorCode

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Nobody:
    def done(self) -> bool:
        return True

    def set_result(self, result: RecordMetadata, /) -> None: ...

    def set_exception(self, exception: KafkaException, /) -> None: ...


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


def drained(manager: TransactionManager, *batches: ProducerBatch) -> None:
    for batch in batches:
        assert manager.may_drain(batch)
        manager.drained(batch)


class TestTheId:
    def test_is_asked_for_before_anything_is_drained(self) -> None:
        manager = TransactionManager(StaticBackoff(100))
        assert not manager.may_drain(a_batch())
        asked_at_ms = manager.next_request_ms()
        assert asked_at_ms is not None
        assert asked_at_ms < 0
        assert manager.request().transactional_id is None

    def test_is_asked_for_once(self) -> None:
        manager = with_id()
        assert manager.next_request_ms() is None
        assert manager.may_drain(a_batch())

    @pytest.mark.parametrize(
        ("response", "failure"),
        [
            pytest.param(None, exception_of(ErrorCode.NETWORK_EXCEPTION), id="it was lost"),
            pytest.param(InitProducerIdResponse(error_code=14), None, id="a retriable error"),
        ],
    )
    def test_is_asked_for_again_after_a_backoff(
        self, response: InitProducerIdResponse | None, failure: KafkaException | None
    ) -> None:
        manager = TransactionManager(StaticBackoff(100))
        assert manager.handle_init_producer_id(response, failure, 500) is None
        assert manager.next_request_ms() == 600

    def test_that_is_refused_fails_what_waits_and_may_be_given_later(self) -> None:
        manager = TransactionManager(StaticBackoff(100))
        refused = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        error = manager.handle_init_producer_id(refused, None, 500)
        assert isinstance(error, ApiException)
        assert error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert manager.next_request_ms() == 600

    @pytest.mark.parametrize(
        ("response", "failure"),
        [
            pytest.param(InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST), None, id="an error"),
            pytest.param(None, UnsupportedVersionException("no"), id="no such API"),
        ],
    )
    def test_that_cannot_be_had_is_the_end(
        self, response: InitProducerIdResponse | None, failure: KafkaException | None
    ) -> None:
        manager = TransactionManager(StaticBackoff(100))
        assert manager.handle_init_producer_id(response, failure, 500) is manager.fatal_error
        assert manager.fatal_error is not None


class TestSequences:
    def test_count_records_by_partition(self) -> None:
        manager = with_id()
        batches = [a_batch(3), a_batch(2), a_batch(5, T1)]
        drained(manager, *batches)
        assert [batch.state for batch in batches] == [(7, 0, 0, False), (7, 0, 3, False), (7, 0, 0, False)]

    def test_stay_with_a_batch_that_is_sent_again(self) -> None:
        manager = with_id()
        batch = a_batch(3)
        drained(manager, batch, batch)
        assert batch.state == (7, 0, 0, False)
        assert manager.sequences.next_sequence(T0) == 3

    def test_let_a_retry_wait_for_the_one_before_it(self) -> None:
        manager = with_id()
        first, second = a_batch(), a_batch()
        drained(manager, first, second)
        assert not manager.may_drain(second)
        manager.completed(first, 0)
        assert manager.may_drain(second)


def out_of_order(manager: TransactionManager, batch: ProducerBatch) -> bool:
    return manager.can_retry(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


class TestAGap:
    def test_before_the_batch_is_waited_for(self) -> None:
        manager = with_id()
        first, second = a_batch(), a_batch()
        drained(manager, first, second)
        assert out_of_order(manager, second)
        manager.resolve_sequences()
        assert manager.producer == (7, 0)

    def test_at_the_batch_bumps_the_epoch_and_renumbers(self) -> None:
        manager = with_id()
        first, second, third, other = a_batch(3), a_batch(2), a_batch(4), a_batch(1, T1)
        drained(manager, first, second, third, other)
        manager.completed(first, 10)
        assert out_of_order(manager, second)
        manager.resolve_sequences()
        assert manager.producer == (7, 1)
        assert (second.state, third.state) == ((7, 1, 0, False), (7, 1, 2, False))
        assert other.state == (7, 0, 0, False), "its partition has no gap"
        assert not manager.may_drain(a_batch(1, T1)), "until what is on its way there has ended"
        manager.completed(other, 0)
        later = a_batch(1, T1)
        drained(manager, later)
        assert later.state == (7, 1, 0, False)

    def test_of_a_batch_that_was_renumbered_on_its_way_is_of_its_old_numbers(self) -> None:
        manager = with_id()
        first, second = a_batch(), a_batch()
        drained(manager, first, second)
        out_of_order(manager, first)
        manager.resolve_sequences()
        assert out_of_order(manager, second)
        manager.resolve_sequences()
        assert manager.producer == (7, 1), "bumped once"

    def test_past_the_last_epoch_asks_for_a_new_id(self) -> None:
        manager = with_id(2**15 - 1)
        batch = a_batch()
        drained(manager, batch)
        out_of_order(manager, batch)
        manager.resolve_sequences()
        assert manager.next_request_ms() is not None
        assert not manager.may_drain(a_batch())


class TestABatchThatFailed:
    def test_after_it_was_refused_bumps_the_epoch(self) -> None:
        manager = with_id()
        batch = a_batch()
        drained(manager, batch)
        manager.failed(batch, ErrorCode.INVALID_RECORD, is_refused=True)
        manager.resolve_sequences()
        assert manager.producer == (7, 1)
        assert manager.sequences.next_sequence(T0) == 0

    def test_and_may_have_been_written_holds_its_partition_until_that_is_known(self) -> None:
        manager = with_id()
        first, second = a_batch(3), a_batch(2)
        drained(manager, first, second)
        manager.failed(first, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        manager.resolve_sequences()
        assert not manager.may_drain(a_batch())
        assert manager.may_drain(second), "a retry may go on"
        assert manager.may_drain(a_batch(1, T1))
        manager.completed(second, 3)
        manager.resolve_sequences()
        assert manager.may_drain(a_batch())
        assert manager.producer == (7, 0), "the second was taken, so the first had been written"

    def test_and_was_not_written_is_noticed_by_the_next(self) -> None:
        manager = with_id()
        first, second = a_batch(3), a_batch(2)
        drained(manager, first, second)
        manager.failed(first, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        assert out_of_order(manager, second)
        manager.resolve_sequences()
        assert second.state == (7, 1, 0, False)

    def test_leaves_the_next_its_numbers_where_an_attempt_of_that_may_still_arrive(self) -> None:
        manager = with_id()
        first, second, third = a_batch(3), a_batch(2), a_batch(1)
        drained(manager, first, second, third)
        manager.failed(first, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        second.may_be_written = True
        assert out_of_order(manager, second)
        manager.resolve_sequences()
        assert second.state == (7, 0, 3, False)
        manager.failed(second, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        assert out_of_order(manager, third)
        manager.resolve_sequences()
        assert third.state == (7, 1, 0, False), "of this one nothing can arrive any more"

    def test_and_was_the_last_bumps_the_epoch(self) -> None:
        manager = with_id()
        batch = a_batch()
        drained(manager, batch)
        manager.failed(batch, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        manager.resolve_sequences()
        assert manager.producer == (7, 1)
        drained(manager, a_batch())

    def test_for_want_of_rights_is_the_end(self) -> None:
        manager = with_id()
        batch = a_batch()
        drained(manager, batch)
        manager.failed(batch, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, is_refused=True)
        assert manager.fatal_error is not None

    def test_is_not_counted_under_a_later_epoch_when_its_answer_comes_late(self) -> None:
        manager = with_id()
        late = a_batch(5)
        drained(manager, late)
        manager.failed(late, ErrorCode.REQUEST_TIMED_OUT, is_refused=False)
        manager.resolve_sequences()
        manager.completed(late, 100)
        assert manager.sequences.is_next(T0, 0)


@pytest.mark.parametrize(
    ("prepare", "log_start_offset", "epoch"),
    [
        pytest.param(lambda manager, batch: None, -1, 0, id="where its start is not known it is asked again"),
        pytest.param(lambda manager, batch: None, 5, 1, id="where it is the epoch is bumped"),
        pytest.param(
            lambda manager, batch: batch.reset_state(batch.state), 5, 0, id="it was about the numbers before a bump"
        ),
    ],
)
def test_a_log_that_has_forgotten_the_producer_is_told_of_it_again(
    prepare: Callable[[TransactionManager, ProducerBatch], None], log_start_offset: int, epoch: int
) -> None:
    manager = with_id()
    batch = a_batch()
    drained(manager, batch)
    prepare(manager, batch)
    assert manager.can_retry(batch, ErrorCode.UNKNOWN_PRODUCER_ID, log_start_offset)
    manager.resolve_sequences()
    assert manager.producer == ProducerIdAndEpoch(7, epoch)


@pytest.mark.parametrize(
    ("code", "expected"),
    [(ErrorCode.NOT_LEADER_OR_FOLLOWER, True), (ErrorCode.INVALID_RECORD, False)],
)
def test_other_errors_are_what_they_are(code: ErrorCode, expected: bool) -> None:
    manager = with_id()
    batch = a_batch()
    drained(manager, batch)
    assert manager.can_retry(batch, code, -1) == expected
