"""The states of a transactional id, and the table of how they follow each other."""

import pytest
from msgspec.structs import replace

from sluice.broker.coordinator.transaction.metadata import (
    VALID_PREVIOUS_STATES,
    TransactionMetadata,
    TransactionState,
    completed,
    prepared,
    with_next_epoch,
    with_partitions,
)
from sluice.broker.metadata.topic import TopicPartition

S = TransactionState
START = TransactionMetadata("tx", 7, 60_000, 1000)


def test_numbers_and_names_are_kafkas() -> None:
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


@pytest.mark.parametrize(
    ("state", "previous"),
    [
        (S.EMPTY, {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
        (S.ONGOING, {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
        (S.PREPARE_COMMIT, {S.ONGOING}),
        (S.PREPARE_ABORT, {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
        (S.COMPLETE_COMMIT, {S.PREPARE_COMMIT}),
        (S.COMPLETE_ABORT, {S.PREPARE_ABORT}),
        (S.DEAD, {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    ],
)
def test_which_state_may_follow_which(state: TransactionState, previous: set[TransactionState]) -> None:
    assert VALID_PREVIOUS_STATES[state] == previous


@pytest.mark.parametrize("state", [state for state in S if state not in VALID_PREVIOUS_STATES[S.PREPARE_COMMIT]])
def test_nothing_but_an_open_transaction_can_commit(state: TransactionState) -> None:
    with pytest.raises(AssertionError):
        prepared(replace(START, state=state, producer_epoch=0), S.PREPARE_COMMIT, 2, -1, 2000)


def test_a_transaction_keeps_its_start_until_the_next_begins() -> None:
    first, second = frozenset({TopicPartition("t", 0)}), frozenset({TopicPartition("t", 1)})
    one = with_next_epoch(START, 30_000, None, 2000)
    assert isinstance(one, TransactionMetadata)
    assert (one.producer_epoch, one.start_ms, one.timeout_ms) == (0, -1, 30_000)
    one = with_partitions(one, first, 0, 3000)
    one = with_partitions(one, second, 0, 4000)
    assert (one.start_ms, one.last_update_ms, one.partitions) == (3000, 4000, first | second)
    one = completed(prepared(one, S.PREPARE_COMMIT, 0, -1, 5000), 6000)
    assert (one.start_ms, one.last_update_ms, one.partitions, one.state) == (3000, 6000, frozenset(), S.COMPLETE_COMMIT)
    assert with_partitions(one, first, 0, 7000).start_ms == 7000


def test_an_abort_of_what_never_began_has_a_start() -> None:
    one = with_next_epoch(START, 30_000, None, 2000)
    assert isinstance(one, TransactionMetadata)
    assert prepared(one, S.PREPARE_ABORT, 2, -1, 5000).start_ms == 5000
