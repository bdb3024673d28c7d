"""Requests and responses built from the name of their API and plain values, for tests that use many APIs."""

from collections.abc import Mapping
from typing import Any

from sluice.protocol.apis import API_KEYS
from sluice.protocol.message import Message, fields_of

_APIS = {api.name: api for api in API_KEYS.values()}


def request(api: str, **fields: Any) -> Message:
    """Return a request; mappings of fields become structs."""
    return _built(_APIS[api].request, fields)


def response(api: str, **fields: Any) -> Message:
    return _built(_APIS[api].response, fields)


def _built(cls: type[Message], fields: Mapping[str, Any]) -> Message:
    structs = {field.name: field.struct for field in fields_of(cls) if field.struct is not None}
    values = {name: _value(structs[name], value) if name in structs else value for name, value in fields.items()}
    return cls(**values)


def _value(cls: type[Message], value: Any) -> Any:
    if isinstance(value, list):
        return [_value(cls, one) for one in value]
    return _built(cls, value) if isinstance(value, Mapping) else value
