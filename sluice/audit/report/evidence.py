"""The evidence behind a cell of the matrix or a finding: plots, fitted model, numbers, runs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sluice.audit.judge.model.observation import SubjectInfo
from sluice.audit.judge.model.verdict import Finding, Fit, Series, State, SubjectResult, Verdict

from .plots import Plot, attempts_plot, waits_plot
from .quotations import Citation, cited, kip_texts
from .words import VerdictStyle, finding_words, kip_of, milliseconds, place_words, style_of

_MOST_WAITS = 200  # per sequence, to limit the size of the page; report.json has all


class Figure(NamedTuple):
    caption: str
    plot: Plot
    legend: list[tuple[str, str]]


class Evidence(NamedTuple):
    """One verdict or finding.

    style: of a verdict; a finding has its name in `finding` instead
    allowed: legend of the plots' band
    """

    id: str
    subject: SubjectInfo
    why: str
    series: Sequence[Series]
    measured: Mapping[str, float | str]
    facts: list[tuple[str, str]]
    citation: Citation | None
    style: VerdictStyle | None = None
    finding: str = ""
    statement: str = ""
    text: str = ""
    kip_text: str = ""
    fit: Fit | None = None
    expected: Mapping[str, str] = {}
    allowed: str = "allowed"

    @property
    def numbers(self) -> list[tuple[str, float | str, str]]:
        names = dict.fromkeys([*self.measured, *self.expected])
        return [(name, self.measured.get(name, ""), self.expected.get(name, "")) for name in names]

    def figures(self) -> tuple[Figure | None, Figure | None]:
        if not any(each.at_ms for each in self.series):
            return None, None
        has_band = any(each.low_ms for each in self.series)
        legend = [("dots succeeded", "succeeded"), ("dots failed", "failed"), ("dots open", "no response")]
        legend += [("band", f"{self.allowed} for the next")] if has_band else []
        attempts = Figure("Attempts over time, one row per sequence", attempts_plot(self.series), legend)
        if not any(each.waited_ms for each in self.series):
            return attempts, None
        legend = [("dots wait", "a wait"), *([("band", self.allowed)] if has_band else [])]
        legend += [("fit", "fitted model")] if self.fit is not None else []
        return attempts, Figure("Waits before each retry", waits_plot(self.series, self.fit), legend)


def verdict_evidence(identity: str, result: SubjectResult, verdict: Verdict, text: str) -> Evidence:
    deviates = verdict.state is State.DEVIATES
    return Evidence(
        identity,
        result.subject,
        verdict.why,
        verdict.series,
        verdict.measured,
        [
            *([("Failure", verdict.path)] if verdict.path else []),
            *([("Measured in", place_words(verdict))] if verdict.probe else []),
            ("Evidence", _runs_words(result, verdict)),
        ],
        cited(result.subject.name, verdict.statement) if deviates else None,
        style=style_of(verdict),
        statement=verdict.statement,
        text=text,
        kip_text=kip_texts()[verdict.statement].in_words if verdict.statement in kip_texts() else "",
        fit=verdict.fit,
        expected=verdict.expected,
        allowed=f"allowed by {kip_of(verdict.statement)}",
    )


def finding_evidence(identity: str, result: SubjectResult, finding: Finding) -> Evidence:
    return Evidence(
        identity,
        result.subject,
        finding.why,
        finding.series,
        finding.measured,
        [("Probe", finding.probe)],
        cited(result.subject.name, finding.kind),
        finding=finding_words(finding),
    )


def _runs_words(result: SubjectResult, verdict: Verdict) -> str:
    runs = f"{verdict.runs} run{'s' * (verdict.runs != 1)} in {'virtual' if result.virtual else 'real'} time"
    if verdict.state is State.INCONCLUSIVE:
        needed = verdict.runs_needed
        return f"{runs}; " + ("more runs would not decide" if needed is None else f"{needed} more would decide")
    return runs


def sequence_words(series: Series) -> str:
    seconds = milliseconds(series.at_ms[-1]) if series.at_ms else "0 s"
    kinds = [f"{series.outcomes.count(kind)} {kind}" for kind in dict.fromkeys(series.outcomes)]
    outcomes = f"{len(series.at_ms)} attempts in {seconds}" + (f" ({', '.join(kinds)})" if kinds else "")
    return f"{series.kind} {series.key}, run {series.repetition + 1}: {outcomes}"


def listed(values: Sequence[float]) -> str:
    shown = ", ".join(f"{round(value, 1):.12g}" for value in values[:_MOST_WAITS])
    more = len(values) - _MOST_WAITS
    return f"{shown} ms" + (f", and {more} more in report.json" if more > 0 else "")
