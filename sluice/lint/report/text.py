"""Findings as plain text."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sluice.lint.findings import Finding
from sluice.lint.rule import Evidence, Rule
from sluice.text.error_text import printable

from .remedies import remedies


def moment(at_ns: int) -> str:
    """Return the time of day in UTC, with milliseconds."""
    return datetime.fromtimestamp(at_ns // 1_000_000 / 1e3, UTC).strftime("%H:%M:%S.%f")[:-3]


def finding_lines(finding: Finding, rule: Rule[Any]) -> Iterator[str]:
    """Yield what was found, the evidence and the remedies; the first line begins with the severity."""
    yield f"{finding.severity} {rule.id}: {finding.scope} {printable(finding.subject)}"
    for each in finding.evidence:
        yield f"  {printable(each.text)}{_examples(each)}"
    for name, change in remedies(rule.remedy, finding.clients):
        yield f"  {name}: {change}"


def _examples(evidence: Evidence) -> str:
    if not evidence.examples:
        return ""
    first = evidence.examples[0]
    more = f" and {len(evidence.examples) - 1} more" if len(evidence.examples) > 1 else ""
    return f" (event {first.seq} at {moment(first.at_ns)}{more})"
