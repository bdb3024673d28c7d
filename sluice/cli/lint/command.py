"""`sluice lint`."""

from collections.abc import Collection
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import click
import msgspec

from sluice.cli.commands import Command
from sluice.cli.journal.sources import read_events
from sluice.cli.options import format_option
from sluice.cli.written_file import write_file
from sluice.errors import SluiceError
from sluice.lint.baseline import baseline as baseline_of
from sluice.lint.baseline import read_baseline
from sluice.lint.findings import Identity, Result
from sluice.lint.report.document import document
from sluice.lint.report.junit import junit as junit_of
from sluice.lint.report.sarif import sarif as sarif_of
from sluice.lint.rule import Severity
from sluice.lint.run import fold
from sluice.text.json_text import json_text

from .rules import chosen_rules, complete_rules
from .text import explained, result_lines, rule_lines, settings_lines, undecided_lines

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(cls=Command)
@click.argument("source", required=False)
@click.option("--settings", is_flag=True, help="Show the settings that requests show, with their certainty.")
@click.option("--undecided", is_flag=True, help="Show rules without enough evidence, and what to record.")
@click.option("--client-id", multiple=True, metavar="ID", help="Client id of the findings; repeatable.")
@click.option(
    "--rule",
    "rule_ids",
    multiple=True,
    metavar="RULE",
    shell_complete=complete_rules,
    help="Rule to apply; repeatable.",
)
@click.option(
    "--fail-on", type=click.Choice([*map(str, Severity), "never"]), default="error", show_default=True,
    help="Lowest severity of findings that make the exit code 1.",
)  # fmt: skip
@format_option
@click.option("--html", type=_FILE, metavar="FILE", help="HTML report to write.")
@click.option("--junit", type=_FILE, metavar="FILE", help="JUnit XML to write.")
@click.option("--sarif", type=_FILE, metavar="FILE", help="SARIF to write.")
@click.option(
    "--sarif-location", metavar="PATH",
    help="File of the repository that SARIF results refer to, such as the client's configuration.  [default: SOURCE]",
)  # fmt: skip
@click.option("--baseline", type=_FILE, metavar="FILE", help="File with known findings, which are not reported.")
@click.option("--write-baseline", type=_FILE, metavar="FILE", help="File to write with all findings as known.")
@click.option("--token", help="Token of the admin port (sluice.admin.token).")
@click.option("--list-rules", is_flag=True, help="List the rules and exit.")
@click.option("--explain", metavar="RULE", shell_complete=complete_rules, help="Show a rule and exit.")
def lint(
    source: str | None,
    settings: bool,
    undecided: bool,
    client_id: tuple[str, ...],
    rule_ids: tuple[str, ...],
    fail_on: str,
    output_format: str,
    html: Path | None,
    junit: Path | None,
    sarif: Path | None,
    sarif_location: str | None,
    baseline: Path | None,
    write_baseline: Path | None,
    token: str | None,
    list_rules: bool,
    explain: str | None,
) -> None:
    """Judge the settings and the behaviour of clients by their requests in a journal.

    SOURCE is a file (`sluice journal export`, as NDJSON, in gzip or Parquet; or Kafka's request log), - for standard
    input, the URL of an admin port, or kafka://HOST:PORT/TOPIC.
    """
    if explain is not None:
        click.echo("\n".join(explained(chosen_rules((explain,), "--explain")[explain])))
        return
    rules = chosen_rules(rule_ids)
    if list_rules:
        click.echo("\n".join(rule_lines(rules.values())))
        return
    if source is None:
        raise click.UsageError("SOURCE: missing; expected a file, -, or the URL of an admin port or a topic")
    if html is not None and find_spec("jinja2") is None:
        raise SluiceError("jinja2 is not installed; run pip install 'kafka-sluice[audit]'")
    known = set() if baseline is None else read_baseline(baseline)
    result = _of_clients(fold(read_events(source, token)).result(list(rules.values())), client_id)
    if write_baseline is not None:
        write_file(write_baseline, baseline_of(result.findings))
    result, hidden = _without(result, known)
    failing = [] if fail_on == "never" else Severity(fail_on).and_worse
    if html is not None:
        from sluice.lint.report.page import page

        write_file(html, page(result, rules, source))
    if junit is not None:
        write_file(junit, junit_of(result, rules, failing))
    if sarif is not None:
        write_file(sarif, json_text(sarif_of(result, rules, sarif_location or source)) + "\n")
    if output_format == "json":
        click.echo(json_text(document(result, rules, source)))
    else:
        lines = chain(
            result_lines(result, rules, source, hidden),
            settings_lines(result) if settings else (),
            undecided_lines(result) if undecided else (),
        )
        click.echo("\n".join(lines))
    if any(each.severity in failing for each in result.findings):
        raise SystemExit(1)


def _of_clients(result: Result, client_ids: Collection[str]) -> Result:
    """Leave out what does not concern these client ids, if any are given."""
    if not client_ids:
        return result
    return msgspec.structs.replace(
        result,
        clients=[each for each in result.clients if each.key.client_id in client_ids],
        findings=[each for each in result.findings if any(key.client_id in client_ids for key in each.clients)],
        undecided=[each for each in result.undecided if any(key.client_id in client_ids for key in each.clients)],
    )


def _without(result: Result, known: Collection[Identity]) -> tuple[Result, int]:
    """Leave out known findings; return also their number."""
    new = [each for each in result.findings if each.identity not in known]
    return msgspec.structs.replace(result, findings=new), len(result.findings) - len(new)
