"""Whatever events a journal still has, in whatever order clocks give them: the model is valid."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sluice import journal_events
from sluice.trace.build import build
from sluice.trace.compare import compare
from sluice.trace.model import Trace
from sluice.trace.perfetto import perfetto
from sluice.trace.recording import Recorded, Run
from tests.support.journals import Journal

PRODUCE: dict[str, Any] = {"api": "Produce", "version": 9, "correlation_id": 1}
RULES = (
    {"action": "close", "api": "Produce", "version": "3-5", "client_id": "b*"},
    {"action": {"kind": "error", "code": 6}, "topic": "u", "connection_older_than": "1s", "on": [3]},
    {"action": "refuse-connections"},
    {"action": "isolate", "broker": 1, "after": "1s"},
)


def _events() -> list[journal_events.AnyEvent]:
    """Return events of each kind, with members, transactions and partitions that come and go."""
    journal = Journal()
    journal.connection(0, 70, by_client=True)
    journal.connection(1, 60, reason="limit")
    for number, rule in enumerate(RULES):
        text = msgspec.json.encode(rule).decode()
        journal.of_cluster(journal_events.RuleChange, number, rule_id=f"r{number}", change="added", rule=text)
    journal.of_cluster(journal_events.RuleChange, 40, rule_id="r0", change="ended", rule="")
    journal.of_client(journal_events.Fault, 21, rule_id="r1", action="error", **PRODUCE)
    journal.of_client(journal_events.ConnectionRefused, 5, reason="limit", throttle_time_ms=1)
    journal.of_client(journal_events.ShadowThrottle, 5, quota="Produce", throttle_time_ms=1, **PRODUCE)
    journal.throttle(6, 20)
    journal.throttle(9, 2)
    journal.of_cluster(journal_events.QuotaChange, 4, entity="client-id=app", quotas={"producer_byte_rate": 1.0})
    journal.of_cluster(journal_events.Gap, 2, lost=3)
    step = {"run": "1", "scenario": "s", "step": "", "what": "stop", "problem": "no"}
    journal.of_cluster(journal_events.ScenarioStep, 3, **step)  # type: ignore[arg-type]
    lock: dict[str, Any] = {"group_id": "g", "member_id": "m", "topic": "t", "partition": 0}
    journal.of_cluster(journal_events.AcquisitionTimeout, 8, first_offset=0, last_offset=2, **lock)
    for at_ms, before, after in ((10, 1, -1), (30, -1, 2), (50, 2, 1)):
        fields: dict[str, Any] = {"topic": "t", "partition": 0, "leader_epoch": 1, "isr": [2], "lost_records": 1}
        journal.of_cluster(journal_events.LeaderChange, at_ms, broker=after, before=before, **fields)
    for at_ms, state in ((11, "stopped"), (31, "running"), (45, "isolated")):
        journal.of_cluster(journal_events.BrokerState, at_ms, broker=1, state=state)
    for at_ms, before_state, after_state in ((12, "Empty", "PreparingRebalance"), (33, "PreparingRebalance", "Stable")):
        journal.group_state(at_ms, before_state, after_state, members=at_ms % 3)
    for at_ms, after_state in ((13, "Ongoing"), (34, "PrepareAbort"), (36, "Ongoing"), (48, "CompleteCommit")):
        journal.transaction_state(at_ms, "Empty", after_state)
    member: dict[str, Any] = {
        "member_id": "m",
        "session_timeout_ms": 5,
        "rebalance_timeout_ms": 5,
        "group_instance_id": "i",
    }
    for number, api in enumerate(("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch")):
        place = journal_events.TopicPartition(topic="t", partition=0, offset=9 - number)
        for at_ms, errors in ((14 + number, ()), (40 + number, (25,))):
            returned: dict[str, Any] = {"member_id": "m", "members": ["m"], "assignment": ["t-0"]}
            journal.request(
                api, at_ms, at_ms + 1, group_id="g", partitions=[place], errors=errors, sent=member, returned=returned
            )
    read = journal_events.FetchedRecords(bytes=0, high_watermark=5, last_stable_offset=2)
    place = journal_events.TopicPartition(topic="t", partition=0, offset=2, fetched=read)
    for api in ("ListOffsets", "Fetch"):
        journal.request(api, 22, 24, partitions=[place], sent={"isolation_level": 1, "timestamp": -1})
    for at_ms, code in enumerate((3, 6, 10, 29, 58, 82, 90, 9999), 25):
        journal.batch(at_ms, at_ms + 0.5, errors=[code], transactional_id="tx")
    journal.batch(35, ended_ms=39, sequence=0)
    journal.beside(client_id="b").batch(37, 38, sequence=0, topic="u")
    journal.request("InitProducerId", 46, 47, transactional_id="tx")
    return journal.events


EVENTS = _events()


def _check(trace: Trace) -> None:
    bars, marks = trace.bars, trace.marks
    assert all(0 <= start <= end <= trace.end for start, end in zip(bars.start, bars.end, strict=True))
    assert all(0 <= at <= trace.end for at in (*marks.at, *(finding.at for finding in trace.findings)))
    assert all(bar < len(bars.lane) for finding in trace.findings for bar in finding.bars)
    assert all(mark < len(marks.lane) for finding in trace.findings for mark in finding.marks)
    assert all(bars.start[before] <= bars.start[after] for before, after in trace.links)
    assert msgspec.json.decode(msgspec.json.encode(trace), type=Trace) == trace


@given(st.permutations(EVENTS), st.integers(0, len(EVENTS)))
def test_any_events(events: list[journal_events.AnyEvent], count: int) -> None:
    trace = build([Recorded("", events[:count])], Run("test"))
    _check(trace)
    assert perfetto(trace)
    trace.compare = compare(trace, build([Recorded("", events[count:])], Run("other")))
    assert all(-1 <= one.bar < len(trace.bars.lane) for one in trace.compare.differences)


def test_all_events_at_once() -> None:
    trace = build([Recorded("", EVENTS)], Run("test"))
    _check(trace)
    assert len({finding.id for finding in trace.findings}) > 15
