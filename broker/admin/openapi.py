"""The OpenAPI 3.1 document of the admin port: /api/openapi.json and docs/openapi.json.

Generated from the table of operations, and their types with docstrings.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from sluice.text.json_text import Schema, describe_fields

from .access_control import OPEN
from .operation import ACCEPT, JSON, SAFE, SENDER, AdminContext, Nothing, Operation, Problem

_REFERENCE = "#/components/schemas/{name}"
_TOKEN = "bearer"  # noqa: S105  (the name of the scheme)
_DESCRIPTION = """\
The HTTP API that `sluice` and its web page use. Send requests that change something as JSON (`content-type:
application/json`) or, without a body, with the header `X-Sluice-Request: 1`; pages of other sites can send neither.
If `sluice.admin.token` is set, send it as a bearer token; otherwise the port accepts only loopback host names."""
_REASONS = {
    400: "Invalid parameters or body.",
    401: "Missing or wrong token.",
    403: "A page of another site may have sent the request, or the host name is not a loopback name.",
    404: "The resource does not exist.",
    409: "The current state does not allow the operation.",
    415: "The body is not JSON.",
}
_OMITTED = frozenset({"title"})


def document(operations: Sequence[Operation]) -> Schema:
    types = list(dict.fromkeys(_types(operations)))
    schemas, components = msgspec.json.schema_components(types, schema_hook=_anything, ref_template=_REFERENCE)
    for definition in components.values():
        describe_fields(definition)
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, object]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schema_of, components)
    parameters = {one.params.__name__ for one in operations} | {Nothing.__name__}
    kept = {name: schema for name, schema in components.items() if name not in parameters}
    return {
        "openapi": "3.1.0",
        "info": {"title": "The admin port of sluice", "version": "1", "description": _DESCRIPTION},
        "security": [{_TOKEN: []}, {}],
        "paths": paths,
        "components": {
            "schemas": _without_titles(kept),
            "securitySchemes": {_TOKEN: {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(operations: Iterable[Operation]) -> Iterator[object]:
    yield Problem
    for one in operations:
        yield one.params
        yield from one.bodies
        yield from one.media.values()
        if one.answer is not None:
            yield one.answer


def _anything(kind: type) -> Schema:
    assert kind is object, f"{kind} has no schema"
    return {"description": "Any value."}


def _operation(one: Operation, schema_of: dict[object, Schema], components: dict[str, Schema]) -> Schema:
    parameters = [*_parameters(one, components)]
    if one.method not in SAFE and not one.has_body:
        words = "States that no page of another site sent the request."
        sender = {"name": SENDER, "in": "header", "schema": {"const": "1"}, "required": True}
        parameters.append({**sender, "description": words})
    made: Schema = {"operationId": _operation_id(one), "summary": one.summary, "tags": [_tag(one)]}
    if parameters:
        made["parameters"] = parameters
    if one.has_body:
        accepted = [schema_of[body] for body in one.bodies]
        schema = accepted[0] if len(accepted) == 1 else {"anyOf": accepted}
        needed = len(one.bodies) > 1 or bool(components[one.bodies[0].__name__].get("required"))
        made["requestBody"] = {"content": {JSON: {"schema": schema}}, "required": needed}
    made["responses"] = _responses(one, schema_of)
    if one.path in OPEN:
        made["security"] = []
    return made


def _operation_id(one: Operation) -> str:
    words = (part.strip("{}").replace("-", "_").split(".")[0] for part in one.path.split("/"))
    return "_".join(filter(None, (one.method.lower(), *(word for word in words if word not in ("api", "v1")))))


def _tag(one: Operation) -> str:
    return next((part for part in one.path.split("/")[3:] if one.path.startswith("/api/v1/")), "broker")


def _parameters(one: Operation, components: dict[str, Schema]) -> Iterator[Schema]:
    described = components[one.params.__name__]
    properties, required = described["properties"], described.get("required", [])
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    for name, schema in properties.items():
        if name == ACCEPT:
            continue
        place = "path" if name in one.in_path else "query"
        yield {"name": name, "in": place, "required": name in required, "schema": _plain(schema)}


def _responses(one: Operation, schema_of: dict[object, Schema]) -> Schema:
    content = {media: {"schema": schema_of[kind]} for media, kind in one.media.items()}
    if one.answer is not None:
        content = {JSON: {"schema": schema_of[one.answer]}, **content}
    made: Schema = {
        "200": {"description": "Done." if one.method not in SAFE else "The requested data.", "content": content}
    }
    for status in sorted({*_errors(one), *one.errors}):
        made[str(status)] = {"description": _REASONS[status], "content": {JSON: {"schema": schema_of[Problem]}}}
    return made


def _errors(one: Operation) -> Iterator[int]:
    yield 400
    yield 403
    if one.path not in OPEN:
        yield 401
    if one.method not in SAFE:
        yield 415


def _plain(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if not (name == "default" and value in (None, []))}


def _without_titles(value: object) -> object:
    if isinstance(value, dict):
        # A property may be named like an omitted key; then its value is not a string.
        return {
            name: _without_titles(inner)
            for name, inner in value.items()
            if not (name in _OMITTED and isinstance(inner, str))
        }
    return [_without_titles(inner) for inner in value] if isinstance(value, list) else value


async def _get_document(context: AdminContext, params: Nothing, body: Nothing) -> dict[str, object]:
    return document(context.operations)


OPERATIONS: tuple[Operation, ...] = (Operation.of("GET", "/api/openapi.json", "This document.", _get_document),)
