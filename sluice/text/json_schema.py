"""JSON Schemas of types for publication; the descriptions of fields come from docstrings."""

from collections.abc import Iterator
from inspect import cleandoc

import msgspec

from .json_text import json_text

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, object]


def schema_of(type_: type, title: str) -> Schema:
    made = msgspec.json.schema(type_)
    for definition in table(made["$defs"]).values():
        describe_fields(table(definition))
    return {"$schema": _DIALECT, "title": title, **made}


def text_of(schema: Schema) -> str:
    return json_text(schema) + "\n"


def table(value: object) -> Schema:
    assert isinstance(value, dict)
    return value


def describe_fields(definition: Schema) -> None:
    """Move the lines `name: text` of a type's docstring to its fields; indented lines continue the previous one."""
    lines = cleandoc(str(definition.get("description", ""))).replace("\n    ", " ").splitlines()
    fields = table(definition.get("properties", {}))
    described = {name: text for name, text in _described_fields(lines) if name in fields}
    for name, text in described.items():
        field = table(fields[name])
        accepted = field.pop("description", None)
        fields[name] = {"description": f"{text} ({accepted})" if accepted else text, **field}
    if described:
        rest = [line for line in lines if line.partition(":")[0] not in described]
        definition["description"] = " ".join(rest).strip()


def _described_fields(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, colon, text = line.partition(": ")
        if colon and name.isidentifier():
            yield name, text
