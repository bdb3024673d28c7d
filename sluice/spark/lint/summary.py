"""The summary of the lint job: by rule and software version, the clients with a finding."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sluice.lint.rule import Rule, Scope

from .job import Count, Summary


class SummaryRow(NamedTuple):
    """One rule and software version, or one rule about groups or topics.

    found: number of clients, groups or topics with a finding
    of: number of all clients with the software version; null for groups and topics
    """

    rule: str
    severity: str
    scope: str
    software: str
    found: int
    of: int | None


def summary_rows(summary: Summary, rules: Mapping[str, Rule[Any]]) -> list[SummaryRow]:
    """Return the rows with findings, in the order of the rules, most clients first."""
    return [row for rule in rules.values() for row in _rows(summary, rule)]


def _rows(summary: Summary, rule: Rule[Any]) -> Iterator[SummaryRow]:
    if rule.scope is not Scope.CLIENT:
        found = summary.subjects.get(rule.id, 0)
        if found:
            yield SummaryRow(rule.id, rule.severity, rule.scope, "", found, None)
        return
    of_rule = [(count, key) for key, count in summary.findings.items() if key.rule == rule.id]
    for count, (_, name, version) in sorted(of_rule, key=lambda each: (-each[0], each[1])):
        total = summary.findings[Count("", name, version)]
        yield SummaryRow(rule.id, rule.severity, rule.scope, f"{name} {version}".strip(), count, total)
