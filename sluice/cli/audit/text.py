"""The output of an audit and of a comparison, with one line per deviation, finding or change."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from sluice.audit.judge.model.verdict import AuditResult, State, SubjectResult
from sluice.audit.report import words
from sluice.audit.report.comparison import Change, Comparison, Kind
from sluice.audit.report.overview import Fault, backoff_words, overview
from sluice.text.error_text import printable
from sluice.text.json_text import json_text

_COLORS = {
    "pass": "green",
    "violates": "red",
    "differs": "yellow",
    "predates": "magenta",
    "inconclusive": "cyan",
    "unseen": "bright_black",
}
_SIGNS = {Kind.WORSE: ("✕", "red"), Kind.BETTER: ("✓", "green"), Kind.UNDECIDED: ("?", "cyan")}
_MOST_PROBLEMS = 3


def summary(result: AuditResult, files: Sequence[Path], traces: Sequence[Path], measured: Path) -> Iterator[str]:
    """Yield the lines of a summary, colored on a terminal; `measured` is the folder with the observations."""
    for subject in result.subjects:
        yield from _subject(subject, measured)
        yield ""
    if traces:
        yield f"traces of deviations and findings: {len(traces)} in {traces[0].parent}"
    yield f"report: {', '.join(map(str, files))}"


def _subject(result: SubjectResult, measured: Path) -> Iterator[str]:
    runs = sum(result.probes.values())
    took = f"{runs} run{'s' * (runs != 1)} in {words.milliseconds(result.seconds * 1000)}"
    virtual = ", in virtual time" if result.virtual else ""
    yield f"{click.style(printable(words.name_of(result.subject)), bold=True)}  {took}{virtual}"
    found = overview(result)
    yield from map(_fault, found.faults)
    yield "  " + "   ".join(
        _colored(style, f"{style.sign} {count} {style.short}") for style, count in words.counts(result).items()
    )
    for line in filter(None, (found.undecided_line, found.unseen_line)):
        yield f"  {printable(line)}"
    if found.settings_line:
        yield "  to decide them, paste this with the client's values; these are Kafka's defaults (--like kafka):"
        yield f"sluice audit judge {shlex.quote(str(measured))} {found.settings_line}"
    for backoff in result.backoffs:
        yield f"  measured {backoff.kind}: {printable(backoff_words(backoff))} [{backoff.probe}]"
    for name, reason in result.not_applicable.items():
        yield f"  not applicable to a real cluster: {name}: {printable(reason)}"
    for problem in result.problems[:_MOST_PROBLEMS]:
        yield f"  failed run: {printable(problem)}"
    if len(result.problems) > _MOST_PROBLEMS:
        yield f"  and {len(result.problems) - _MOST_PROBLEMS} more failed runs"


def _fault(fault: Fault) -> str:
    if fault.style is None:
        head = click.style(f"! {fault.name}", fg="red")
    else:
        head = f"{_colored(fault.style, f'{fault.style.sign} {fault.name}')} {fault.style.short}"
    return f"  {head}: {printable(f'{fault.why} [{fault.place_words}]')}"


def _colored(style: words.VerdictStyle, text: str) -> str:
    return click.style(text, fg=_COLORS[style.key])


def summary_json(result: AuditResult, files: Sequence[Path]) -> str:
    report = {"files": [str(file) for file in files], "subjects": [_as_dict(subject) for subject in result.subjects]}
    return json_text(report)


def _as_dict(result: SubjectResult) -> dict[str, object]:
    deviations = [
        {
            "statement": verdict.statement,
            "kind": words.style_of(verdict).key,
            "why": verdict.why,
            "where": words.place_words(verdict),
        }
        for verdict in result.verdicts
        if words.style_of(verdict) in words.DEVIATIONS
    ]
    findings = [{"kind": finding.kind, "probe": finding.probe, "why": finding.why} for finding in result.findings]
    return {
        "name": result.subject.name,
        "version": result.subject.version,
        "verdicts": {style.key: count for style, count in words.counts(result).items()},
        "deviations": deviations,
        "findings": findings,
        "problems": result.problems,
        "not_applicable": result.not_applicable,
    }


def could_not_be_run(result: AuditResult) -> list[str]:
    decided = (State.PASS, State.DEVIATES)
    return [
        printable(subject.subject.name)
        for subject in result.subjects
        if subject.problems and not any(verdict.state in decided for verdict in subject.verdicts)
    ]


def comparison(found: Comparison) -> Iterator[str]:
    for name, (before, now) in found.versions.items():
        versions = before if before == now else f"{before} then, {now} now"
        yield click.style(printable(f"{name} {versions}".rstrip()), bold=True)
        yield from (f"  {_changed(change)}" for change in found.changes if change.subject == name)
    for change in found.changes:
        if change.subject not in found.versions:
            yield f"{printable(change.subject)}: {change.kind}"
    kinds = [change.kind for change in found.changes]
    parts = [f"{kinds.count(kind)} {kind}" for kind in Kind if kind in kinds]
    yield ", ".join([*parts, f"{found.same} as before"])


def _changed(change: Change) -> str:
    sign, color = _SIGNS.get(change.kind, ("+" if change.kind is Kind.NEW else "-", "bright_black"))
    reason = f": {change.why}" if change.why and change.kind is not Kind.GONE else ""
    states = " → ".join(each for each in (change.before, change.now) if each)
    head = click.style(f"{sign} {change.kind} {printable(change.what)}", fg=color)
    return f"{head}  {printable(states + reason)}"
