"""A trace for each deviation and finding of an audit: a run that shows it, with its fault and the driver's reports."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sluice.audit.judge.model.observation import Callback, Observation
from sluice.audit.judge.model.verdict import Series, State, SubjectResult, Verdict
from sluice.embedded.traces.recorded_test import file_stem
from sluice.errors import SluiceError
from sluice.trace.recording import FailedLine, LogLine, PhaseTimes, Recorded, Run
from sluice.trace.stored import write_trace

FOLDER = "traces"
_RUN = re.compile(r"run (\d+)")  # at the beginning of Verdict.where
_WARNINGS = frozenset({"failed", "call-failed", "gave-up", "warning", "rejected"})


class _Case(NamedTuple):
    """A deviation or a finding."""

    id: str
    probe: str
    why: str
    repetition: int | None


def has_cases(subject: SubjectResult) -> bool:
    return any(True for _ in _cases(subject))


def write_traces(number: int, subject: SubjectResult, observations: Sequence[Observation], report: Path) -> list[Path]:
    """Write the traces of a report's client with this number, and return the files. Raises SluiceError."""
    written = []
    for case in _cases(subject):
        run = _run_of(case, observations)
        if run is not None:
            path = report / FOLDER / f"{file_stem(f'{number}-{subject.subject.name}-{case.id}')}.html"
            try:
                path.parent.mkdir(exist_ok=True)
                write_trace(path, [Recorded("", run.events)], _described(case, run))
            except OSError as error:
                raise SluiceError(f"{path}: cannot write the trace: {error.strerror}") from None
            written.append(path)
    return written


def _cases(subject: SubjectResult) -> Iterator[_Case]:
    for verdict in subject.verdicts:
        if verdict.state is State.DEVIATES:
            yield _Case(verdict.statement, verdict.probe, verdict.why, _repetition(verdict))
    for finding in subject.findings:
        yield _Case(f"{finding.kind}-{finding.probe}", finding.probe, finding.why, _first(finding.series))


def _repetition(verdict: Verdict) -> int | None:
    named = _RUN.match(verdict.where)
    return _first(verdict.series) if named is None else int(named[1]) - 1


def _first(series: Sequence[Series]) -> int | None:
    return series[0].repetition if series else None


def _run_of(case: _Case, observations: Sequence[Observation]) -> Observation | None:
    """Return the run that shows a case, or else the first one of its probe with events."""
    runs = [run for run in observations if run.probe == case.probe and run.events]
    return next((run for run in runs if run.repetition == case.repetition), runs[0] if runs else None)


def _described(case: _Case, run: Observation) -> Run:
    ended_ns = run.ended_ns or run.events[-1].at_ns
    phases = [PhaseTimes("fault", run.fault_from_ns, run.fault_until_ns or ended_ns)] if run.fault_from_ns else []
    return Run(
        title=f"{run.subject.name}: {case.id}",
        subtitle=f"{run.probe}, run {run.repetition + 1}, as a {run.subject.role}",
        result="failed",
        phases=phases,
        logs=[_line(callback) for callback in run.callbacks],
        failure=FailedLine(case.why, at_ns=ended_ns),
    )


def _line(callback: Callback) -> LogLine:
    record = "" if callback.record < 0 else f" record {callback.record}"
    place = "" if callback.offset < 0 else f" at {callback.partition}-{callback.offset}"
    why = " ".join(text for text in (callback.error, callback.text) if text)
    level = "WARNING" if callback.event in _WARNINGS else "INFO"
    return LogLine(callback.at_ns, level, "driver", f"{callback.event}{record}{place}{why and f': {why}'}")
