"""The tables of docs/scenarios.md, from the types and the catalogue: `python -m tests.docs.scenarios` writes them."""

import inspect
from pathlib import Path

from sluice.broker.scenarios.durations import format_duration
from sluice.broker.scenarios.files import Entry, entries
from sluice.broker.scenarios.model import (
    AlterConfig,
    CreateTopic,
    Elect,
    Entity,
    MoveLeader,
    Quota,
    Repeat,
    Scenario,
    Step,
)

PAGE = Path(__file__).parents[2] / "docs" / "scenarios.md"
_MODEL = ("<!-- made from broker/scenarios: begin -->", "<!-- end -->")
_CATALOGUE = ("<!-- the catalogue, made from broker/scenarios/catalogue: begin -->", "<!-- the catalogue: end -->")
_PARTS = {
    "The file": Scenario,
    "A step": Step,
    "`move_leader`": MoveLeader,
    "`elect`": Elect,
    "`quota`, and an item of `quotas`": Quota,
    "`remove_quota`": Entity,
    "`alter_config`": AlterConfig,
    "`create_topic`, and an item of `topics`": CreateTopic,
    "`repeat`": Repeat,
}


def page_with_tables(text: str) -> str:
    """The page with the tables as they are to be."""
    model = "\n\n".join(_section(title, struct) for title, struct in _PARTS.items())
    return _put(_CATALOGUE, _catalogue(), _put(_MODEL, model, text))


def _put(marks: tuple[str, str], what: str, text: str) -> str:
    before, rest = text.split(marks[0])
    _, after = rest.split(marks[1], 1)
    return f"{before}{marks[0]}\n\n{what}\n\n{marks[1]}{after}"


def _section(title: str, struct: type) -> str:
    first, *rest = inspect.cleandoc(struct.__doc__ or "").splitlines()
    rows = [line.partition(": ") for line in rest if line]
    lines = [f"### {title}", "", first, "", "| field | what it is |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {words} |" for name, _, words in rows)])


def _catalogue() -> str:
    head = ["| name | what it shows | takes | loses records |", "|---|---|---|---|"]
    return "\n".join([*head, *map(_row, entries())])


def _row(one: Entry) -> str:
    loses = "yes" if one.loses_records else ""
    return f"| `{one.name}` | {one.description} | {format_duration(one.duration_ms)} | {loses} |"


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text()))
