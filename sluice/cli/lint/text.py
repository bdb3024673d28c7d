"""The output of lint on a terminal: clients, findings with evidence and remedies, and rules."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from sluice.cli.text_table import table
from sluice.lint.findings import Finding, Result
from sluice.lint.report.remedies import NAMES
from sluice.lint.report.text import finding_lines
from sluice.lint.rule import Rule, Severity
from sluice.text.error_text import printable

_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def result_lines(result: Result, rules: Mapping[str, Rule[Any]], source: str, known: int) -> Iterator[str]:
    lost = f", and {result.lost:,} more that the journal no longer had" if result.lost else ""
    count = len(result.clients)
    yield f"{printable(source)}: {result.events:,} events{lost}, {count:,} client{'s' * (count != 1)}"
    if result.clients:
        yield ""
        yield from _clients(result)
    for finding in result.findings:
        yield ""
        yield from _finding(finding, rules[finding.rule])
    yield ""
    yield _summary(result, known)


def settings_lines(result: Result) -> Iterator[str]:
    for client in result.clients:
        yield ""
        yield click.style(printable(str(client.key)), bold=True)
        if client.settings:
            rows = [[each.name, each.value, each.certainty, each.basis] for each in client.settings]
            yield from table(["setting", "value", "certainty", "shown by"], rows)


def undecided_lines(result: Result) -> Iterator[str]:
    for each in result.undecided:
        yield f"not decided: {each.rule}, {each.scope} {printable(each.subject)}: {each.record}"


def rule_lines(rules: Iterable[Rule[Any]]) -> list[str]:
    return table(["rule", "severity", "about", "finds"], [[r.id, r.severity, r.scope, r.title] for r in rules])


def explained(rule: Rule[Any]) -> Iterator[str]:
    yield f"{click.style(rule.id, bold=True)}: {rule.title} ({rule.severity}, about each {rule.scope})"
    yield ""
    yield rule.why
    yield ""
    yield f'{rule.citation.where}: "{rule.citation.words}"'
    yield rule.citation.url
    yield ""
    for field, name in NAMES.items():
        yield f"{name}: {getattr(rule.remedy, field) or 'no such setting'}"
    yield ""
    yield f"Silent: {rule.silent}"


def _clients(result: Result) -> list[str]:
    counts = {each.key: Counter[str]() for each in result.clients}
    for finding in result.findings:
        for key in finding.clients:
            if key in counts:
                counts[key][finding.severity] += 1
    rows = [
        [
            each.key.client_id or "(no client id)",
            f"{each.key.software_name} {each.key.software_version}".strip(),
            f"{each.requests:,}",
            ", ".join(f"{counts[each.key][name]} {name}" for name in Severity if counts[each.key][name]) or "none",
        ]
        for each in result.clients
    ]
    return table(["client id", "software", "requests", "findings"], rows)


def _finding(finding: Finding, rule: Rule[Any]) -> Iterator[str]:
    first, *others = finding_lines(finding, rule)
    yield click.style(finding.severity, fg=_COLORS[finding.severity], bold=True) + first.removeprefix(finding.severity)
    yield from others


def _summary(result: Result, known: int) -> str:
    counts = Counter(each.severity for each in result.findings)
    found = ", ".join(f"{counts[name]} {name}" for name in Severity if counts[name]) or "no findings"
    hidden = f"; {known} known in the baseline" if known else ""
    undecided = f"; {len(result.undecided)} rules not decided (--undecided)" if result.undecided else ""
    return f"{found}{hidden}{undecided}"
