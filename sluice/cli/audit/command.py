"""`sluice audit`."""

from pathlib import Path
from types import ModuleType

import click

from sluice.cli.commands import Group, Integer
from sluice.cli.options import format_option

from .run import like_option, run

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
    from .reports import as_json, as_text

    click.echo(as_json(what) if output_format == "json" else as_text(what))


@audit.command()
@click.argument("before", type=_REPORT)
@click.argument("now", type=_REPORT)
@click.option("--fail-on-worse", is_flag=True, help="Exit with 1 if anything is worse.")
@format_option
def compare(before: Path, now: Path, fail_on_worse: bool, output_format: str) -> None:
    """Compare two reports, given as folders of `sluice audit run` or as report.json files."""
    _reports().compare(before, now, fail_on_worse, output_format)


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
    _reports().judge(report, settings, like, out, output_format)


@audit.command("journal")
@click.argument("report", type=_REPORT)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--subject", metavar="NAME", help="Client of the run.  [default: the only one]")
@click.option("--probe", metavar="ID", help="Probe of the run.  [default: the only one]")
@click.option("--repetition", type=Integer(0), default=0, show_default=True, metavar="N", help="Number of the run.")
def journal(report: Path, file: Path, subject: str | None, probe: str | None, repetition: int) -> None:
    """Write the journal of one run of `sluice audit run` to FILE, for `sluice trace` and `sluice lint`."""
    _reports().journal(report, file, subject, probe, repetition)


@audit.command()
def schema() -> None:
    """Print the JSON Schema of report.json."""
    from sluice.audit.report.files import schema_text

    click.echo(schema_text(), nl=False)


def _reports() -> ModuleType:
    """Return the module of the commands on existing reports, which loads what an audit needs."""
    from . import reports

    return reports
