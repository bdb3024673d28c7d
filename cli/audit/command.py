"""`sluice audit`."""

from pathlib import Path

import click

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.report.comparison import Kind
from sluice.audit.report.comparison import compare as compared
from sluice.audit.report.files import read_report, write_report
from sluice.audit.report.schema import schema_text
from sluice.audit.runs.judge_again import judge_again
from sluice.cli.commands import Group
from sluice.cli.options import format_option
from sluice.text.json_text import json_text

from .like import like_option
from .lists import as_json, as_text
from .run import run
from .selection import chosen_settings
from .text import comparison, summary, summary_json

_REPORT = click.Path(path_type=Path)


@click.group(cls=Group)
def audit() -> None:
    """Measure how clients behave when brokers fail, and find deviations from the KIPs."""


audit.add_command(run)


@audit.command("list")
@click.argument("what", type=click.Choice(["all", "subjects", "probes", "statements"]), default="all")
@format_option
def list_(what: str, output_format: str) -> None:
    """List the available clients, the probes, and the statements that they test."""
    click.echo(as_json(what) if output_format == "json" else as_text(what))


@audit.command()
@click.argument("before", type=_REPORT)
@click.argument("now", type=_REPORT)
@click.option("--fail-on-worse", is_flag=True, help="Exit with 1 if anything is worse.")
@format_option
def compare(before: Path, now: Path, fail_on_worse: bool, output_format: str) -> None:
    """Compare two reports, given as folders of `sluice audit run` or as report.json files."""
    found = compared(read_report(before), read_report(now))
    if output_format == "json":
        click.echo(json_text(found))
    else:
        click.echo("\n".join(comparison(found)))
    if fail_on_worse and any(change.kind is Kind.WORSE for change in found.changes):
        raise SystemExit(1)


@audit.command("judge")
@click.argument("report", type=_REPORT)
@click.option(
    "--setting", "settings", multiple=True, metavar="NAME=VALUE",
    help="Setting of the commands by Kafka's name, such as retry.backoff.ms=100; repeatable.",
)  # fmt: skip
@like_option
@click.option("--out", type=_REPORT, help="Folder for the new report.  [default: REPORT]")
@format_option
def judge(report: Path, settings: tuple[str, ...], like: str | None, out: Path | None, output_format: str) -> None:
    """Judge a report of `sluice audit run` again, with more settings, without measuring again."""
    result = judge_again(read_report(report), report, chosen_settings(settings, like))
    files = write_report(result, out or report, {each.id: each.text for each in STATEMENTS.values()})
    click.echo(summary_json(result, files) if output_format == "json" else "\n".join(summary(result, files, report)))


@audit.command()
def schema() -> None:
    """Print the JSON Schema of report.json."""
    click.echo(schema_text(), nl=False)
