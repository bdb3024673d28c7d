"""The reference page of the HTTP API, generated from docs/openapi.json."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.docs.tables import code, table

_DOCUMENT = Path(__file__).parents[3] / "docs/openapi.json"
_METHODS = ("get", "post", "put", "delete")
_MANY = 12  # an enumeration above this is shortened: the names of all APIs fill a page
Schema = Mapping[str, Any]


def http_page() -> str:
    """Return the page: each operation with its parameters, then the schemas."""
    document: dict[str, Any] = json.loads(_DOCUMENT.read_text(encoding="utf-8"))
    operations = [
        (method, path, item[method])
        for path, item in document["paths"].items()
        for method in _METHODS
        if method in item
    ]
    parts = [
        "# HTTP API\n",
        "Operations of the admin port, from its [OpenAPI document](../openapi.json). "
        "[The admin API](../admin-api.md) shows how to send requests and what errors look like.\n",
        table(
            ("operation", "description"),
            [
                [f"[`{method.upper()} {path}`](#{_anchor(method, path)})", one["summary"]]
                for method, path, one in operations
            ],
        ),
    ]
    for method, path, one in operations:
        parts += [f"## {method.upper()} {path}\n", *_operation(one)]
    parts.append("## Schemas\n")
    for name, schema in document["components"]["schemas"].items():
        parts += _schema(name, schema)
    return "\n".join(parts)


def _anchor(method: str, path: str) -> str:
    kept = "".join(letter for letter in f"{method} {path}".lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def _operation(one: Schema) -> Iterator[str]:
    yield f"{one['summary']}\n"
    if one.get("parameters"):
        rows = [
            [
                code(each["name"]),
                each["in"],
                _type(each["schema"]),
                "required" if each.get("required") else _default(each["schema"]),
                each.get("description") or each["schema"].get("description", ""),
            ]
            for each in one["parameters"]
        ]
        yield table(("parameter", "in", "type", "default", "description"), rows)
    if "requestBody" in one:
        needed = "" if one["requestBody"].get("required") else " (optional)"
        yield f"Body{needed}: {_type(one['requestBody']['content']['application/json']['schema'])}\n"
    kinds = one["responses"]["200"].get("content", {})
    responses = " or ".join(f"{_type(kind['schema'])} as `{name}`" for name, kind in kinds.items())
    errors = ", ".join(status for status in one["responses"] if status != "200")
    yield f"Response: {responses}. Errors: {errors}.\n"


def _schema(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {_short(name)}\n"
    if schema.get("description"):
        yield f"{schema['description']}\n"
    required = schema.get("required", ())
    rows = [
        [code(field), _type(one), "required" if field in required else _default(one), one.get("description", "")]
        for field, one in schema.get("properties", {}).items()
    ]
    if rows:
        yield table(("field", "type", "default", "description"), rows)
    elif "properties" not in schema:
        yield f"{_type(schema)}\n"


def _default(schema: Schema) -> str:
    value = schema.get("default")
    return "" if value in (None, "", [], {}) else code(json.dumps(value))


def _type(schema: Schema) -> str:
    """Return a type in words, with links to the schemas it names."""
    if "$ref" in schema:
        name = _short(schema["$ref"].rpartition("/")[2])
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        names = [_type(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(names))
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    if "enum" in schema:
        values = [code(value) for value in schema["enum"]]
        return (
            ", ".join(values) if len(values) <= _MANY else f"{schema.get('type', 'string')}, one of {len(values)} names"
        )
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}" if schema.get("items") else "list"
    inner = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(inner, dict) and "type" in inner:
        return f"object of {_type(inner)}"
    return str(schema.get("type", "any value"))


def _short(name: str) -> str:
    """`sluice.broker.faults.actions.delay.Delay` is unique by its last two parts."""
    return "-".join(part.capitalize() if part.islower() else part for part in name.split(".")[-2:])
