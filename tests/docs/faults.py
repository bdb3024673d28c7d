"""The tables of docs/faults.md, from the code: `python -m tests.docs.faults` writes them.

The examples are here, so that they are checked as rules are when they are added.
"""

import re
import types
import typing
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Meta

from sluice.broker.dispatch.registry import HANDLERS
from sluice.broker.faults.actions import KINDS
from sluice.broker.faults.actions.action import Action, ConnectionAction, RequestAction, StateAction
from sluice.broker.faults.rule import Rule
from sluice.protocol.apis import API_KEYS
from sluice.protocol.error_codes import codes_of

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
_PART = re.compile(r"(<!-- (?P<name>[a-z ]+): [^\n]*-->\n).*?(<!-- end of (?P=name) -->)", re.DOTALL)

EXAMPLES = {
    "error": 'action = { kind = "error", code = "NOT_LEADER_OR_FOLLOWER" }\napi = "Produce"\npartition = 0\ntimes = 3',
    "delay": 'action = { kind = "delay", mean = "50ms", stddev = "10ms" }\napi = "Fetch"\nprobability = 0.1',
    "black-hole": 'action = "black-hole"\napi = "Produce"\nclient_id = "shop"\non = [3]',
    "close": 'action = { kind = "close", when = "mid-response", how = "rst" }\napi = "Fetch"\non = [1, 9]',
    "correlation-id": 'action = { kind = "correlation-id", by = 1 }\napi = "Metadata"\ntimes = 1',
    "truncate": 'action = "truncate"\napi = "FindCoordinator"\ntimes = 1',
    "garbage": 'action = { kind = "garbage", what = "frame" }\napi = "Fetch"\nprobability = 0.01\nseed = 7',
    "oversize": 'action = "oversize"\napi = "Fetch"\nrequest = 2',
    "corrupt-records": 'action = "corrupt-records"\napi = "Fetch"\ntopic = "orders"\ntimes = 2',
    "duplicate": 'action = { kind = "duplicate", what = "request" }\napi = "Produce"\nprobability = 0.2',
    "throttle": 'action = { kind = "throttle", throttle_time_ms = "2s", mute = false }\napi = "Produce"\ntimes = 1',
    "slow-disk": 'action = { kind = "slow-disk", latency = "20ms", bytes_per_s = "1M" }\nbroker = 2',
    "unknown-leader": 'action = "unknown-leader"\ntopic = "orders"\nduring = "3s"',
    "wrong-leader": 'action = { kind = "wrong-leader", leader = 3, epoch = "new" }\ntopic = "orders"\ntimes = 2',
    "stale-leader-hint": 'action = "stale-leader-hint"\ntopic = "orders"',
    "empty-metadata": 'action = { kind = "empty-metadata", after_start = "1s" }\nbroker = 2',
    "offset-lie": 'action = { kind = "offset-lie", of = "latest", shift = -10 }\ntopic = "orders"',
    "refuse-connections": 'action = { kind = "refuse-connections", how = "closed-port" }\nbroker = 1\nduring = "5s"',
    "silent-connections": 'action = "silent-connections"\nbroker = 1\ntimes = 3',
    "stall-tls": 'action = "stall-tls"\nlistener = "SSL"\ntimes = 1',
    "stall-sasl": 'action = { kind = "stall-sasl", at = "authenticate" }\nlistener = "SASL_PLAINTEXT"\ntimes = 1',
    "bandwidth": 'action = { kind = "bandwidth", in_bytes_per_s = "50k" }\nclient_id = "shop"',
    "drop-idle": 'action = { kind = "drop-idle", idle = "30s" }',
    "controller-lost": 'action = "controller-lost"\nafter = "5s"\nduring = "20s"',
    "slow-election": 'action = { kind = "slow-election", takes = "3s" }',
    "unclean-election": 'action = { kind = "unclean-election", records = 5 }\ntopic = "orders"\npartition = 0',
    "leader-moved": 'action = { kind = "leader-moved", to = 2 }\ntopic = "orders"\npartition = 0\nduring = "10s"',
    "coordinator-moved": 'action = { kind = "coordinator-moved", to = 3 }\ngroup = "kitchen"',
    "broker-down": 'action = { kind = "broker-down", controlled = false }\nbroker = 2\nafter = "5s"\nduring = "20s"',
    "isolate": 'action = "isolate"\nbroker = 2\nduring = "20s"',
    "stale-metadata": 'action = "stale-metadata"\nbroker = [2, 3]',
    "metadata-lag": 'action = { kind = "metadata-lag", lag = "500ms" }\nbroker = 3',
    "disk-full": 'action = "disk-full"\nbroker = 1\ntopic = "orders"',
}  # fmt: skip
_CLASSES: dict[type[Action], str] = {
    RequestAction: "Hits requests",
    ConnectionAction: "Hits connections",
    StateAction: "A state, in force while its rule is",
}


def _fields(struct: type[msgspec.Struct], names: Iterable[str]) -> list[str]:
    hints = typing.get_type_hints(struct, include_extras=True)
    defaults = dict(zip(reversed(struct.__struct_fields__), reversed(struct.__struct_defaults__), strict=False))
    lines = []
    for name in names:
        declared = hints[name]
        shown = "needed" if name not in defaults else "" if defaults[name] is None else f"`{_toml(defaults[name])}`"
        lines.append(f"| `{name}` | {accepted(declared.__origin__)} | {shown} | {field_description(declared)} |")
    return ["| field | accepted | default | what it is |", "| --- | --- | --- | --- |", *lines]


def field_description(declared: typing.Any) -> str:
    """Return the description of a field's annotated type, or ""."""
    return next((each.description or "" for each in declared.__metadata__ if isinstance(each, Meta)), "")


def _toml(value: object) -> str:
    return msgspec.json.encode(value).decode()


def accepted(declared: object) -> str:
    """Return a type in words."""
    origin = typing.get_origin(declared)
    if origin is typing.Annotated:
        return accepted(typing.get_args(declared)[0])
    if origin in (typing.Union, types.UnionType):
        each = [accepted(one) for one in typing.get_args(declared) if one is not type(None)]
        return (
            ", ".join(dict.fromkeys(each)).replace("text, number", "text or number").replace("number, number", "number")
        )
    if origin is typing.Literal:
        return ", ".join(f"`{one}`" for one in typing.get_args(declared))
    if origin is list:
        return f"list of {accepted(typing.get_args(declared)[0])}s"
    names = {int: "number", float: "number", str: "text", bool: "true or false"}
    return names.get(declared, "table") if isinstance(declared, type) else "table"


def rule_fields() -> str:
    names = [name for name in Rule.__struct_fields__ if name != "action"]
    return "\n".join([*_fields(Rule, names), ""])


def actions() -> str:
    lines: list[str] = []
    for kind, action in KINDS.items():
        lines += [f"### `{kind}`", "", action.SUMMARY, ""]
        lines += [_takes(action), "", "```toml", "[[faults]]", *EXAMPLES[kind].splitlines(), "```", ""]
        if action.__struct_fields__:
            lines += [*_fields(action, action.__struct_fields__), ""]
    return "\n".join(lines)


def _takes(action: type[Action]) -> str:
    name = next(text for cls, text in _CLASSES.items() if issubclass(action, cls))
    left_out = [field for field in Rule.__struct_fields__ if field not in action.FIELDS]
    if not left_out:
        return f"{name}."
    taken = [
        f"`{field}`" for field in Rule.__struct_fields__ if field in action.FIELDS and field not in ("id", "action")
    ]
    return f"{name}. Of a rule's fields it takes {', '.join(taken)}."


def error_codes() -> str:
    lines = ["| API | level | codes |", "| --- | --- | --- |"]
    for key in HANDLERS:
        by_level: dict[str, list[str]] = {}
        for code, level in codes_of(key).items():
            by_level.setdefault(level, []).append(code.name)
        first = True
        for level, names in by_level.items():
            own = sorted(set(names) - _ANY)
            lines.append(f"| {API_KEYS[key].name if first else ''} | {level} | {', '.join(own)} |")
            first = False
    return "\n".join([*lines, ""])


_ANY = set.intersection(*({code.name for code in codes_of(key)} for key in HANDLERS))
_PARTS = {"fields": rule_fields, "actions": actions, "codes": error_codes}


def with_tables(page: str) -> str:
    return _PART.sub(lambda match: f"{match[1]}\n{_PARTS[match['name']]()}\n{match[3]}", page)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
