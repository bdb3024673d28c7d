"""Comparison of two reports: changes for better or worse."""

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


DIRECTIONS = [
    (PASS, DIFFERS, Kind.WORSE),
    (DIFFERS, VIOLATES, Kind.WORSE),
    (UNCLEAR, PREDATES, Kind.WORSE),
    (VIOLATES, PASS, Kind.BETTER),
    (VIOLATES, DIFFERS, Kind.BETTER),
    (UNSEEN, PASS, Kind.BETTER),
    (PASS, UNCLEAR, Kind.UNDECIDED),
    (DIFFERS, UNSEEN, Kind.UNDECIDED),
]


@pytest.mark.parametrize(("before", "now", "kind"), DIRECTIONS)
def test_direction_of_a_change(before: Verdict, now: Verdict, kind: Kind) -> None:
    ((found, what, *_),) = _changes(subject("a", "1", before), subject("a", "2", now))
    assert (found, what) == (kind, "KIP-580/1")


@pytest.mark.parametrize(("before", "now"), [(PASS, PASS), (DIFFERS, DIFFERS), (UNCLEAR, UNSEEN)])
def test_unchanged_verdicts_are_counted(before: Verdict, now: Verdict) -> None:
    found = compare(result(subject("a", "1", before)), result(subject("a", "2", now)))
    assert (found.changes, found.same, found.versions) == ([], 1, {"a": ("1", "2")})


def test_added_and_removed_statements_and_clients_are_reported() -> None:
    old = result(subject("a", "1", verdict("KIP-91/1")), subject("old", "1"))
    new = result(subject("a", "1", verdict("KIP-91/4")), subject("new", "1"))
    changes = [(one.kind, one.subject, one.what) for one in compare(old, new).changes]
    assert changes == [
        (Kind.NEW, "a", "KIP-91/4"),
        (Kind.NEW, "new", ""),
        (Kind.GONE, "a", "KIP-91/1"),
        (Kind.GONE, "old", ""),
    ]


STORM = Finding(kind=FindingKind.STORM, probe="produce-retry", why="many")


def test_new_findings_are_worse_and_removed_ones_better() -> None:
    without, with_storm = subject("a", "1"), subject("a", "1", findings=[STORM])
    assert _changes(without, with_storm) == [(Kind.WORSE, "storm in produce-retry", "not found", "found")]
    assert _changes(with_storm, without) == [(Kind.BETTER, "storm in produce-retry", "found", "not found")]


def test_finding_of_a_probe_not_repeated_is_not_removed() -> None:
    assert _changes(subject("a", "1", findings=[STORM]), subject("a", "1", probes={"other": 1})) == []


@pytest.mark.parametrize(
    ("before_ms", "now_ms", "kind"),
    [(400.0, 900.0, Kind.WORSE), (30_000.0, 1000.0, Kind.BETTER), (400.0, 790.0, None), (1000.0, 1900.0, None)],
    ids=["twice as long", "much shorter", "slightly longer in ms", "not twice"],
)
def test_recovery_changed_only_beyond_chance(before_ms: float, now_ms: float, kind: Kind | None) -> None:
    changes = _changes(
        subject("a", "1", recovery_ms={"mute": before_ms}), subject("a", "1", recovery_ms={"mute": now_ms})
    )
    assert [(found, what) for found, what, *_ in changes] == ([] if kind is None else [(kind, "recovery from mute")])


def test_two_versions_of_a_client_in_one_report_are_separate() -> None:
    both = result(subject("a", "1", PASS), subject("a", "2", DIFFERS))
    assert compare(both, both).changes == []


def test_report_equals_itself() -> None:
    everything = with_everything()
    found = compare(everything, everything)
    assert (found.changes, found.same) == ([], sum(len(each.verdicts) for each in everything.subjects))
