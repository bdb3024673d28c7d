"""Values as readable JSON, and JSON Schemas of types; the descriptions of fields come from docstrings."""

import re
from collections.abc import Iterator
from inspect import cleandoc

import msgspec

# C1 controls and DEL, and the invisible characters that reorder or hide text; JSON itself escapes the C0 controls.
_HIDDEN = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def json_text(value: object) -> str:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


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
