"""What a rule that cannot work is told: where, what, and what is accepted."""

import msgspec
import pytest

from sluice.broker.faults.matching.errors import FaultError
from sluice.broker.faults.rule import Rule, parse_rule, rule_schema
from tests.support.virtual_broker import VirtualBroker

CLOSE = {"action": "close"}


@pytest.fixture(scope="module")
def broker() -> VirtualBroker:
    return VirtualBroker()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({}, ".action: is needed"),
        ({"action": "nope"}, ".action: there is no action 'nope'; actions are error, "),
        ({"action": {"kind": "nope"}}, ".action.kind: 'nope': must be one of error, "),
        ({"action": "clos"}, ".action: there is no action 'clos', did you mean close? actions are error, "),
        ({"action": {"kind": "clos"}}, ".action.kind: 'clos': did you mean close? It must be one of error, "),
        ({"action": "error"}, ".action: error is not enough: code is needed"),
        (
            {"action": {"kind": "error", "cod": 1}},
            ".action.cod: unknown field, did you mean code? accepted are kind, code, when",
        ),
        ({"action": {"kind": "error", "code": "NO"}}, ".action.code: Kafka has no error code 'NO'"),
        ({"action": {"kind": "error", "code": "NONE"}}, ".action.code: 0 NONE is none that an answer"),
        (
            {"action": {"kind": "error", "code": 79}, "api": "Metadata"},
            ".action.code: 79 MEMBER_ID_REQUIRED: Metadata cannot answer it; it can answer UNKNOWN_SERVER_ERROR, ",
        ),
        (
            {"action": {"kind": "error", "code": 70}, "api": "Fetch", "version": "-6"},
            ".action.code: 70 FETCH_SESSION_ID_NOT_FOUND: none that the rule matches can answer it",
        ),
        (
            {"action": {"kind": "error", "code": 70}, "topic": "t", "group": "g"},
            ".action.code: 70 FETCH_SESSION_ID_NOT_FOUND: none that the rule matches",
        ),
        (
            CLOSE | {"apis": "Produce"},
            ".apis: unknown field, did you mean api? accepted are action, id, broker, ",
        ),
        (CLOSE | {"api": "Prodce"}, ".api: there is no API 'Prodce'; did you mean Produce?"),
        (CLOSE | {"api": ["Fetch", "zzz"]}, ".api[1]: there is no API 'zzz'; APIs are Produce, "),
        (CLOSE | {"api": []}, ".api: names none"),
        (
            CLOSE | {"api": "Heartbeat", "partition": 0},
            ".partition: Heartbeat requests name no partition; those that do are Produce, ",
        ),
        (
            CLOSE | {"api": "Produce", "group": "g"},
            ".group: Produce requests name no group; those that do are OffsetCommit, ",
        ),
        (CLOSE | {"api": "Produce", "version": "14-"}, ".version: 14- is not served; Produce has 0 to 13"),
        (
            CLOSE | {"api": "Produce", "version": "nine"},
            ".version: 'nine': write one version or a range of them: 9, 5-9, -3, 9-",
        ),
        (CLOSE | {"api": "Produce", "version": "9-5"}, ".version: '9-5': the range ends before it begins"),
        (CLOSE | {"version": 9}, ".version: 9: versions are those of an API"),
        (CLOSE | {"broker": 7}, ".broker: there is no broker 7; those there are: 1"),
        (CLOSE | {"broker": []}, ".broker: an empty list hits nothing"),
        (CLOSE | {"partition": -1}, ".partition: -1: must be 0 or more"),
        (CLOSE | {"partition": "0"}, ".partition: must be a whole number or a list or nothing, not '0'"),
        (CLOSE | {"probability": 1.5}, ".probability: 1.5: must be above 0 and at most 1"),
        (CLOSE | {"seed": 1}, ".seed: nothing of this rule is left to chance"),
        (CLOSE | {"request": 0}, ".request: 0: requests of a connection are counted from 1 on"),
        (CLOSE | {"after": "2s", "until": "1s"}, ".until: 1s is not later than `after`, 2s"),
        (
            CLOSE | {"connection_older_than": "2s", "connection_younger_than": "1s"},
            ".connection_younger_than: 1s contradicts connection_older_than",
        ),
        (CLOSE | {"times": 1, "on": [1]}, ".on: contradicts times"),
        (CLOSE | {"schedule": "3 pass"}, ".schedule: '3 pass' never hits"),
        ({"action": "delay"}, ".action: a delay has ms, or min and max, or mean, or mean and stddev"),
        (
            {"action": {"kind": "delay", "ms": 1, "mean": 2}},
            ".action: a delay has ms, or min and max, or mean, or mean and stddev; here is me",
        ),
        ({"action": {"kind": "delay", "min": 2, "max": "1ms"}}, ".action.max: 1ms is less than min, 2"),
        ({"action": {"kind": "delay", "ms": "soon"}}, ".action.ms: 'soon' is no duration"),
        (
            {"action": {"kind": "close", "when": "never"}},
            ".action.when: 'never': must be one of after, before, mid-response",
        ),
        ({"action": {"kind": "error", "code": "²"}}, ".action.code: Kafka has no error code '²'"),
        ({"action": {"kind": "error", "code": "9" * 5000}}, ".action.code: Kafka has no error code '99"),
        (CLOSE | {"api": "Produce", "version": "9" * 5000}, ".version: '99"),
        (CLOSE | {"schedule": "9" * 5000 + " fail"}, ".schedule: '99"),
        (CLOSE | {"after": 10**400}, ".after: 1000"),
        (CLOSE | {"id": "a\nb"}, ".id: must be text of 1 to 200 characters that can be printed, without / and blanks"),
        (CLOSE | {"id": "a/b"}, ".id: must be text"),
        (CLOSE | {"id": ""}, ".id: must be text"),
        (CLOSE | {"id": "x" * 201}, ".id: must be text"),
        ({"action": "isolate", "api": "Produce"}, ".api: means nothing for isolate, which is not hit by requests;"),
        ({"action": "refuse-connections", "topic": "t"}, ".topic: means nothing for refuse-connections"),
        ("close", ": must be a table, not 'close'"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_with_its_place(broker: VirtualBroker, rule: object, message: str) -> None:
    with pytest.raises(FaultError) as refused:
        broker.cluster_server.faults.add(rule, "faults[0]")
    assert str(refused.value).startswith(f"faults[0]{message}")
    assert "\n" not in str(refused.value)
    assert len(broker.cluster_server.faults) == 0


def test_an_id_can_be_taken_once(broker: VirtualBroker) -> None:
    faults = broker.cluster_server.faults
    fault = faults.add(CLOSE | {"id": "mine"})
    with pytest.raises(FaultError, match=r"^fault\.id: there is a fault rule 'mine' already$"):
        faults.add(CLOSE | {"id": "mine"})
    fault.remove()
    with pytest.raises(FaultError, match=r"^id: there is no fault rule 'mine'; there is none$"):
        faults.remove("mine")


def test_of_many_rules_only_some_are_told_to_who_asks_for_another() -> None:
    faults = VirtualBroker().cluster_server.faults
    for _ in range(25):
        faults.add(CLOSE)
    with pytest.raises(
        FaultError, match=r"^id: there is no fault rule 'mine'; those there are: fault-1, .*, fault-20 and 5 more$"
    ):
        faults.get("mine")


def test_ids_are_made_up_where_they_are_left_out() -> None:
    faults = VirtualBroker().cluster_server.faults
    faults.add(CLOSE | {"id": "fault-2"})
    assert [faults.add(CLOSE).id for _ in range(3)] == ["fault-1", "fault-3", "fault-4"]
    faults.clear()
    assert faults.add(CLOSE).id == "fault-5"


def test_checking_a_rule_adds_nothing(broker: VirtualBroker) -> None:
    faults = broker.cluster_server.faults
    assert faults.check(CLOSE | {"times": 1}) == Rule("close", times=1)
    assert len(faults) == 0


def test_the_schema_names_every_field_with_a_description() -> None:
    definitions = rule_schema()["$defs"]
    assert isinstance(definitions, dict)
    properties = definitions["Rule"]["properties"]
    assert list(properties) == list(Rule.__struct_fields__)
    assert not [name for name, each in properties.items() if not each.get("description")]


def test_a_rule_survives_json() -> None:
    rule = parse_rule(
        {"action": {"kind": "delay", "min": "1ms", "max": 5}, "api": ["Produce", "Fetch"], "on": [1, 4]}, "rule"
    )
    assert parse_rule(msgspec.json.decode(msgspec.json.encode(rule)), "rule") == rule
