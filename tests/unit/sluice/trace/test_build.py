"""The model of what was recorded: columns, times, indexes."""

import msgspec
import pytest

from sluice.journal_events import ConnectionRefused
from sluice.trace.build import build
from sluice.trace.model import NONE, Trace
from sluice.trace.recording import FailedLine, LogLine, PhaseTimes, Recorded, Run
from tests.support.journals import Journal, ns

NOT_LEADER = 6


def journal() -> Journal:
    made = Journal()
    made.connection(0, 50, by_client=True)
    made.batch(10, 11, errors=[NOT_LEADER])
    made.batch(20, 21)
    made.throttle(25, 5)
    return made


def trace(*, run: Run = Run("test"), labels: tuple[str, ...] = ("",)) -> Trace:  # noqa: B008  (immutable)
    return build([Recorded(label, journal().events) for label in labels], run)


def test_times_are_microseconds_since_the_first_event() -> None:
    made = trace()
    requests = [bar for bar, number in enumerate(made.bars.correlation_id) if number != NONE]
    assert [(made.bars.start[bar], made.bars.end[bar]) for bar in requests] == [(10_000, 11_000), (20_000, 21_000)]
    assert (made.start_ns, made.end) == (ns(0), 50_000)


def test_columns_have_equal_lengths_and_valid_indexes() -> None:
    made = trace(labels=("one", "two"))
    bars, marks = msgspec.structs.asdict(made.bars), msgspec.structs.asdict(made.marks)
    assert {len(column) for column in bars.values()} == {len(made.bars.lane)}
    assert {len(column) for column in marks.values()} == {len(made.marks.lane)}
    assert {*made.bars.lane, *made.marks.lane} <= set(range(len(made.lanes)))
    assert {*made.bars.text, *made.marks.text} == set(range(len(made.texts)))
    assert {*made.bars.outcome} == set(range(len(made.outcomes)))
    assert {*made.bars.detail} - {NONE} == set(range(len(made.details)))
    assert made.bars.start == sorted(made.bars.start)
    assert made.marks.at == sorted(made.marks.at)
    assert made.state == sorted(made.state, key=lambda change: change[0])
    assert {index for lane in made.lanes for index in lane.relates} <= set(range(len(made.lanes)))


def test_retries_are_linked() -> None:
    made = trace()
    assert len(made.links) == 1
    before, after = made.links[0]
    assert made.bars.attempt[before] == made.bars.attempt[after] == 0
    assert [made.outcomes[made.bars.outcome[bar]].name for bar in made.links[0]] == ["NOT_LEADER_OR_FOLLOWER", "ok"]


def test_findings_refer_to_bars_and_marks() -> None:
    made = trace()
    (finding,) = [one for one in made.findings if one.id == "throttled"]
    assert [made.marks.at[mark] for mark in finding.marks] == [25_000]
    assert finding.at == 25_000


def test_clusters_have_their_own_lanes_and_findings() -> None:
    made = trace(labels=("one", "two"))
    assert {lane.id for lane in made.lanes if lane.group == "broker"} == {"one broker-1", "two broker-1"}
    throttled = [one for one in made.findings if one.id == "throttled"]
    assert [one.title.partition(":")[0] for one in throttled] == ["one", "two"]
    assert [made.lanes[made.marks.lane[one.marks[0]]].id for one in throttled] == [
        "one connection-1",
        "two connection-1",
    ]


def test_a_test_has_phases_logs_and_a_failure() -> None:
    run = Run(
        "test_shop",
        "sluice",
        "failed",
        [PhaseTimes("setup", ns(-5), ns(1), "passed"), PhaseTimes("call", ns(1), ns(90), "failed")],
        [LogLine(ns(30), "ERROR", "shop", "no response")],
        FailedLine("AssertionError", "test_shop.py", 12, ns(90)),
    )
    made = trace(run=run)
    assert (made.title, made.subtitle, made.result, made.end) == ("test_shop", "sluice", "failed", 95_000)
    assert [(one.name, one.start, one.end, one.result) for one in made.phases] == [
        ("setup", 0, 6_000, "passed"),
        ("call", 6_000, 95_000, "failed"),
    ]
    assert made.logs == [(35_000, "ERROR", "shop", "no response")]
    assert made.failure is not None
    assert (made.failure.line, made.failure.at) == (12, 95_000)


def test_a_failure_without_a_time() -> None:
    made = trace(run=Run("test", failure=FailedLine("AssertionError")))
    assert made.failure is not None
    assert made.failure.at == NONE


@pytest.mark.parametrize("recorded", [[], [Recorded("", [])]], ids=["no cluster", "no events"])
def test_nothing_was_recorded(recorded: list[Recorded]) -> None:
    made = build(recorded, Run("test"))
    assert (made.bars.lane, made.end) == ([], 0)
    assert [one.id for one in made.findings] == (["no-requests"] if recorded else [])


def test_it_is_json() -> None:
    made = trace()
    assert msgspec.json.decode(msgspec.json.encode(made), type=Trace) == made


SECOND_LOOKUPS = {"retried": ([], ["neutral", "ok"]), "failed again": ([3], ["error", "error"])}


@pytest.mark.parametrize(("second", "tones"), SECOND_LOOKUPS.values(), ids=SECOND_LOOKUPS)
def test_an_error_of_a_lookup_that_a_retry_corrected_is_mild(second: list[int], tones: list[str]) -> None:
    events = Journal()
    events.request("Metadata", 1, 2, errors=[3])
    events.request("Metadata", 10, 11, errors=second)
    made = build([Recorded("", events.events)], Run("test"))
    assert [made.outcomes[number].tone for number in made.bars.outcome] == tones


def test_refused_connections_without_a_client_share_a_lane() -> None:
    events = Journal()
    for at_ms in (1, 2, 3):
        events.connection(at_ms)
        events.of_client(ConnectionRefused, at_ms, reason="limit", throttle_time_ms=0, client_id="")
    made = build([Recorded("", events.events)], Run("test"))
    assert [lane.id for lane in made.lanes if lane.group == "client"] == ["refused-1"]
