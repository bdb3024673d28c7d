"""One run of `sluice pipeline lint`, and its summary. Needs pyarrow and PySpark."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from sluice.cli.text_table import table
from sluice.lint.rule import Rule
from sluice.spark.failures import spark_errors_in_one_line
from sluice.spark.lint.job import SETTINGS, lint_journals, sources_of
from sluice.spark.lint.summary import SummaryRow, summary_rows
from sluice.spark.session import open_session_without_kafka
from sluice.text.json_text import json_text


def run(
    inputs: Sequence[str],
    output: str,
    rules: Mapping[str, Rule[Any]],
    master: str,
    conf: Mapping[str, str],
    output_format: str,
) -> None:
    sources = sources_of(inputs)
    with spark_errors_in_one_line():
        session = open_session_without_kafka("sluice lint", master=master, settings={**SETTINGS, **conf})
        found = lint_journals(session, sources, inputs, list(rules), Path(output))
    rows = summary_rows(found, rules)
    clients = sum(count for key, count in found.findings.items() if not key.rule)
    counts = {"events": found.events, "lost": found.lost, "quarantined": found.quarantined, "clients": clients}
    if output_format == "json":
        click.echo(json_text({"output": output, **counts, "summary": [each._asdict() for each in rows]}))
        return
    click.echo(", ".join(f"{count:,} {name}" for name, count in counts.items() if count))
    if rows:
        click.echo("\n".join(table(["rule", "severity", "about", "software", "found in", "of"], [*map(_cells, rows)])))
    click.echo(f"tables: {output}")


def _cells(row: SummaryRow) -> list[str]:
    of = "" if row.of is None else f"{row.of:,}"
    return [row.rule, row.severity, row.scope, row.software, f"{row.found:,}", of]
