"""The states of a transactional id and their valid transitions."""

import pytest
from msgspec.structs import replace

from sluice.broker.coordinator.transaction import metadata
from sluice.broker.metadata.topic import TopicPartition

S = metadata.TransactionState
START = metadata.TransactionMetadata("tx", 7, 60_000, 1000)


def test_state_numbers_and_names_equal_kafkas() -> None:
    assert {state.label: int(state) for state in S} == {
        "Empty": 0,
        "Ongoing": 1,
        "PrepareCommit": 2,
        "PrepareAbort": 3,
        "CompleteCommit": 4,
        "CompleteAbort": 5,
        "Dead": 6,
        "PrepareEpochFence": 7,
    }


PREVIOUS_STATES = [
    (S.EMPTY, {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    (S.ONGOING, {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    (S.PREPARE_COMMIT, {S.ONGOING}),
    (S.PREPARE_ABORT, {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    (S.COMPLETE_COMMIT, {S.PREPARE_COMMIT}),
    (S.COMPLETE_ABORT, {S.PREPARE_ABORT}),
    (S.DEAD, {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
]


@pytest.mark.parametrize(("state", "previous"), PREVIOUS_STATES)
def test_valid_previous_states_equal_kafkas(
    state: metadata.TransactionState, previous: set[metadata.TransactionState]
) -> None:
    assert metadata.VALID_PREVIOUS_STATES[state] == previous


@pytest.mark.parametrize(
    "state", [state for state in S if state not in metadata.VALID_PREVIOUS_STATES[S.PREPARE_COMMIT]]
)
def test_only_an_ongoing_transaction_can_commit(state: metadata.TransactionState) -> None:
    with pytest.raises(AssertionError):
        metadata.prepared(replace(START, state=state, producer_epoch=0), S.PREPARE_COMMIT, 2, -1, 2000)


def test_start_time_is_kept_until_the_next_transaction_starts() -> None:
    first, second = frozenset({TopicPartition("t", 0)}), frozenset({TopicPartition("t", 1)})
    tx = metadata.with_next_epoch(START, 30_000, None, 2000)
    assert isinstance(tx, metadata.TransactionMetadata)
    assert (tx.producer_epoch, tx.start_ms, tx.timeout_ms) == (0, -1, 30_000)
    tx = metadata.with_partitions(tx, first, 0, 3000)
    tx = metadata.with_partitions(tx, second, 0, 4000)
    assert (tx.start_ms, tx.last_update_ms, tx.partitions) == (3000, 4000, first | second)
    tx = metadata.completed(metadata.prepared(tx, S.PREPARE_COMMIT, 0, -1, 5000), 6000)
    assert (tx.start_ms, tx.last_update_ms, tx.partitions, tx.state) == (3000, 6000, frozenset(), S.COMPLETE_COMMIT)
    assert metadata.with_partitions(tx, first, 0, 7000).start_ms == 7000


def test_abort_without_a_transaction_sets_the_start_time() -> None:
    tx = metadata.with_next_epoch(START, 30_000, None, 2000)
    assert isinstance(tx, metadata.TransactionMetadata)
    assert metadata.prepared(tx, S.PREPARE_ABORT, 2, -1, 5000).start_ms == 5000
