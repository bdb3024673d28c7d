"""docs/reference/faults.md, the reference page of fault rules, from the code.

The examples are here so that they are validated like rules.
"""

import types
import typing
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Meta

from sluice.broker.exchange.registry import HANDLERS
from sluice.broker.faults.actions import KINDS
from sluice.broker.faults.engine import check_rule, configured_brokers
from sluice.broker.faults.fault import Action, ConnectionAction, StateAction
from sluice.broker.faults.requests.fault_execution import RequestAction
from sluice.broker.faults.rule import Rule
from sluice.config.broker_config import Config
from sluice.errors import FaultError
from sluice.protocol.apis import API_KEYS
from sluice.protocol.error_codes import codes_of
from tools.docs.tables import code, table

PAGE = Path(__file__).parents[3] / "docs/reference/faults.md"
_HEAD = """\
# Fault rules

This page lists the fields of fault rules, the actions with their options, and the error codes that each API accepts. It
is generated from the code; [Faults](../faults.md) explains how to use rules.

- **Patterns**: text fields accept `*` for any text, `?` for one character and `[abc]` for one of these characters.
- **Durations**: `250ms`, `5s`, `2m`, or a number of milliseconds.
- **Rates**: a number of bytes per second, or text such as `50k`, `1M` or `64Ki`.
"""
_CODES = """\
## Error codes of each API

The action `error` accepts these codes, and for every API also {codes_of_all}. The level is the place of the code in the
response: once (`top`), or in each partition, topic, group or other item. In API versions without that level, a `group`
code is at the top, and any other code is on the deepest level.
"""
EXAMPLES = {
    "error": 'action = { kind = "error", code = "NOT_LEADER_OR_FOLLOWER" }\napi = "Produce"\npartition = 0\ntimes = 3',
    "delay": 'action = { kind = "delay", mean = "50ms", stddev = "10ms" }\napi = "Fetch"\nprobability = 0.1',
    "hold": 'action = { kind = "hold", when = "after" }\napi = "OffsetCommit"\nclient_id = "shop"\nduring = "5s"',
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
    "acquisition-lock-lost": 'action = "acquisition-lock-lost"\ngroup = "work"\nprobability = 0.1',
    "redelivery": 'action = "redelivery"\ngroup = "work"\ntopic = "orders"\ntimes = 3',
    "acknowledgement-error": 'action = { kind = "acknowledgement-error", code = "INVALID_RECORD_STATE" }\ntimes = 2',
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
    RequestAction: "requests",
    ConnectionAction: "connections",
    StateAction: "brokers, while the rule is in force",
}


def faults_page() -> str:
    """Return the whole page."""
    summary = [[f"[`{kind}`](#{kind})", _affects(action), str(action.__doc__)] for kind, action in KINDS.items()]
    parts = [
        _HEAD,
        "## Actions\n",
        table(("action", "affects", "description"), summary),
        f"These actions work without fields, so that their name is enough: {', '.join(map(code, plain_actions()))}.\n",
        "## Fields of a rule\n",
        "`action` is the only required field. A rule without a condition affects everything that its action can "
        "affect.\n",
        _fields(Rule, (name for name in Rule.__struct_fields__ if name != "action")),
    ]
    for kind, action in KINDS.items():
        parts += [f"## `{kind}`\n", f"{action.__doc__}\n", f"```toml\n[[faults]]\n{EXAMPLES[kind]}\n```\n"]
        if action.__struct_fields__:
            parts.append(_fields(action, action.__struct_fields__))
        accepted_fields = [name for name in Rule.__struct_fields__ if name in action.FIELDS - {"id", "action"}]
        if action.PROXY_REFUSAL:
            parts.append(f"Not possible in a proxy: {action.PROXY_REFUSAL}.\n")
        if len(accepted_fields) < len(Rule.__struct_fields__) - 2:
            parts.append(f"Fields of its rules: {', '.join(map(code, accepted_fields))}.\n")
    return "\n".join([*parts, _error_codes()])


def plain_actions() -> list[str]:
    """Return the actions that work without any field."""
    cluster = Config.load(None, ["sluice.brokers=3", "listeners=SASL_SSL://127.0.0.1:0"])
    plain = []
    for kind in KINDS:
        with suppress(FaultError):
            check_rule(Rule(kind), configured_brokers(cluster), "fault")
            plain.append(kind)
    return plain


def _affects(action: type[Action]) -> str:
    return next(text for cls, text in _CLASSES.items() if issubclass(action, cls))


def _fields(struct: type[msgspec.Struct], names: Iterable[str]) -> str:
    hints = typing.get_type_hints(struct, include_extras=True)
    defaults = dict(zip(reversed(struct.__struct_fields__), reversed(struct.__struct_defaults__), strict=False))
    rows = []
    for name in names:
        default = "required" if name not in defaults else "" if defaults[name] is None else _toml(defaults[name])
        rows.append([code(name), _type(hints[name], name), default, field_description(hints[name])])
    return table(("field", "type", "default", "description"), rows)


def _type(declared: typing.Any, name: str) -> str:
    if {str, float} <= {*typing.get_args(declared.__origin__)}:
        return "rate" if name.endswith("_bytes_per_s") or name == "bytes_per_s" else "duration"
    return accepted(declared.__origin__)


def _toml(value: object) -> str:
    return code(msgspec.json.encode(value).decode())


def field_description(declared: typing.Any) -> str:
    """Return the description of a field's annotated type, or ""."""
    return next((each.description or "" for each in declared.__metadata__ if isinstance(each, Meta)), "")


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


def _error_codes() -> str:
    of_all = set.intersection(*({each.name for each in codes_of(key)} for key in HANDLERS))
    rows = []
    for key in HANDLERS:
        by_level: dict[str, list[str]] = {}
        for each, level in codes_of(key).items():
            by_level.setdefault(level, []).append(each.name)
        api = API_KEYS[key].name
        for level, names in by_level.items():
            rows.append([api, level, ", ".join(sorted({*names} - of_all))])
            api = ""
    return f"{_CODES.format(codes_of_all=', '.join(sorted(of_all)))}\n{table(('API', 'level', 'codes'), rows)}"
