"""The commands of `sluice audit` on existing reports."""

from pathlib import Path

import click

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.report.comparison import Kind
from sluice.audit.report.comparison import compare as compared
from sluice.audit.report.files import read_report, write_report
from sluice.audit.runs.judge_again import judge_again
from sluice.text.json_text import json_text

from .selection import chosen_settings
from .text import comparison, summary, summary_json


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
    files = write_report(result, out or report, {each.id: each.text for each in STATEMENTS.values()})
    click.echo(summary_json(result, files) if output_format == "json" else "\n".join(summary(result, files, report)))
