"""The table of rules in docs/lint.md."""

from pathlib import Path

from sluice.lint.registry import all_rules
from tools.docs.tables import code, put, table

PAGE = Path(__file__).parents[3] / "docs" / "lint.md"
_MARKS = ("<!-- generated from sluice/lint/rules: begin -->", "<!-- end -->")


def page_with_table(text: str) -> str:
    rows = []
    for rule in all_rules().values():
        finds = f"{rule.title} ([{rule.citation.where}]({rule.citation.url}))"
        rows.append([code(rule.id), rule.severity, rule.scope, finds, rule.silent])
    return put(_MARKS, table(["rule", "severity", "about", "finds", "silent"], rows).rstrip(), text)
