"""The overview of a client: one sentence, deviations first, and one line about each kind of undecided verdict."""

from pathlib import Path

import click
import pytest

from sluice.audit.judge.model.attempts import Kind
from sluice.audit.judge.model.verdict import (
    AuditResult,
    Finding,
    FindingKind,
    Fit,
    MeasuredBackoff,
    Sort,
    State,
    SubjectResult,
    Verdict,
)
from sluice.audit.report.overview import backoff_words, overview
from sluice.cli.audit.text import summary
from tests.support.audit_results import subject, verdict

DIFFERS = verdict("KIP-580/1", State.DEVIATES, sort=Sort.DIFFERS_FROM_KIP)
VIOLATES = verdict("KIP-580/2", State.DEVIATES, sort=Sort.VIOLATES_ITS_DOCUMENTATION)
PASSES = verdict("KIP-91/2")
UNSET = verdict("KIP-144/1", State.INCONCLUSIVE, missing=["reconnect.backoff.ms"])
FEW = verdict("KIP-144/3", State.INCONCLUSIVE, runs_needed=2)
LAGGED = verdict("KIP-144/4", State.INCONCLUSIVE, measured={"lag_ms": 83.0}, runs_needed=5)
UNSEEN = verdict("KIP-580/16", State.NOT_OBSERVABLE, why="it does not retry")
THROTTLE = verdict("KIP-13/20", State.DEVIATES, sort=Sort.DIFFERS_FROM_KIP)


def storm(what: str, count: int, probe: str) -> Finding:
    measured: dict[str, float | str] = {"what": what, "count": count}
    return Finding(kind=FindingKind.STORM, probe=probe, why=f"{count} {what}", measured=measured)


STORM = storm("connections", 412, "reconnect-closed")


SENTENCES = {
    "a deviation": ([DIFFERS, PASSES], [], "Deviates from 1 of 2 decided statements."),
    "a deviation and a finding": (
        [DIFFERS, UNSET],
        [STORM],
        "Storm of connections. Deviates from 1 of 1 decided statement; 1 is not decided.",
    ),
    "no deviation": ([PASSES, UNSET, UNSEEN], [], "Passes 1 decided statement; 2 are not decided."),
    "nothing decided": ([UNSET], [], "No statement was decided."),
}


@pytest.mark.parametrize(("verdicts", "findings", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_sentence(verdicts: list[Verdict], findings: list[Finding], sentence: str) -> None:
    assert overview(subject("app", "1", *verdicts, findings=findings)).sentence == sentence


def names(result: SubjectResult) -> list[str]:
    return [fault.name for fault in overview(result).faults]


def test_what_harms_a_cluster_or_loses_records_comes_first() -> None:
    kinds = {kind: Finding(kind=kind, probe="p", why="") for kind in FindingKind if kind is not FindingKind.STORM}
    storms = [storm("Metadata", 900, "a"), storm("connections", 700, "b")]
    assert names(subject("app", "1", DIFFERS, THROTTLE, VIOLATES, findings=[*kinds.values(), *storms])) == [
        "Lost record",
        "Storm of requests",
        "Storm of connections",
        "KIP-13/20",
        "Duplicate",
        "Stall",
        "Client failed",
        "Counter wrapped",
        "KIP-580/2",
        "KIP-580/1",
    ]


def test_findings_of_several_probes_are_one_fault() -> None:
    findings = [storm("connections", count, probe) for count, probe in ((300, "a"), (900, "b"), (200, "c"))]
    (fault,) = overview(subject("app", "1", findings=findings)).faults
    assert (fault.why, fault.place_words, fault.anchor) == ("900 connections", "b, and in 2 other probes", 1)
    assert fault.others == [("a", 0), ("c", 2)]


def test_largest_deviations_of_a_kind_come_first_and_fit_the_first_screen() -> None:
    """Reading the first lines is enough to name the three worst."""
    sizes = {3: (100, "640 to 800 ms"), 4: (190, "80 to 120 ms"), 5: (0, "at least 50 ms"), 6: (5, "at most 4")}
    sizes |= {7: (4000, "80 ms"), 8: (60, "below 50 ms"), 9: (1, "0"), 10: (110, "80 to 120 ms")}
    found = [
        verdict(
            f"KIP-580/{number}",
            State.DEVIATES,
            sort=Sort.DIFFERS_FROM_KIP,
            measured={"x": value, "word": "x"},
            expected={"x": expected, "word": "y", "other": "1 ms"},
        )
        for number, (value, expected) in sizes.items()
    ]
    shown = names(subject("app", "1", *found))
    assert shown == [f"KIP-580/{number}" for number in (5, 7, 3, 4, 6, 8, 9, 10)]
    assert summary_lines(found)[1:4] == shown[:3]


def summary_lines(verdicts: list[Verdict]) -> list[str]:
    """Return the words in the lines of the summary that name statements."""
    result = AuditResult(sluice="1", began="", machine="", subjects=[subject("app", "1", *verdicts)])
    lines = [click.unstyle(line) for line in summary(result, [], [], Path())]
    return [next((word for word in line.split() if word.startswith("KIP-")), "") for line in lines]


def test_undecided_verdicts_are_counted_in_one_line_each() -> None:
    found = overview(subject("app", "1", UNSET, FEW, LAGGED, UNSEEN, UNSEEN))
    assert found.undecided_line == (
        "3 inconclusive: 1 needs settings of the client; 1 needs a less busy machine; 1 needs more runs"
    )
    assert found.settings_line == "--setting reconnect.backoff.ms=50"
    assert found.unseen_line == "1 not observable, such as: it does not retry"
    assert (overview(subject("app", "1", PASSES)).undecided_line, found.passes) == ("", [])


BACKOFFS = {
    "model only": (None, None, ""),
    "separate and reset": (True, False, ", restarts after a success, counted per broker"),
    "shared and not reset": (False, True, ", does not restart after a success, one counter for every broker"),
}


@pytest.mark.parametrize(("reset", "is_shared", "words"), BACKOFFS.values(), ids=BACKOFFS)
def test_measured_backoff_in_words(reset: bool | None, is_shared: bool | None, words: str) -> None:
    fit = Fit(model="constant", base_ms=100, multiplier=1, cap_ms=None, jitter=0.2, residual=0.1, confidence=1, waits=9)
    backoff = MeasuredBackoff(kind=Kind.CONNECT, probe="reconnect-closed", fit=fit, reset=reset, is_shared=is_shared)
    assert backoff_words(backoff) == f"constant: 100 ms, ± 20 % jitter (9 of 10 waits within 10 %){words}"


def test_waits_below_a_millisecond_are_none() -> None:
    fit = Fit(model="exponential", base_ms=0.1, multiplier=2, cap_ms=0.4, jitter=0, residual=0, confidence=1, waits=9)
    assert backoff_words(MeasuredBackoff(kind=Kind.FETCH, probe="fetch-error", fit=fit)) == "no wait"
