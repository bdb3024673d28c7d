"""The files and the output of a judged audit."""

from pathlib import Path

import click

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import AuditResult
from sluice.audit.report.files import write_report
from sluice.audit.report.traces import has_cases, write_traces
from sluice.audit.runs.observation_files import observation_file, read_observations

from .text import summary, summary_json


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
