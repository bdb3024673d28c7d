"""The JSON Schema of a scenario file, made from the types: docs/scenario.schema.json. Editors check files against it.

It accepts all that can be run, and some that cannot: what contradicts itself over time only sluice finds.
"""

from collections.abc import Iterator
from inspect import cleandoc

import msgspec

from .model import Scenario
from .timeline import ACTIONS

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_Schema = dict[str, object]


def schema() -> _Schema:
    """The schema, with what the docstrings tell of fields as their descriptions."""
    made = msgspec.json.schema(Scenario)
    definitions = _table(made["$defs"])
    for definition in definitions.values():
        _describe(_table(definition))
    _table(definitions["Step"])["oneOf"] = [{"required": [kind]} for kind in ACTIONS]
    return {"$schema": _DIALECT, "title": "A scenario of sluice", **made}


def schema_text() -> str:
    """The same as the text of a file."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n"


def _describe(definition: _Schema) -> None:
    lines = cleandoc(str(definition.get("description", ""))).splitlines()
    fields = _table(definition.get("properties", {}))
    told = {name: words for name, words in _told(lines) if name in fields}
    for name, words in told.items():
        field = _table(fields[name])
        accepted = field.pop("description", None)
        fields[name] = {"description": f"{words} ({accepted})" if accepted else words, **field}
    if told:
        rest = [line for line in lines if line.partition(":")[0] not in told]
        definition["description"] = " ".join(rest).strip()


def _told(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, colon, words = line.partition(": ")
        if colon and name.isidentifier():
            yield name, words


def _table(value: object) -> _Schema:
    assert isinstance(value, dict)
    return value
