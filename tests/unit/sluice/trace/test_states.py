"""The state at each instant."""

import pytest

from sluice import journal_events as events
from sluice.trace.states import States
from tests.support.journals import Journal, ns
from tests.support.trace_findings import Make

ASSIGNED: dict[str, events.Value] = {"assignment": ["t-0", "t-1"]}


def state(make: Make, *, label: str = "") -> list[tuple[float, str, str, str | None]]:
    """Return the changes, with times in milliseconds."""
    journal = Journal()
    make(journal)
    states = States(label)
    handlers = {
        events.Request: states.request,
        events.BrokerState: states.broker_state,
        events.LeaderChange: states.leader_change,
        events.GroupState: states.group_state,
        events.TransactionState: states.transaction_state,
        events.Throttle: states.throttle,
        events.QuotaChange: states.quota_change,
    }
    for event in journal.events:
        handlers[type(event)](event)  # type: ignore[operator]  # of these types
    return [((at_ns - ns(0)) / 1e6, section, key, value) for at_ns, section, key, value in states.end()]


def sync(journal: Journal, at_ms: float, member: str = "m", generation: int = 1) -> None:
    sent: dict[str, events.Value] = {"member_id": member, "generation_id": generation}
    journal.request("SyncGroup", at_ms, at_ms + 1, group_id="g", sent=sent, returned=ASSIGNED)


def leader(journal: Journal) -> None:
    fields = {"topic": "t", "partition": 0, "before": 1, "leader_epoch": 3, "isr": [2, 3], "lost_records": 0}
    journal.of_cluster(events.LeaderChange, 1, broker=2, **fields)
    journal.of_cluster(events.LeaderChange, 2, broker=-1, **{**fields, "isr": []})


def joined(journal: Journal) -> None:
    sync(journal, 1)
    sync(journal, 3, "m2")
    returned: dict[str, events.Value] = {"generation_id": 2, "members": ["m2"]}
    journal.request("JoinGroup", 5, 6, group_id="g", sent={"member_id": "m2"}, returned=returned)


def left(journal: Journal) -> None:
    sync(journal, 1)
    journal.request("LeaveGroup", 5, 6, group_id="g", sent={"members": ["m"]})


def emptied(journal: Journal) -> None:
    sync(journal, 1)
    journal.group_state(5, "Stable", "Empty", members=0)


def died(journal: Journal) -> None:
    journal.group_state(1, "Empty", "Stable")
    journal.group_state(5, "Empty", "Dead")


def heartbeats(journal: Journal) -> None:
    sent: dict[str, events.Value] = {"member_id": "m", "member_epoch": 0}
    returned: dict[str, events.Value] = {"member_id": "m", "member_epoch": 1, **ASSIGNED}
    journal.request("ConsumerGroupHeartbeat", 1, 2, group_id="g", sent=sent, returned=returned)
    journal.request("ConsumerGroupHeartbeat", 3, 4, group_id="g", sent={"member_id": "m", "member_epoch": 1})
    journal.request("ConsumerGroupHeartbeat", 5, 6, group_id="g", sent={"member_id": "m", "member_epoch": -1})


def read(offset: int, high_watermark: int, stable: int) -> events.TopicPartition:
    fetched = events.FetchedRecords(bytes=0, high_watermark=high_watermark, last_stable_offset=stable)
    return events.TopicPartition(topic="t", partition=0, offset=offset, fetched=fetched)


def fetches(journal: Journal) -> None:
    for at_ms, partition in enumerate((read(0, 5, 4), read(1, 5, 4), read(1, 5, -1), read(1, -1, -1)), 1):
        journal.request("Fetch", at_ms, at_ms + 0.5, partitions=[partition])


def commits(journal: Journal) -> None:
    place = events.TopicPartition(topic="t", partition=0, offset=7)
    journal.request("OffsetCommit", 1, 2, group_id="g", partitions=[place])
    journal.request("OffsetCommit", 3, 4, group_id="g", partitions=[place], errors=[25])
    journal.request("OffsetCommit", 5, 6, group_id="g", partitions=[events.TopicPartition(topic="t", partition=1)])


def throttles(journal: Journal) -> None:
    journal.throttle(1, 10)
    journal.throttle(5, 20)
    journal.throttle(50, 10)


def transaction(journal: Journal) -> None:
    journal.transaction_state(1, "Empty", "Ongoing")
    journal.transaction_state(2, "PrepareCommit", "CompleteCommit")


def quotas(journal: Journal) -> None:
    journal.of_cluster(events.QuotaChange, 1, entity="client-id=a", quotas={"producer_byte_rate": 1e6})
    journal.of_cluster(events.QuotaChange, 2, entity="client-id=a", quotas={})


def brokers(journal: Journal) -> None:
    for at_ms in (1, 2):
        journal.of_cluster(events.BrokerState, at_ms, broker=1, state="stopped")


KEY = "app throttled by Produce"
ASSIGNMENT = "t-0, t-1 (generation 1)"
CASES = {
    "leaders": (
        leader,
        [(1, "leaders", "t-0", "broker 2, epoch 3, ISR 2, 3"), (2, "leaders", "t-0", "none, epoch 3, ISR empty")],
    ),
    "members that are left out": (
        joined,
        [(2, "members", "g m", ASSIGNMENT), (4, "members", "g m2", ASSIGNMENT), (6, "members", "g m", None)],
    ),
    "members that leave": (left, [(2, "members", "g m", ASSIGNMENT), (6, "members", "g m", None)]),
    "an empty group": (
        emptied,
        [
            (2, "members", "g m", ASSIGNMENT),
            (5, "groups", "g", "Empty, generation 1, 0 members"),
            (5, "members", "g m", None),
        ],
    ),
    "a dead group": (died, [(1, "groups", "g", "Stable, generation 1, 1 member"), (5, "groups", "g", None)]),
    "members of KIP-848": (heartbeats, [(2, "members", "g m", "t-0, t-1 (epoch 1)"), (6, "members", "g m", None)]),
    "offsets, once per value": (
        fetches,
        [
            (1.5, "offsets", "t-0", "high watermark 5, last stable offset 4"),
            (3.5, "offsets", "t-0", "high watermark 5"),
        ],
    ),
    "commits that succeeded": (commits, [(2, "committed", "g t-0", "7")]),
    "throttles until their end": (
        throttles,
        [
            (1, "quotas", KEY, "for 10 ms"),
            (5, "quotas", KEY, "for 20 ms"),
            (25, "quotas", KEY, None),
            (50, "quotas", KEY, "for 10 ms"),
            (60, "quotas", KEY, None),
        ],
    ),
    "open transactions": (
        transaction,
        [(1, "transactions", "tx", "Ongoing, producer 7 epoch 0"), (2, "transactions", "tx", None)],
    ),
    "quotas": (
        quotas,
        [(1, "quotas", "client-id=a", "producer_byte_rate=1000000"), (2, "quotas", "client-id=a", None)],
    ),
    "brokers, once per value": (brokers, [(1, "brokers", "1", "stopped")]),
}


@pytest.mark.parametrize(("make", "changes"), CASES.values(), ids=CASES)
def test_changes(make: Make, changes: list[tuple[float, str, str, str | None]]) -> None:
    assert state(make) == changes


def test_the_label_of_a_cluster_precedes_keys() -> None:
    assert [key for _, _, key, _ in state(brokers, label="cluster 2")] == ["cluster 2: 1"]
