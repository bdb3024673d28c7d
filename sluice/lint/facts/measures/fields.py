"""Typed access to `Request.sent` and `Request.returned`, where a missing field has an empty value."""

from collections.abc import Mapping

from sluice.journal_events import Value

Fields = Mapping[str, Value]


def number(fields: Fields, name: str, missing: int = 0) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else missing


def text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def names(fields: Fields, name: str) -> list[str]:
    value = fields.get(name)
    return value if isinstance(value, list) else []
