"""The commands of `sluice audit` on existing reports, and the files and the output of a judged audit."""

from collections.abc import Iterable
from pathlib import Path

import click
import msgspec

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import AuditResult
from sluice.audit.probes import PROBES
from sluice.audit.report.comparison import Kind
from sluice.audit.report.comparison import compare as compared
from sluice.audit.report.files import read_report, write_report
from sluice.audit.report.traces import has_cases, write_traces
from sluice.audit.report.words import in_order
from sluice.audit.runs.observation_files import judge_again, observation_file, read_observations
from sluice.audit.subjects import SUBJECTS
from sluice.cli.text_table import table
from sluice.cli.written_file import write_file
from sluice.errors import ConfigError
from sluice.text.error_text import one_of
from sluice.text.json_text import json_text

from .selection import chosen_settings
from .text import comparison, summary, summary_json


def write_and_print(result: AuditResult, out: Path, measured: Path, output_format: str) -> None:
    """Write report and traces into `out`, from the observations in `measured`. Raises SluiceError."""
    files = write_report(result, out, {each.id: each.text for each in STATEMENTS.values()})
    traces = []
    for number, subject in enumerate(result.subjects):
        observations = observation_file(measured, number)
        if has_cases(subject) and observations.exists():
            traces += write_traces(number, subject, read_observations(observations), out)
    if output_format == "json":
        click.echo(summary_json(result, files))
    else:
        click.echo("\n".join(summary(result, files, traces, measured)))


def compare(before: Path, now: Path, fail_on_worse: bool, output_format: str) -> None:
    found = compared(read_report(before), read_report(now))
    if output_format == "json":
        click.echo(json_text(found))
    else:
        click.echo("\n".join(comparison(found)))
    if fail_on_worse and any(change.kind is Kind.WORSE for change in found.changes):
        raise SystemExit(1)


def judge(report: Path, settings: tuple[str, ...], like: str | None, out: Path | None, output_format: str) -> None:
    result = judge_again(read_report(report), report, chosen_settings(settings, like))
    write_and_print(result, out or report, report, output_format)


def journal(report: Path, file: Path, subject: str | None, probe: str | None, repetition: int) -> None:
    subjects = [each.subject.name for each in read_report(report).subjects]
    number = subjects.index(_chosen("--subject", subjects, subject))
    runs = read_observations(observation_file(report, number))
    chosen = _chosen("--probe", dict.fromkeys(run.probe for run in runs), probe)
    found = {str(run.repetition): run for run in sorted(runs, key=lambda run: run.repetition) if run.probe == chosen}
    events = found[_chosen("--repetition", found, str(repetition))].events
    write_file(file, b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    click.echo(f"{file}: {len(events)} events")


def _chosen(option: str, names: Iterable[str], name: str | None) -> str:
    """Return the given name if it exists; without one, the only name."""
    known = [*names]
    if name is None and len(known) == 1:
        return known[0]
    if name not in known:
        raise ConfigError(f"{option}: {one_of(known, 'none' if name is None else name)}")
    assert name is not None
    return name


_Rows = list[dict[str, str]]


def as_text(what: str) -> str:
    parts = [_table(_LISTS[name]()) for name in _names(what)]
    return "\n\n".join(parts)


def as_json(what: str) -> str:
    lists = {name: _LISTS[name]() for name in _names(what)}
    return json_text(lists)


def _names(what: str) -> list[str]:
    return list(_LISTS) if what == "all" else [what]


def _table(rows: _Rows) -> str:
    head = [name.upper() for name in rows[0]]
    return "\n".join(table(head, [list(row.values()) for row in rows]))


def _subjects() -> _Rows:
    return [
        {
            "subject": each.name,
            "version": each.version() or "-",
            "time": "virtual" if each.virtual else "real",
            "note": each.missing() or "",
        }
        for each in SUBJECTS.values()
    ]


def _probes() -> _Rows:
    return [
        {"probe": each.name, "role": each.role, "for": " ".join(in_order(each.statements)) or "-", "what": each.what}
        for each in PROBES.values()
    ]


def _statements() -> _Rows:
    return [
        {
            "statement": each.id,
            "seen": "no" if each.unobservable else "yes",
            "text": f"{each.text} Not observable: {each.unobservable}" if each.unobservable else each.text,
        }
        for each in (STATEMENTS[statement] for statement in in_order(STATEMENTS))
    ]


_LISTS = {"subjects": _subjects, "probes": _probes, "statements": _statements}
