"""`/api/v1/faults`: rules are added, shown and removed, and what is said to a request that cannot be."""

import json
from typing import Any

import pytest
from starlette.applications import Starlette

from sluice.broker.admin.server import application
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.http import call
from tests.support.virtual_broker import VirtualBroker

PATH = "/api/v1/faults"
GONE = {"action": {"kind": "error", "code": "UNKNOWN_TOPIC_OR_PARTITION"}, "api": "Metadata"}


class Admin:
    def __init__(self, *overrides: str) -> None:
        self.broker = VirtualBroker(*overrides)
        self._application: Starlette = application(self.broker.cluster_server)

    def ask(self, path: str, method: str = "GET", body: object = None) -> tuple[int, Any]:
        text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        status, _, answer = call(self._application, path, method, text)
        return status, json.loads(answer)

    def ids(self) -> list[str]:
        return [fault["id"] for fault in self.ask(PATH)[1]["faults"]]


def shown(state: str = "in force", matched: int = 0, hits: int = 0, **own: object) -> dict[str, object]:
    rule = {"id": "fault-1", "action": "error", "state": state, "matched": matched, "hits": hits, "problem": ""}
    return rule | {"rule": GONE} | own


def test_a_rule_is_added_hits_and_is_removed() -> None:
    admin = Admin()
    admin.broker.topic("t")
    assert admin.ask(PATH) == (200, {"faults": []})
    assert admin.ask(PATH, "POST", GONE) == (200, {"faults": [shown()]})
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    assert admin.broker.client().ask(asked, 9).topics[0].error_code == 3
    assert admin.ask(f"{PATH}/fault-1") == (200, shown(matched=1, hits=1))
    assert admin.ask(f"{PATH}/fault-1", "DELETE") == (200, shown("removed", 1, 1))
    assert admin.broker.client().ask(asked, 9).topics[0].error_code == 0
    assert admin.ids() == []


def test_several_are_added_and_all_removed() -> None:
    admin = Admin()
    assert admin.ask(PATH, "POST", {"faults": [{**GONE, "id": "a"}, {"action": "close", "times": 1}]})[0] == 200
    assert admin.ids() == ["a", "fault-1"]
    status, told = admin.ask(PATH, "DELETE")
    assert status == 200
    assert [(fault["id"], fault["state"]) for fault in told["faults"]] == [("a", "removed"), ("fault-1", "removed")]
    assert admin.ids() == []


def test_a_rule_that_will_hit_no_more_is_over() -> None:
    admin = Admin()
    admin.ask(PATH, "POST", {**GONE, "times": 1})
    admin.broker.client().ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    assert admin.ask(PATH)[1]["faults"] == [shown("over", 1, 1, rule={**GONE, "times": 1})]


def test_the_schema_is_served() -> None:
    status, told = Admin().ask(f"{PATH}/schema")
    assert status == 200
    assert "action" in told["$defs"]["Rule"]["required"]


TAKEN = {"action": "close", "id": "a"}
WRONG = {
    "no JSON": ("action: close", 400, "the body is not JSON: JSON is malformed"),
    "no action": ({"api": "Produce"}, 400, "fault.action: is needed"),
    "an action that there is not": (
        {"action": "explode"},
        400,
        "fault.action: unknown action 'explode'; expected one of",
    ),
    "a code that the API cannot answer": (
        {"action": {"kind": "error", "code": "UNKNOWN_MEMBER_ID"}, "api": "Metadata"},
        400,
        "fault.action.code: Metadata cannot return 25 UNKNOWN_MEMBER_ID; expected one of ",
    ),
    "one of several": (
        {"faults": [GONE, {"action": "close", "topic": "t", "api": "Heartbeat"}]},
        400,
        "faults[1].topic: ",
    ),
    "an id that is taken": (TAKEN, 409, "fault.id: there is a fault rule a already"),
    "an id twice": (
        {"faults": [{**TAKEN, "id": "b"}, {**TAKEN, "id": "b"}]},
        409,
        "faults[1].id: there is a fault rule b",
    ),
    "a state that cannot be brought about": (
        {"faults": [GONE, {"action": "isolate"}]},
        400,
        "faults[1].action: expected a cluster of several brokers; this one has 1",
    ),
}


@pytest.mark.parametrize(("body", "status", "said"), WRONG.values(), ids=WRONG)
def test_a_rule_that_cannot_be_is_refused_and_none_is_added(body: object, status: int, said: str) -> None:
    admin = Admin()
    admin.ask(PATH, "POST", TAKEN)
    answered, told = admin.ask(PATH, "POST", body)
    assert answered == status
    assert told["error"].startswith(said)
    assert admin.ids() == ["a"]


PLACES = {
    "no action": ({}, "action"),
    "a field of the rule": ({"action": "close", "api": ["Fetch", "Prodcue"]}, "api[1]"),
    "a field of the action": ({"action": {"kind": "error", "code": "NO"}}, "action.code"),
    "a rule of several": ({"faults": [GONE, {"action": "close", "times": "x"}]}, "faults[1].times"),
    "an id that is taken": (TAKEN, "id"),
}


@pytest.mark.parametrize(("body", "path"), PLACES.values(), ids=PLACES)
def test_where_in_the_body_a_mistake_is(body: object, path: str) -> None:
    admin = Admin()
    admin.ask(PATH, "POST", TAKEN)
    assert admin.ask(PATH, "POST", body)[1]["path"] == path


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_rule_that_there_is_not_is_not_found(method: str) -> None:
    admin = Admin()
    assert admin.ask(f"{PATH}/x", method) == (404, {"error": "unknown fault rule 'x'; none exists"})
    admin.ask(PATH, "POST", TAKEN)
    assert admin.ask(f"{PATH}/x", method) == (404, {"error": "unknown fault rule 'x'; expected one of a"})


@pytest.mark.parametrize(
    ("path", "method"),
    [
        (PATH, "GET"),
        (PATH, "POST"),
        (PATH, "DELETE"),
        (f"{PATH}/a", "GET"),
        (f"{PATH}/a", "DELETE"),
        (f"{PATH}/schema", "GET"),
    ],
)
def test_who_has_no_token_is_refused(path: str, method: str) -> None:
    assert Admin("sluice.admin.token=secret").ask(path, method)[0] == 401
