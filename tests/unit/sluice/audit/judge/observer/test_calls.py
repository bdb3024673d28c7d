"""Fact 10 about clients: a repeated request without a failure is not a retry."""

import pytest

from sluice.audit.judge.model.attempts import Kind, Outcome
from sluice.audit.judge.observer.calls import call_sequences
from sluice.journal_events import TopicPartition
from tests.support.journals import Journal


@pytest.mark.parametrize(
    "api",
    ["Heartbeat", "ConsumerGroupHeartbeat", "Fetch", "FindCoordinator", "Metadata"],
    ids=["heartbeats", "heartbeats of KIP-848", "long polls", "periodic lookups", "metadata by a minimum age"],
)
def test_repeated_success_is_no_retry(journal: Journal, api: str) -> None:
    for at_ms in range(0, 3000, 300):
        journal.request(api, at_ms, at_ms + 200, version=0, group_id="g")
    assert call_sequences(journal.events) == []


def test_retries_follow_a_failure_until_a_success(journal: Journal) -> None:
    for at_ms, errors in ((0, [15]), (100, [15]), (300, []), (900, []), (1500, [15]), (1600, [])):
        journal.request("FindCoordinator", at_ms, at_ms + 1, errors=errors, group_id="g")
    found = call_sequences(journal.events)
    assert [sequence.key for sequence in found] == ["app FindCoordinator g", "app FindCoordinator g #2"]
    assert [[round(gap) for gap in sequence.gaps_ms()] for sequence in found] == [[99, 199], [99]]
    assert [sequence.attempts[-1].outcome for sequence in found] == [Outcome.SUCCEEDED] * 2


def test_groups_and_topics_have_separate_calls(journal: Journal) -> None:
    for number, name in enumerate(("a", "b")):
        topic = TopicPartition(topic=name, partition=-1)
        journal.request("Metadata", number, number + 0.5, partitions=[topic], errors=[3])
        journal.request("JoinGroup", number, number + 0.5, group_id=name, errors=[14])
    found = call_sequences(journal.events)
    assert sorted(sequence.key for sequence in found) == [
        "app JoinGroup a",
        "app JoinGroup b",
        "app Metadata a",
        "app Metadata b",
    ]


def test_lost_connection_is_a_failure(journal: Journal) -> None:
    journal.request("Metadata", 0, ended_ms=5)
    journal.request("Metadata", 105, 106, connection=2)
    (sequence,) = call_sequences(journal.events)
    assert (sequence.kind, [attempt.outcome for attempt in sequence.attempts]) == (
        Kind.METADATA,
        [Outcome.DISCONNECTED, Outcome.SUCCEEDED],
    )
    assert sequence.gaps_ms() == [100]


def test_join_call_is_join_group_and_the_following_sync_group(journal: Journal) -> None:
    for api, at_ms, errors in (
        ("JoinGroup", 0, [14]),
        ("JoinGroup", 100, []),
        ("SyncGroup", 102, [14]),
        ("JoinGroup", 203, []),
        ("SyncGroup", 204, []),
    ):
        journal.request(api, at_ms, at_ms + 1, errors=errors, group_id="g")
    (sequence,) = call_sequences(journal.events)
    assert (sequence.kind, sequence.key) == (Kind.JOIN_GROUP, "app JoinGroup g")
    assert sequence.gaps_ms() == [99, 100]
    assert [attempt.outcome for attempt in sequence.attempts] == [Outcome.ERROR, Outcome.ERROR, Outcome.SUCCEEDED]


def test_sync_group_alone_is_retried_separately(journal: Journal) -> None:
    journal.request("JoinGroup", 0, 1, group_id="g")
    journal.request("SyncGroup", 2, 3, errors=[14], group_id="g")
    journal.request("SyncGroup", 103, 104, group_id="g")
    (sequence,) = call_sequences(journal.events)
    assert sequence.gaps_ms() == [100]


def test_classic_groups_are_described_by_the_second_api(journal: Journal) -> None:
    journal.request("ConsumerGroupDescribe", 0, 1, group_id="g", errors=[69])
    journal.request("DescribeGroups", 101, 102, group_id="g", errors=[14])
    journal.request("DescribeGroups", 302, 303, group_id="g")
    (sequence,) = call_sequences(journal.events)
    assert (sequence.kind, sequence.gaps_ms()) == (Kind.ADMIN, [100, 200])


def test_describing_by_the_second_api_at_once_is_one_attempt(journal: Journal) -> None:
    for at_ms, errors in ((0, [14]), (100, [])):
        journal.request("ConsumerGroupDescribe", at_ms, at_ms + 1, group_id="g", errors=[69])
        journal.request("DescribeGroups", at_ms + 2, at_ms + 3, group_id="g", errors=errors)
    (sequence,) = call_sequences(journal.events)
    assert (sequence.gaps_ms(), sequence.attempts[-1].outcome) == ([97], Outcome.SUCCEEDED)
