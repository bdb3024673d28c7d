"""Errors for invalid rules: path, problem, and accepted values."""

import msgspec
import pytest

from sluice.broker.faults.actions import KINDS
from sluice.broker.faults.rule import Rule, parse_rule, proxy_rule_schema, rule_schema
from sluice.errors import FaultError
from tests.support.virtual_broker import VirtualBroker

CLOSE = {"action": "close"}


@pytest.fixture(scope="module")
def broker() -> VirtualBroker:
    return VirtualBroker()


INVALID_RULES = [
    ({}, ".action: missing"),
    ({"action": "nope"}, ".action: expected one of error, "),
    ({"action": {"kind": "nope"}}, ".action.kind: expected one of error, "),
    ({"action": "clos"}, ".action: expected one of error, "),
    ({"action": {"kind": "clos"}}, ".action.kind: expected one of error, "),
    ({"action": "error"}, ".action: error requires fields: code missing"),
    ({"action": {"kind": "error", "cod": 1}}, ".action.cod: unknown field; expected one of kind, code, when"),
    ({"action": {"kind": "error", "code": "NO"}}, ".action.code: unknown error code 'NO'"),
    ({"action": {"kind": "error", "code": "NONE"}}, ".action.code: 0 NONE never occurs in responses"),
    (
        {"action": {"kind": "error", "code": 79}, "api": "Metadata"},
        ".action.code: Metadata cannot return 79 MEMBER_ID_REQUIRED; expected one of UNKNOWN_SERVER_ERROR, ",
    ),
    (
        {"action": {"kind": "error", "code": 70}, "api": "Fetch", "version": "-6"},
        ".action.code: no API that the rule matches can return 70 FETCH_SESSION_ID_NOT_FOUND",
    ),
    (
        {"action": {"kind": "error", "code": 70}, "topic": "t", "group": "g"},
        ".action.code: no API that the rule matches can return 70 FETCH_SESSION_ID_NOT_FOUND",
    ),
    (CLOSE | {"apis": "Produce"}, ".apis: unknown field; expected one of action, id, broker, "),
    (
        {"action": "delay", "ms": 200},
        '.ms: misplaced field; expected it in action, as in action = {kind = "delay", ms = ...}',
    ),
    (
        {"action": {"kind": "delay"}, "code": 7},
        '.code: misplaced field; expected it in action, as in action = {kind = "error", code = ...}',
    ),
    (CLOSE | {"api": "Prodce"}, ".api: unknown API 'Prodce'. Did you mean Produce?"),
    (CLOSE | {"api": ["Fetch", "zzz"]}, ".api[1]: unknown API 'zzz'; expected one of Produce, "),
    (CLOSE | {"api": []}, ".api: expected at least one API"),
    (
        CLOSE | {"api": "Heartbeat", "partition": 0},
        ".partition: Heartbeat requests name no partition; expected one of Produce, ",
    ),
    (
        CLOSE | {"api": "Produce", "group": "g"},
        ".group: Produce requests name no group; expected one of OffsetCommit, ",
    ),
    (CLOSE | {"api": "Produce", "version": "14-"}, ".version: version not served; Produce has 0 to 13, got 14-"),
    (
        CLOSE | {"api": "Produce", "version": "nine"},
        ".version: expected a version or a range such as 9, 5-9, -3, 9-, got 'nine'",
    ),
    (CLOSE | {"api": "Produce", "version": "9-5"}, ".version: expected a range that ends after its start, got '9-5'"),
    (CLOSE | {"version": 9}, ".version: expected together with `api`, whose version it is, got 9"),
    (CLOSE | {"broker": 7}, ".broker: unknown broker; expected one of 1, got 7"),
    (CLOSE | {"broker": []}, ".broker: expected at least one number"),
    (CLOSE | {"partition": -1}, ".partition: expected 0 or more, got -1"),
    (CLOSE | {"partition": "0"}, ".partition: expected a whole number or a list or nothing, got '0'"),
    (CLOSE | {"probability": 1.5}, ".probability: expected above 0 and at most 1, got 1.5"),
    (CLOSE | {"seed": 1}, ".seed: has no effect without a probability"),
    (CLOSE | {"request": 0}, ".request: expected 1 or more, got 0"),
    (CLOSE | {"after": "2s", "until": "1s"}, ".until: expected later than `after` (2s), got 1s"),
    (
        CLOSE | {"connection_older_than": "2s", "connection_younger_than": "1s"},
        ".connection_younger_than: expected above connection_older_than, got 1s",
    ),
    (CLOSE | {"times": 1, "on": [1]}, ".on: expected at most one of times, during, on, schedule, got times and on"),
    (CLOSE | {"schedule": "3 pass"}, ".schedule: expected a phase that fails"),
    ({"action": "delay"}, ".action: expected ms, or min and max, or mean, or mean and stddev"),
    (
        {"action": {"kind": "delay", "ms": 1, "mean": 2}},
        ".action: expected ms, or min and max, or mean, or mean and stddev; got me",
    ),
    ({"action": {"kind": "delay", "min": 2, "max": "1ms"}}, ".action.max: expected at least min (2"),
    (
        {"action": {"kind": "delay", "ms": "soon"}},
        ".action.ms: expected 250ms, 5s, 2m, or a number of milliseconds, got 'soon'",
    ),
    ({"action": {"kind": "close", "when": "never"}}, ".action.when: expected one of after, before, mid-response"),
    ({"action": {"kind": "error", "code": "²"}}, ".action.code: unknown error code '²'"),
    ({"action": {"kind": "error", "code": "9" * 5000}}, ".action.code: unknown error code '99"),
    (CLOSE | {"api": "Produce", "version": "9" * 5000}, ".version: expected a version or a range"),
    (CLOSE | {"schedule": "9" * 5000 + " fail"}, ".schedule: expected 'N fail'"),
    (CLOSE | {"after": 10**400}, ".after: expected a duration from 0 to a year, got 1000"),
    (CLOSE | {"id": "a\nb"}, ".id: expected 1 to 200 printable characters without '/' and spaces"),
    (CLOSE | {"id": "a/b"}, ".id: expected 1 to 200 printable characters"),
    (CLOSE | {"id": ""}, ".id: expected 1 to 200 printable characters"),
    (CLOSE | {"id": "x" * 201}, ".id: expected 1 to 200 printable characters"),
    ({"action": "isolate", "api": "Produce"}, ".api: does not apply to isolate; expected only"),
    ({"action": "refuse-connections", "topic": "t"}, ".topic: does not apply to refuse-connections"),
    ("close", ": expected a table, got 'close'"),
]


@pytest.mark.parametrize(("rule", "message"), INVALID_RULES)
def test_invalid_rule_is_rejected_with_its_path(broker: VirtualBroker, rule: object, message: str) -> None:
    with pytest.raises(FaultError) as raised:
        broker.cluster_server.faults.add(rule, "faults[0]")
    assert str(raised.value).startswith(f"faults[0]{message}")
    assert "\n" not in str(raised.value)
    assert len(broker.cluster_server.faults) == 0


def test_id_must_be_unique(broker: VirtualBroker) -> None:
    faults = broker.cluster_server.faults
    fault = faults.add(CLOSE | {"id": "mine"})
    with pytest.raises(FaultError, match=r"^fault\.id: fault rule 'mine' already exists$"):
        faults.add(CLOSE | {"id": "mine"})
    fault.remove()
    with pytest.raises(FaultError, match=r"^id: unknown fault rule 'mine'; none exists$"):
        faults.remove("mine")


def test_error_for_an_unknown_id_lists_at_most_20_rules() -> None:
    faults = VirtualBroker().cluster_server.faults
    for _ in range(25):
        faults.add(CLOSE)
    with pytest.raises(
        FaultError, match=r"^id: unknown fault rule 'mine'; expected one of fault-1, .*, fault-20 and 5 more$"
    ):
        faults.get("mine")


def test_missing_ids_are_generated() -> None:
    faults = VirtualBroker().cluster_server.faults
    faults.add(CLOSE | {"id": "fault-2"})
    assert [faults.add(CLOSE).id for _ in range(3)] == ["fault-1", "fault-3", "fault-4"]
    faults.clear()
    assert faults.add(CLOSE).id == "fault-5"


def test_checking_a_rule_adds_nothing(broker: VirtualBroker) -> None:
    faults = broker.cluster_server.faults
    assert faults.check(CLOSE | {"times": 1}) == Rule("close", times=1)
    assert len(faults) == 0


def test_schema_describes_every_field() -> None:
    definitions = rule_schema()["$defs"]
    assert isinstance(definitions, dict)
    properties = definitions["Rule"]["properties"]
    assert list(properties) == list(Rule.__struct_fields__)
    assert not [name for name, each in properties.items() if not each.get("description")]


def test_schema_for_a_proxy_lacks_only_the_refused_actions() -> None:
    schema, of_proxy = rule_schema()["$defs"], proxy_rule_schema()["$defs"]
    assert isinstance(schema, dict)
    assert isinstance(of_proxy, dict)
    refused = {kind.__name__ for kind in KINDS.values() if kind.PROXY_REFUSAL}
    assert schema.keys() - of_proxy.keys() == refused
    assert {**schema["Rule"], "properties": None} == {**of_proxy["Rule"], "properties": None}
    fields = schema["Rule"]["properties"]
    assert of_proxy["Rule"]["properties"] == fields | {"action": of_proxy["Rule"]["properties"]["action"]}


def test_rule_survives_json() -> None:
    rule = parse_rule(
        {"action": {"kind": "delay", "min": "1ms", "max": 5}, "api": ["Produce", "Fetch"], "on": [1, 4]}, "rule"
    )
    assert parse_rule(msgspec.json.decode(msgspec.json.encode(rule)), "rule") == rule
