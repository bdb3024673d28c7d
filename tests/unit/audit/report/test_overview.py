"""The overview of a client: one sentence, deviations first, and one line about each kind of undecided verdict."""

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
UNSEEN = verdict("KIP-580/16", State.NOT_OBSERVABLE, why="it does not retry")
STORM = Finding(kind=FindingKind.STORM, probe="reconnect-closed", why="412 connections")


@pytest.mark.parametrize(
    ("verdicts", "findings", "sentence"),
    [
        ([DIFFERS, PASSES], [], "Deviates from 1 of 2 decided statements."),
        ([DIFFERS, UNSET], [STORM], "Deviates from 1 of 1 decided statement, with 1 other finding; 1 is not decided."),
        ([PASSES, UNSET, UNSEEN], [], "Passes 1 decided statement; 2 are not decided."),
        ([UNSET], [], "No statement was decided."),
    ],
    ids=["a deviation", "a deviation and a finding", "no deviation", "nothing decided"],
)
def test_sentence(verdicts: list[Verdict], findings: list[Finding], sentence: str) -> None:
    assert overview(subject("app", "1", *verdicts, findings=findings)).sentence == sentence


def test_deviations_from_the_clients_documentation_come_first() -> None:
    assert overview(subject("app", "1", DIFFERS, PASSES, VIOLATES)).deviations == [VIOLATES, DIFFERS]


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
    shown = [each.statement for each in overview(subject("app", "1", *found)).deviations]
    assert shown == [f"KIP-580/{number}" for number in (5, 7, 3, 4, 6, 8, 9, 10)]
    assert summary_lines(found)[2:5] == shown[:3]


def summary_lines(verdicts: list[Verdict]) -> list[str]:
    """Return the words in the lines of the summary that name statements."""
    result = AuditResult(sluice="1", began="", machine="", subjects=[subject("app", "1", *verdicts)])
    lines = [click.unstyle(line) for line in summary(result, [])]
    return [next((word for word in line.split() if word.startswith("KIP-")), "") for line in lines]


def test_undecided_verdicts_are_counted_in_one_line_each() -> None:
    found = overview(subject("app", "1", UNSET, FEW, UNSEEN, UNSEEN))
    assert found.undecided_line == "2 inconclusive: 1 needs --setting reconnect.backoff.ms; 1 needs more runs"
    assert found.unseen_line == "1 not observable, such as: it does not retry"
    assert (overview(subject("app", "1", PASSES)).undecided_line, found.passes) == ("", [])


@pytest.mark.parametrize(
    ("reset", "is_shared", "words"),
    [
        (None, None, ""),
        (True, False, ", restarts after a success, counted per broker"),
        (False, True, ", does not restart after a success, one counter for every broker"),
    ],
    ids=["model only", "separate and reset", "shared and not reset"],
)
def test_measured_backoff_in_words(reset: bool | None, is_shared: bool | None, words: str) -> None:
    fit = Fit(model="constant", base_ms=100, multiplier=1, cap_ms=None, jitter=0.2, residual=0.1, confidence=1, waits=9)
    backoff = MeasuredBackoff(kind=Kind.CONNECT, probe="reconnect-closed", fit=fit, reset=reset, is_shared=is_shared)
    assert backoff_words(backoff) == f"constant: 100 ms, ± 20 % jitter (9 of 10 waits within 10 %){words}"


def test_waits_below_a_millisecond_are_none() -> None:
    fit = Fit(model="exponential", base_ms=0.1, multiplier=2, cap_ms=0.4, jitter=0, residual=0, confidence=1, waits=9)
    assert backoff_words(MeasuredBackoff(kind=Kind.FETCH, probe="fetch-error", fit=fit)) == "no wait"
