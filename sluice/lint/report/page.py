"""The HTML page: findings by client, group and topic, then settings. It is self-contained and has no scripts."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sluice.lint.findings import Client
from sluice.lint.rule import Rule
from sluice.lint.run import Result
from sluice.text.html_page import environment
from sluice.text.printable import printable

from .remedies import remedies


def page(result: Result, rules: Mapping[str, Rule[Any]], source: str) -> str:
    templates = environment("sluice.lint.report")
    templates.filters |= {"moment": moment, "printable": printable, "seconds": _seconds}
    return templates.get_template("lint.html").render(result=result, rules=rules, source=source, remedies=remedies)


def moment(at_ns: int) -> str:
    """Return the time of day in UTC, with milliseconds."""
    at = datetime.fromtimestamp(at_ns // 1_000_000_000, UTC)
    return f"{at:%H:%M:%S}.{at_ns // 1_000_000 % 1000:03}"


def _seconds(client: Client) -> str:
    return f"{(client.ended_ns - client.began_ns) / 1e9:,.0f} s"
