"""The HTML page: findings by client, group and topic, then settings. It is self-contained and has no scripts."""

from collections.abc import Mapping
from typing import Any

from sluice.lint.findings import Client, Result
from sluice.lint.rule import Rule
from sluice.text.error_text import printable
from sluice.text.html_page import environment

from .remedies import remedies
from .text import moment


def page(result: Result, rules: Mapping[str, Rule[Any]], source: str) -> str:
    templates = environment("sluice.lint.report")
    templates.filters |= {"moment": moment, "printable": printable, "seconds": _seconds}
    return templates.get_template("lint.html").render(result=result, rules=rules, source=source, remedies=remedies)


def _seconds(client: Client) -> str:
    return f"{(client.ended_ns - client.began_ns) / 1e9:,.0f} s"
