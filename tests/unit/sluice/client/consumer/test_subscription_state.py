"""Subscription state: partition states and position validation."""

import re
from collections.abc import Callable

import pytest

from sluice.client.backoff import StaticBackoff
from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.consumer.offset_reset import EARLIEST, LATEST, NONE, OffsetReset
from sluice.client.consumer.subscription_state import (
    FetchPosition,
    FetchState,
    NoSubscriptionError,
    SubscriptionState,
    Truncation,
)
from sluice.client.metadata.cluster import LeaderAndEpoch, Node, TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
OLD, NEW = LeaderAndEpoch(Node(1, "a", 1), 4), LeaderAndEpoch(Node(2, "b", 2), 5)


def assigned(reset: OffsetReset = EARLIEST) -> SubscriptionState:
    subscriptions = SubscriptionState(reset)
    subscriptions.assign([P0])
    return subscriptions


EXCLUSIVE = {
    "topics, then partitions": (lambda s: s.subscribe(["t"]), lambda s: s.assign([P0])),
    "partitions, then topics": (lambda s: s.assign([P0]), lambda s: s.subscribe(["t"])),
}


@pytest.mark.parametrize(("first", "then"), EXCLUSIVE.values(), ids=EXCLUSIVE)
def test_topic_and_partition_subscriptions_exclude_each_other(
    first: Callable[[SubscriptionState], None], then: Callable[[SubscriptionState], None]
) -> None:
    subscriptions = SubscriptionState(EARLIEST)
    first(subscriptions)
    with pytest.raises(NoSubscriptionError, match="unsubscribe first"):
        then(subscriptions)
    subscriptions.unsubscribe()
    then(subscriptions)


def test_topics_that_no_longer_match_are_left_out_of_the_groups_topics() -> None:
    subscriptions = SubscriptionState(EARLIEST)
    subscriptions.subscribe_pattern(re.compile("a.*"))
    subscriptions.matched(["a1", "a2", "b"])
    assert subscriptions.metadata_topics == {"a1", "a2"}
    subscriptions.group_subscribes(["a1", "a2"])
    subscriptions.matched(["a1", "a3"])
    assert subscriptions.metadata_topics == {"a1", "a3"}


def test_retained_partition_keeps_its_position() -> None:
    subscriptions = assigned()
    subscriptions.state_of(P0).seek(FetchPosition(7, -1, OLD))
    subscriptions.assign([P1, P0])
    assert subscriptions.state_of(P0).position == FetchPosition(7, -1, OLD)
    assert subscriptions.state_of(P1).state is FetchState.INITIALIZING


LEADER_CHANGES = {
    "a new leader starts validation": (4, True, FetchState.AWAIT_VALIDATION),
    "no validation without an epoch": (-1, True, FetchState.FETCHING),
    "no validation on an old broker": (4, False, FetchState.FETCHING),
}


@pytest.mark.parametrize(("epoch", "can_validate", "state"), LEADER_CHANGES.values(), ids=LEADER_CHANGES)
def test_leader_change(epoch: int, can_validate: bool, state: FetchState) -> None:
    subscriptions = assigned()
    subscriptions.state_of(P0).seek(FetchPosition(7, epoch, OLD))
    subscriptions.leader_changed(P0, NEW, can_validate=can_validate)
    found = subscriptions.state_of(P0)
    assert (found.state, found.position) == (state, FetchPosition(7, epoch, NEW))


POSITION = FetchPosition(7, 4, NEW)


VALIDATED = {
    "a longer log keeps the position": (EARLIEST, (9, 4), None, FetchState.FETCHING, POSITION),
    "a log ending at the position keeps it": (EARLIEST, (7, 4), None, FetchState.FETCHING, POSITION),
    "a shorter log moves it back": (EARLIEST, (5, 3), None, FetchState.FETCHING, FetchPosition(5, 3, NEW)),
    "an undefined epoch resets it": (EARLIEST, (-1, -1), None, FetchState.AWAIT_RESET, None),
    "without a policy, truncation reports the offset": (
        NONE,
        (5, 3),
        Truncation(P0, POSITION, OffsetAndMetadata(5, "", 3)),
        FetchState.AWAIT_VALIDATION,
        POSITION,
    ),
    "or reports no offset if it is unknown": (
        NONE,
        (-1, -1),
        Truncation(P0, POSITION, None),
        FetchState.AWAIT_VALIDATION,
        POSITION,
    ),
}


@pytest.mark.parametrize(("reset", "end_offset", "truncation", "state", "position"), VALIDATED.values(), ids=VALIDATED)
def test_validation_result(
    reset: OffsetReset,
    end_offset: tuple[int, int],
    truncation: Truncation | None,
    state: FetchState,
    position: FetchPosition | None,
) -> None:
    subscriptions = assigned(reset)
    subscriptions.state_of(P0).seek_unvalidated(POSITION)
    assert subscriptions.validated(P0, POSITION, *end_offset) == truncation
    found = subscriptions.state_of(P0)
    assert (found.state, found.position) == (state, position)


def test_response_to_a_request_before_a_seek_is_dropped() -> None:
    subscriptions = assigned()
    state = subscriptions.state_of(P0)
    state.seek_unvalidated(POSITION)
    state.seek(FetchPosition(100, -1, NEW))
    subscriptions.validated(P0, POSITION, 5, 3)
    state.reset_by(LATEST)
    assert not subscriptions.reset_to(P0, EARLIEST, FetchPosition(0, -1, NEW))
    assert subscriptions.reset_to(P0, LATEST, FetchPosition(9, -1, NEW))
    assert state.position == FetchPosition(9, -1, NEW)


def test_failed_partition_backs_off() -> None:
    subscriptions = assigned()
    subscriptions.state_of(P0).reset_by(EARLIEST)
    subscriptions.failed([P0], 1000, StaticBackoff(100))
    assert subscriptions.in_state(FetchState.AWAIT_RESET, 1099) == []
    assert subscriptions.next_retry_ms(FetchState.AWAIT_RESET, 1000) == 1100
    assert subscriptions.in_state(FetchState.AWAIT_RESET, 1100) == [P0]
