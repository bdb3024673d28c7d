"""Bars and marks of each kind of event."""

from typing import Any, get_args

import msgspec
import pytest

from sluice import journal_events as events
from sluice.trace.lanes import LaneTable
from sluice.trace.timeline import Timeline
from tests.support.journals import Journal, ns
from tests.support.trace_findings import Make

PRODUCE: dict[str, Any] = {"api": "Produce", "version": 9, "correlation_id": 1}
RULE = msgspec.json.encode({"action": "close", "api": "Produce"}).decode()


def timeline(make: Make, until_ms: float = 100) -> tuple[Timeline, LaneTable]:
    journal = Journal()
    make(journal)
    table = LaneTable()
    found = Timeline(table, 0, "", ns(0))
    for event in journal.events:
        found.add(event)
    found.end(ns(until_ms))
    return found, table


def bars(make: Make) -> list[tuple[str, float, float, str, str, str]]:
    """Return lane, start and end in milliseconds, text, outcome and tone."""
    found, table = timeline(make)
    return [
        (table.lanes[bar.lane].id, (bar.start_ns - ns(0)) / 1e6, (bar.end_ns - ns(0)) / 1e6, bar.text, *_outcome(bar))
        for bar in found.bars
    ]


def _outcome(bar: Any) -> tuple[str, str]:
    return bar.outcome.name, bar.outcome.tone


def marks(make: Make) -> list[tuple[str, str, str]]:
    """Return lane, glyph and tone."""
    found, table = timeline(make)
    return [(table.lanes[mark.lane].id, mark.glyph, mark.tone) for mark in found.marks]


def change(journal: Journal, at_ms: float, before: int, after: int, *, lost: int = 0, topic: str = "t") -> None:
    fields = {"topic": topic, "partition": 0, "before": before, "leader_epoch": 2, "isr": [2], "lost_records": lost}
    journal.of_cluster(events.LeaderChange, at_ms, broker=after, **fields)


def stopped_leader(*states: str) -> Make:
    def make(journal: Journal) -> None:
        change(journal, 5, 2, 1)
        for number, state in enumerate(states, 1):
            journal.of_cluster(events.BrokerState, 10 * number, broker=1, state=state)

    return make


LEADER_STOPPED = [
    (["stopped"], [(0, 5, "broker 2"), (5, 10, "broker 1, epoch 2, ISR 2"), (10, 100, "no leader: broker 1 stopped")]),
    (
        ["stopped", "running"],
        [
            *((0, 5, "broker 2"), (5, 10, "broker 1, epoch 2, ISR 2"), (10, 20, "no leader: broker 1 stopped")),
            (20, 100, "broker 1"),
        ],
    ),
    (["isolated", "running"], [(0, 5, "broker 2"), (5, 100, "broker 1, epoch 2, ISR 2")]),
]


@pytest.mark.parametrize(("states", "expected"), LEADER_STOPPED, ids=[" ".join(states) for states, _ in LEADER_STOPPED])
def test_a_leader_that_stops_leads_no_longer(states: list[str], expected: list[tuple[float, float, str]]) -> None:
    found = [bar for bar in bars(stopped_leader(*states)) if bar[0] == "partition-t-0"]
    assert [(start, end, text) for _, start, end, text, *_ in found] == expected


def rule(journal: Journal) -> None:
    journal.of_cluster(events.RuleChange, 1, rule_id="r", change="added", rule=RULE)
    journal.of_client(events.Fault, 2, rule_id="r", action="close", **PRODUCE)
    journal.of_client(events.Fault, 3, connection=-1, rule_id="r", action="close", **PRODUCE)
    journal.of_cluster(events.RuleChange, 4, rule_id="r", change="ended", rule="")


def limited(limit: dict[str, object]) -> Make:
    def make(journal: Journal) -> None:
        text = msgspec.json.encode({"action": "close", **limit}).decode()
        journal.of_cluster(events.RuleChange, 1, rule_id="r", change="added", rule=text)
        for at_ms in (2, 3):
            journal.of_client(events.Fault, at_ms, rule_id="r", action="close", **PRODUCE)

    return make


def leader(journal: Journal) -> None:
    change(journal, 10, 1, -1)
    change(journal, 20, -1, 2, lost=3)
    change(journal, 30, 2, 3, topic="__consumer_offsets")


def produced(journal: Journal) -> None:
    journal.batch(5, 6)


def groups(journal: Journal) -> None:
    journal.group_state(10, "Empty", "PreparingRebalance")
    journal.group_state(20, "PreparingRebalance", "Stable")


def commit(journal: Journal) -> None:
    place = events.TopicPartition(topic="t", partition=0, offset=7)
    journal.request("OffsetCommit", 1, 2, group_id="g", partitions=[place])
    journal.request("OffsetCommit", 3, 4, group_id="g", partitions=[place], errors=[25])


PRODUCE_BAR = ("connection-1", 5, 6, "Produce t-0 (v9)", "ok", "ok")
BARS = {
    "a request": (produced, [PRODUCE_BAR, ("partition-t-0", 5, 100, "broker 1", "leader", "state")]),
    "a rule": (rule, [("rule-r", 1, 4, "close: api=Produce", "active", "state")]),
    "a rule after its last hit": (limited({"times": 2}), [("rule-r", 1, 3, "close: times=2", "active", "state")]),
    "a rule with hits left": (
        limited({"on": [1, 3, 5]}),
        [("rule-r", 1, 100, "close: on=[1, 3, 5]", "active", "state")],
    ),
    "a leader": (
        leader,
        [
            ("partition-t-0", 0, 10, "broker 1", "leader", "state"),
            ("partition-t-0", 10, 20, "none, epoch 2, ISR 2", "no leader", "lost"),
            ("partition-t-0", 20, 100, "broker 2, epoch 2, ISR 2", "leader", "state"),
        ],
    ),
    "a group": (
        groups,
        [
            ("group-g", 10, 20, "PreparingRebalance, generation 1, 1 member", "PreparingRebalance", "throttled"),
            ("group-g", 20, 100, "Stable, generation 1, 1 member", "Stable", "state"),
        ],
    ),
    "a transaction": (
        lambda journal: journal.transaction_state(10, "Empty", "Ongoing"),
        [("transaction-tx", 10, 100, "Ongoing, producer 7 epoch 0", "Ongoing", "state")],
    ),
    "a broker": (
        lambda journal: journal.of_cluster(events.BrokerState, 10, broker=1, state="stopped"),
        [("broker-1", 0, 10, "running", "running", "state"), ("broker-1", 10, 100, "stopped", "stopped", "lost")],
    ),
}


@pytest.mark.parametrize(("make", "expected"), BARS.values(), ids=BARS)
def test_bars(make: Make, expected: list[tuple[str, float, float, str, str, str]]) -> None:
    assert bars(make) == expected


def of_client(kind: Any, **fields: Any) -> Make:
    return lambda journal: journal.of_client(kind, 1, **fields)


def of_cluster(kind: Any, **fields: Any) -> Make:
    return lambda journal: journal.of_cluster(kind, 1, **fields)


STEP = {"run": "1", "scenario": "s", "step": "", "what": "stop"}
LOCK = {"group_id": "g", "member_id": "m", "topic": "t", "partition": 0, "first_offset": 1, "last_offset": 2}
MARKS = {
    "opened and closed": (
        lambda journal: journal.connection(1, 2, by_client=True),
        [("connection-1", "▸", "neutral"), ("connection-1", "◂", "neutral")],
    ),
    "closed by the broker": (
        lambda journal: journal.connection(1, 2),
        [("connection-1", "▸", "neutral"), ("connection-1", "◂", "lost")],
    ),
    "refused": (
        of_client(events.ConnectionRefused, reason="limit", throttle_time_ms=0),
        [("connection-1", "⊘", "error")],
    ),
    "throttled": (lambda journal: journal.throttle(1, 5), [("connection-1", "◷", "throttled")]),
    "a shadow quota": (
        of_client(events.ShadowThrottle, quota="Produce", throttle_time_ms=5, **PRODUCE),
        [("connection-1", "◷", "neutral")],
    ),
    "a rule and its hits": (
        rule,
        [
            ("rule-r", "+", "neutral"),
            ("connection-1", "✗", "fault"),
            ("rule-r", "✗", "fault"),
            ("broker-1", "✗", "fault"),
            ("rule-r", "✗", "fault"),
            ("rule-r", "−", "neutral"),
        ],
    ),
    "a quota": (of_cluster(events.QuotaChange, entity="client-id=a", quotas={}), [("quotas", "Q", "neutral")]),
    "leaders": (leader, [("partition-t-0", "★", "state"), ("partition-t-0", "★", "lost")]),
    "a commit that succeeded": (commit, [("group-g", "✓", "ok")]),
    "a step": (of_cluster(events.ScenarioStep, problem="", **STEP), [("scenario-s", "§", "neutral")]),
    "a failed step": (of_cluster(events.ScenarioStep, problem="no", **STEP), [("scenario-s", "§", "error")]),
    "an acquisition lock": (of_cluster(events.AcquisitionTimeout, **LOCK), [("group-g", "!", "error")]),
    "a gap": (of_cluster(events.Gap, lost=3), [("journal", "…", "lost")]),
}


@pytest.mark.parametrize(("make", "expected"), MARKS.values(), ids=MARKS)
def test_marks(make: Make, expected: list[tuple[str, str, str]]) -> None:
    assert marks(make) == expected


def test_every_kind_of_event_is_shown() -> None:
    found, _ = timeline(lambda journal: None)
    assert set(found._of_types) == set(get_args(events.AnyEvent))


def test_a_rule_of_another_version_is_shown_as_it_is() -> None:
    text = '{"colour":"red"}'
    found, _ = timeline(of_cluster(events.RuleChange, rule_id="r", change="added", rule=text))
    assert found.bars[0].text == text


def test_waits_and_throttles_of_a_request() -> None:
    found, _ = timeline(lambda journal: journal.request("Fetch", 1, 21, throttle_ms=30))
    assert (found.bars[0].parked, found.bars[0].throttle) == (20_000, 30_000)


def test_the_state_of_rules_counts_hits() -> None:
    found, _ = timeline(rule)
    values = [value for _, section, _, value in found.states.end() if section == "rules"]
    assert values == ["close: api=Produce; 0 hits", "close: api=Produce; 1 hit", "close: api=Produce; 2 hits", None]


def test_a_connection_is_related_to_what_its_requests_name() -> None:
    found, table = timeline(lambda journal: journal.batch(1, 2, transactional_id="tx"))
    table.sort()
    connection = next(lane for lane in table.lanes if lane.group == "client")
    assert [table.lanes[index].id for index in connection.relates] == ["transaction-tx", "partition-t-0", "broker-1"]
    assert found.bars
