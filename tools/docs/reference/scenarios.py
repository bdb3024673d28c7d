"""The tables of docs/scenarios.md from the types and the catalogue."""

import inspect
import types
import typing
from pathlib import Path

import msgspec

from sluice.broker.faults.rule import Rule
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
from tools.docs.tables import code, put, table

PAGE = Path(__file__).parents[3] / "docs" / "scenarios.md"
_MODEL = ("<!-- generated from broker/scenarios: begin -->", "<!-- end -->")
_CATALOGUE = ("<!-- catalogue, generated from broker/scenarios/catalogue: begin -->", "<!-- catalogue: end -->")
_PARTS: dict[str, type[msgspec.Struct]] = {
    "File": Scenario,
    "Step": Step,
    "`move_leader`": MoveLeader,
    "`elect`": Elect,
    "`quota` and `quotas`": Quota,
    "`remove_quota`": Entity,
    "`alter_config`": AlterConfig,
    "`create_topic` and `topics`": CreateTopic,
    "`repeat`": Repeat,
}
_NAMES = {
    str: "text",
    bool: "true or false",
    Rule: "fault rule",
    Step: "step",
    MoveLeader: "`move_leader`",
    Elect: "`elect`",
    Quota: "`quota`",
    Entity: "`remove_quota`",
    AlterConfig: "`alter_config`",
    CreateTopic: "`create_topic`",
    Repeat: "`repeat`",
}
# Descriptions in the types -> a shorter text for the column.
_SHORT = {
    "a duration such as 250ms, 5s or 2m, or a number of milliseconds": "duration",
    "lower-case letters, digits and hyphens, such as rolling-restart": "text",
    "text of at least one character": "text",
    "a number of at least 0": "number",
    'a number, or bytes per second such as "2M"': "number or text",
    "text, a number, true or false": "text, number or boolean",
}


def page_with_tables(text: str) -> str:
    """Return the page with current tables."""
    model = "\n\n".join(_section(title, struct) for title, struct in _PARTS.items())
    return put(_CATALOGUE, _catalogue(), put(_MODEL, model, text))


def _section(title: str, struct: type[msgspec.Struct]) -> str:
    first, *rest = inspect.cleandoc(struct.__doc__ or "").splitlines()
    if struct is Quota:  # a quota also has the fields of its entity
        rest = [*inspect.cleandoc(Entity.__doc__ or "").splitlines()[1:], *rest]
    hints = typing.get_type_hints(struct, include_extras=True)
    defaults = {field.name: field.default for field in msgspec.structs.fields(struct) if not field.required}
    rows = []
    for name, _, description in (line.partition(": ") for line in rest if line):
        default = defaults.get(name, msgspec.NODEFAULT)
        shown = "required" if name not in defaults else code(_json(default)) if _is_shown(default) else ""
        rows.append([code(name), _type(hints[name]), shown, description])
    return f"### {title}\n\n{first}\n\n{table(('field', 'type', 'default', 'description'), rows)}".rstrip()


def _is_shown(default: object) -> bool:
    return default not in (msgspec.UNSET, msgspec.NODEFAULT, "", ())


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _type(declared: typing.Any) -> str:
    origin, parts = typing.get_origin(declared), typing.get_args(declared)
    if origin is typing.Annotated:
        description = declared.__metadata__[0].description
        return _SHORT.get(description, str(description).removeprefix("a "))
    if origin in (typing.Union, types.UnionType):
        return ", ".join(_type(part) for part in parts if part is not msgspec.UnsetType)
    if origin is typing.Literal:
        return " or ".join(map(code, parts))
    if origin is tuple:
        return f"list: {_type(parts[0])}"
    if origin is dict:
        return "table"
    return _NAMES[declared]


def _catalogue() -> str:
    head = ("name", "situation", "duration", "loses records")
    return table(head, [_row(one) for one in entries()]).rstrip()


def _row(one: Entry) -> list[str]:
    loses = "yes" if one.loses_records else ""
    return [code(one.name), one.description, format_duration(one.duration_ms), loses]
