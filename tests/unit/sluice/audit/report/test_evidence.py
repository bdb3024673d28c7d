"""The details of a report cell: all evidence of its verdict."""

import re
from html import unescape

from sluice.audit.judge.model.verdict import Finding, FindingKind, State, SubjectResult
from sluice.audit.report.page import page
from tests.support.audit_results import result, series, subject, verdict, with_everything


def _dialog(one: SubjectResult, text: str = "") -> str:
    """Return the first verdict."""
    made = page(result(one), {each.statement: text for each in one.verdicts})
    return made[made.index("<dialog") : made.index("</dialog>")]


def _text(markup: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", markup)))


def test_all_evidence_of_the_verdict_is_shown() -> None:
    one = with_everything().subjects[1]
    text = _text(_dialog(one, "Waits double."))
    for part in (
        "differs from the KIP", "constant-client 2.2.1", "KIP-580/1 Waits double.", "waits stay at 104 ms",
        "Fitted model constant: 104 ms, no jitter", "first gap 104 ms 80 to 120 ms", "Failure answered with error 7",
        "3 runs in real time", "as a producer", "retry.backoff.ms 100",
        "produce orders-0@4000.0.17, run 1: 31 attempts",
    ):  # fmt: skip
        assert part in text


def test_raw_numbers_are_those_of_the_plot() -> None:
    one = verdict(series=[series([101.04, 203.96])])
    text = _text(_dialog(subject("a", "1", one)))
    assert "waited 101, 204 ms at least 53, 133 ms at most 180, 300 ms" in text


def test_inconclusive_verdict_says_how_many_runs_would_decide() -> None:
    needs = verdict(state=State.INCONCLUSIVE, runs_needed=5)
    never = verdict(state=State.INCONCLUSIVE)
    assert "3 runs in real time; 5 more would decide" in _text(_dialog(subject("a", "1", needs)))
    assert "more runs would not decide" in _text(_dialog(subject("a", "1", never)))


def test_verdict_without_attempts_has_no_plot() -> None:
    assert 'class="plot"' not in _dialog(subject("a", "1", verdict()))


def test_finding_has_its_numbers_and_its_probe() -> None:
    found = Finding(kind=FindingKind.STORM, probe="refused", why="412 connections", measured={"within_ms": 2100.0})
    text = _text(_dialog(subject("a", "1", findings=[found])))
    for part in ("Storm a 1", "412 connections", "within 2.1 s", "Probe refused"):
        assert part in text
