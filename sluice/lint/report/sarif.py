"""SARIF 2.1.0, which code hosts show in code review.

GitHub rejects a file in which a result has no physical location, and shows a result in a review if its location is in
the changed files. So the location is a file that the user names, such as the configuration of the client, or else the
journal. The logical location is the client, group or topic.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from sluice.lint.findings import Finding, Result
from sluice.lint.rule import Rule, Severity
from sluice.version import __version__

from .remedies import NAMES, remedies

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif(result: Result, rules: Mapping[str, Rule[Any]], location: str) -> dict[str, object]:
    """Return the log; `location` is the path of the file that all results refer to, relative to the repository."""
    indexes = {name: number for number, name in enumerate(rules)}
    driver = {"name": "sluice lint", "semanticVersion": __version__, "rules": [_rule(rule) for rule in rules.values()]}
    results = [_result(each, rules[each.rule], indexes[each.rule], location) for each in result.findings]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _rule(rule: Rule[Any]) -> dict[str, object]:
    changes = [(name, getattr(rule.remedy, field)) for field, name in NAMES.items()]
    text = "\n".join(f"{name}: {change}" for name, change in changes if change)
    markdown = "\n".join(f"- {name}: `{change}`" for name, change in changes if change)
    quoted = f'{rule.citation.where}: "{rule.citation.words}"'
    return {
        "id": rule.id,
        "name": "".join(part.capitalize() for part in rule.id.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "helpUri": rule.citation.url,
        "help": {"text": f"{rule.why}\n{quoted}\n{text}", "markdown": f"{rule.why}\n\n> {quoted}\n\n{markdown}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["kafka", str(rule.scope)], "precision": "high"},
    }


def _result(finding: Finding, rule: Rule[Any], index: int, location: str) -> dict[str, object]:
    lines = [f"{finding.subject}: {rule.title}", *(f"{each.text}." for each in finding.evidence)]
    lines += [f"{name}: {change}" for name, change in remedies(rule.remedy, finding.clients)]
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": "\n".join(lines)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(location, safe="/:")},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"fullyQualifiedName": finding.subject, "kind": str(finding.scope)}],
            }
        ],
        "partialFingerprints": {"sluiceFinding/v1": sha256(" ".join(finding.identity).encode()).hexdigest()[:32]},
    }
