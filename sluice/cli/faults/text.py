"""Fault rules as returned by the admin port, and their table."""

import json

import msgspec

from sluice.cli.text_table import table
from sluice.text.json_text import json_text


class FaultShown(msgspec.Struct):
    id: str
    action: str
    state: str
    matched: int
    hits: int
    held: int
    problem: str
    rule: dict[str, object]


class FaultList(msgspec.Struct):
    faults: list[FaultShown]


def printed(found: FaultList, output_format: str) -> str:
    if output_format == "json":
        return json_text(found.faults)
    if not found.faults:
        return "no fault rules"
    rows = [
        (
            one.id,
            one.state,
            str(one.matched),
            str(one.hits),
            " ".join(filter(None, (rule_words(one.rule), _notes(one)))),
        )
        for one in found.faults
    ]
    return "\n".join(table(("RULE", "STATE", "MATCHED", "HITS", "DEFINITION"), rows))


def _notes(shown: FaultShown) -> str:
    held = f"- holds {shown.held} now" if shown.held else ""
    return f"- {shown.problem}" if shown.problem else held


def rule_words(rule: dict[str, object]) -> str:
    action = rule["action"]
    fields = {"kind": action} if isinstance(action, str) else dict(action) if isinstance(action, dict) else {}
    words = [f"action={fields.pop('kind')}", *(f"{name}={_value(value)}" for name, value in fields.items())]
    words += [f"{name}={_value(value)}" for name, value in rule.items() if name not in ("action", "id")]
    return " ".join(words)


def _value(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, bool) else str(value)
