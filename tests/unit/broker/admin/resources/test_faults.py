"""`/api/v1/faults`: rules are added, listed and removed; invalid requests return errors."""

import pytest

from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.http import Admin

PATH = "/api/v1/faults"
UNKNOWN_TOPIC = {"action": {"kind": "error", "code": "UNKNOWN_TOPIC_OR_PARTITION"}, "api": "Metadata"}


def ids(admin: Admin) -> list[str]:
    return [fault["id"] for fault in admin.send(PATH)[1]["faults"]]


def rule_state(state: str = "in force", matched: int = 0, hits: int = 0, **own: object) -> dict[str, object]:
    rule = {
        "id": "fault-1",
        "action": "error",
        "state": state,
        "matched": matched,
        "hits": hits,
        "held": 0,
        "problem": "",
    }
    return rule | {"rule": UNKNOWN_TOPIC} | own


@pytest.fixture
def admin() -> Admin:
    return Admin()


def test_rule_can_be_added_and_removed_and_counts_its_hits(admin: Admin) -> None:
    admin.broker.topic("t")
    assert admin.send(PATH) == (200, {"faults": []})
    assert admin.send(PATH, "POST", UNKNOWN_TOPIC) == (200, {"faults": [rule_state()]})
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    assert admin.broker.client().call(request, 9).topics[0].error_code == 3
    assert admin.send(f"{PATH}/fault-1") == (200, rule_state(matched=1, hits=1))
    assert admin.send(f"{PATH}/fault-1", "DELETE") == (200, rule_state("removed", 1, 1))
    assert admin.broker.client().call(request, 9).topics[0].error_code == 0
    assert ids(admin) == []


def test_several_rules_can_be_added_and_all_removed(admin: Admin) -> None:
    rules = [{**UNKNOWN_TOPIC, "id": "a"}, {"action": "close", "times": 1}]
    assert admin.send(PATH, "POST", {"faults": rules})[0] == 200
    assert ids(admin) == ["a", "fault-1"]
    status, result = admin.send(PATH, "DELETE")
    assert status == 200
    assert [(fault["id"], fault["state"]) for fault in result["faults"]] == [("a", "removed"), ("fault-1", "removed")]
    assert ids(admin) == []


def test_rule_without_further_hits_is_over(admin: Admin) -> None:
    admin.send(PATH, "POST", {**UNKNOWN_TOPIC, "times": 1})
    admin.broker.client().call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    assert admin.send(PATH)[1]["faults"] == [rule_state("over", 1, 1, rule={**UNKNOWN_TOPIC, "times": 1})]


def test_held_requests_are_released(admin: Admin) -> None:
    admin.broker.topic("t")
    admin.send(PATH, "POST", {"action": "hold", "api": "Metadata"})
    clients = [admin.broker.client() for _ in range(3)]
    for client in clients:
        client.send(MetadataRequest(topics=[]), 9)
    assert admin.send(f"{PATH}/fault-1")[1]["held"] == 3
    status, shown = admin.send(f"{PATH}/fault-1/release", "POST", {"count": 1})
    assert (status, shown["held"], shown["state"]) == (200, 2, "in force")
    assert [len(client.take_responses()) for client in clients] == [1, 0, 0]
    assert admin.send(f"{PATH}/fault-1/release", "POST", {})[1]["held"] == 0
    assert [len(client.take_responses()) for client in clients] == [0, 1, 1]


WRONG_RELEASES = {
    "an unknown rule": ("fault-9", {}, 404),
    "no request": ("fault-1", {"count": 0}, 400),
    "an unknown field": ("fault-1", {"number": 1}, 400),
    "no object": ("fault-1", 3, 400),
}


@pytest.mark.parametrize(("fault_id", "body", "expected"), WRONG_RELEASES.values(), ids=WRONG_RELEASES)
def test_wrong_release_is_rejected(fault_id: str, body: object, expected: int, admin: Admin) -> None:
    admin.send(PATH, "POST", {"action": "hold", "api": "Metadata"})
    client = admin.broker.client()
    client.send(MetadataRequest(topics=[]), 9)
    assert admin.send(f"{PATH}/{fault_id}/release", "POST", body)[0] == expected
    assert admin.send(f"{PATH}/fault-1")[1]["held"] == 1


def test_schema_is_served() -> None:
    status, result = Admin().send(f"{PATH}/schema")
    assert status == 200
    assert "action" in result["$defs"]["Rule"]["required"]


EXISTING = {"action": "close", "id": "a"}
WRONG = {
    "invalid JSON": ("action: close", 400, "the body is not JSON: JSON is malformed"),
    "no action": ({"api": "Produce"}, 400, "fault.action: missing"),
    "a number as the list of rules": ({"faults": 3}, 400, "faults: expected a list, got a whole number"),
    "a table as the list of rules": ({"faults": {"action": "close"}}, 400, "faults: expected a list, got a table"),
    "unknown action": ({"action": "explode"}, 400, "fault.action: expected one of"),
    "error code not valid for the API": (
        {"action": {"kind": "error", "code": "UNKNOWN_MEMBER_ID"}, "api": "Metadata"},
        400,
        "fault.action.code: Metadata cannot return 25 UNKNOWN_MEMBER_ID; expected one of ",
    ),
    "one of several rules": (
        {"faults": [UNKNOWN_TOPIC, {"action": "close", "topic": "t", "api": "Heartbeat"}]},
        400,
        "faults[1].topic: ",
    ),
    "existing id": (EXISTING, 409, "fault.id: there is a fault rule a already"),
    "duplicate id": (
        {"faults": [{**EXISTING, "id": "b"}, {**EXISTING, "id": "b"}]},
        409,
        "faults[1].id: there is a fault rule b",
    ),
    "unsupported broker state": (
        {"faults": [UNKNOWN_TOPIC, {"action": "isolate"}]},
        400,
        "faults[1].action: expected a cluster of several brokers; this one has 1",
    ),
}


@pytest.mark.parametrize(("body", "status", "error"), WRONG.values(), ids=WRONG)
def test_invalid_rule_is_rejected_and_none_is_added(body: object, status: int, error: str, admin: Admin) -> None:
    admin.send(PATH, "POST", EXISTING)
    actual_status, result = admin.send(PATH, "POST", body)
    assert actual_status == status
    assert result["error"].startswith(error)
    assert ids(admin) == ["a"]


PLACES = {
    "no action": ({}, "action"),
    "field of the rule": ({"action": "close", "api": ["Fetch", "Prodcue"]}, "api[1]"),
    "field of the action": ({"action": {"kind": "error", "code": "NO"}}, "action.code"),
    "one rule of several": ({"faults": [UNKNOWN_TOPIC, {"action": "close", "times": "x"}]}, "faults[1].times"),
    "existing id": (EXISTING, "id"),
}


@pytest.mark.parametrize(("body", "path"), PLACES.values(), ids=PLACES)
def test_error_names_the_path_in_the_body(body: object, path: str, admin: Admin) -> None:
    admin.send(PATH, "POST", EXISTING)
    assert admin.send(PATH, "POST", body)[1]["path"] == path


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_unknown_rule_is_not_found(method: str, admin: Admin) -> None:
    assert admin.send(f"{PATH}/x", method) == (404, {"error": "unknown fault rule 'x'; none exists"})
    admin.send(PATH, "POST", EXISTING)
    assert admin.send(f"{PATH}/x", method) == (404, {"error": "unknown fault rule 'x'; expected one of a"})


GUARDED = [
    (PATH, "GET"),
    (PATH, "POST"),
    (PATH, "DELETE"),
    (f"{PATH}/a", "GET"),
    (f"{PATH}/a", "DELETE"),
    (f"{PATH}/schema", "GET"),
]


@pytest.mark.parametrize(("path", "method"), GUARDED)
def test_missing_token_is_rejected(path: str, method: str) -> None:
    assert Admin("sluice.admin.token=secret").send(path, method)[0] == 401
