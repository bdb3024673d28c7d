"""The result as a JSON document."""

from collections.abc import Mapping
from typing import Any

from sluice.lint.findings import Finding, Result
from sluice.lint.rule import Rule

from .remedies import remedies


def document(result: Result, rules: Mapping[str, Rule[Any]], source: str) -> dict[str, object]:
    """Return the result as values that can be encoded as JSON."""
    return {
        "version": 1,
        "source": source,
        "events": result.events,
        "lost": result.lost,
        "clients": [
            {"client": each.key, "requests": each.requests, "began_ns": each.began_ns, "ended_ns": each.ended_ns,
             "settings": each.settings}
            for each in result.clients
        ],
        "findings": [_finding(each, rules[each.rule]) for each in result.findings],
        "undecided": result.undecided,
    }  # fmt: skip


def _finding(finding: Finding, rule: Rule[Any]) -> dict[str, object]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "scope": finding.scope,
        "subject": finding.subject,
        "clients": finding.clients,
        "title": rule.title,
        "why": rule.why,
        "citation": rule.citation,
        "evidence": [
            {"text": each.text, "examples": [example._asdict() for example in each.examples]}
            for each in finding.evidence
        ],
        "remedies": dict(remedies(rule.remedy, finding.clients)),
    }
