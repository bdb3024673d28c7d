"""What changed between two reports is told as better or worse, and only that."""

import pytest

from sluice.audit.judge.model.verdict import Finding, FindingKind, Sort, State, SubjectResult, Verdict
from sluice.audit.report.comparison import Kind, compare
from tests.support.audit_results import result, subject, verdict, with_everything

PASS = verdict()
VIOLATES = verdict(state=State.DEVIATES, sort=Sort.VIOLATES_ITS_DOCUMENTATION)
DIFFERS = verdict(state=State.DEVIATES, sort=Sort.DIFFERS_FROM_KIP)
PREDATES = verdict(state=State.DEVIATES, sort=Sort.PREDATES_KIP)
UNCLEAR = verdict(state=State.INCONCLUSIVE)
UNSEEN = verdict(state=State.NOT_OBSERVABLE)


def _changes(before: SubjectResult, now: SubjectResult) -> list[tuple[Kind, str, str, str]]:
    return [(one.kind, one.what, one.before, one.now) for one in compare(result(before), result(now)).changes]


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        (PASS, DIFFERS, Kind.WORSE),
        (DIFFERS, VIOLATES, Kind.WORSE),
        (UNCLEAR, PREDATES, Kind.WORSE),
        (VIOLATES, PASS, Kind.BETTER),
        (VIOLATES, DIFFERS, Kind.BETTER),
        (UNSEEN, PASS, Kind.BETTER),
        (PASS, UNCLEAR, Kind.UNDECIDED),
        (DIFFERS, UNSEEN, Kind.UNDECIDED),
    ],
)
def test_a_change_is_for_the_better_or_not(before: Verdict, now: Verdict, kind: Kind) -> None:
    ((found, what, *_),) = _changes(subject("a", "1", before), subject("a", "2", now))
    assert (found, what) == (kind, "KIP-580/1")


@pytest.mark.parametrize(("before", "now"), [(PASS, PASS), (DIFFERS, DIFFERS), (UNCLEAR, UNSEEN)])
def test_what_is_as_it_was_is_counted(before: Verdict, now: Verdict) -> None:
    found = compare(result(subject("a", "1", before)), result(subject("a", "2", now)))
    assert (found.changes, found.same, found.versions) == ([], 1, {"a": ("1", "2")})


def test_statements_and_clients_that_come_and_go_are_told() -> None:
    old = result(subject("a", "1", verdict("KIP-91/1")), subject("old", "1"))
    new = result(subject("a", "1", verdict("KIP-91/4")), subject("new", "1"))
    told = [(one.kind, one.subject, one.what) for one in compare(old, new).changes]
    assert told == [
        (Kind.NEW, "a", "KIP-91/4"),
        (Kind.NEW, "new", ""),
        (Kind.GONE, "a", "KIP-91/1"),
        (Kind.GONE, "old", ""),
    ]


STORM = Finding(kind=FindingKind.STORM, probe="produce-retry", why="many")


def test_findings_that_come_are_worse_and_those_that_go_better() -> None:
    without, with_storm = subject("a", "1"), subject("a", "1", findings=[STORM])
    assert _changes(without, with_storm) == [(Kind.WORSE, "storm in produce-retry", "not found", "found")]
    assert _changes(with_storm, without) == [(Kind.BETTER, "storm in produce-retry", "found", "not found")]


def test_a_finding_of_a_probe_that_was_not_run_again_is_not_gone() -> None:
    assert _changes(subject("a", "1", findings=[STORM]), subject("a", "1", probes={"other": 1})) == []


@pytest.mark.parametrize(
    ("before_ms", "now_ms", "kind"),
    [(400.0, 900.0, Kind.WORSE), (30_000.0, 1000.0, Kind.BETTER), (400.0, 790.0, None), (1000.0, 1900.0, None)],
    ids=["twice as long", "much shorter", "a little in ms", "not twice"],
)
def test_a_recovery_changed_if_chance_does_not_explain_it(before_ms: float, now_ms: float, kind: Kind | None) -> None:
    changes = _changes(
        subject("a", "1", recovery_ms={"mute": before_ms}), subject("a", "1", recovery_ms={"mute": now_ms})
    )
    assert [(found, what) for found, what, *_ in changes] == ([] if kind is None else [(kind, "recovery from mute")])


def test_two_versions_of_a_client_in_one_report_are_two() -> None:
    both = result(subject("a", "1", PASS), subject("a", "2", DIFFERS))
    assert compare(both, both).changes == []


def test_a_report_is_as_itself() -> None:
    everything = with_everything()
    found = compare(everything, everything)
    assert (found.changes, found.same) == ([], sum(len(each.verdicts) for each in everything.subjects))
