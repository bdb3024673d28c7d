"""`/api/v1/quotas` of the admin port."""

import json
from typing import Any

import pytest
from starlette.applications import Starlette

from sluice.broker.admin.server import application
from tests.support.http import call
from tests.support.records import produce_of
from tests.support.virtual_broker import VirtualBroker

PATH = "/api/v1/quotas"
ALICE = {"user": "alice"}


def ask(
    app: Starlette, method: str, path: str = PATH, body: object = None, query: str = "", token: str | None = None
) -> tuple[int, Any]:
    """Status and JSON of one answer."""
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    status, _, answer = call(app, path, method, text, query, **headers)
    return status, json.loads(answer)


def test_quotas_are_set_listed_and_deleted() -> None:
    broker = VirtualBroker()
    app = application(broker.cluster_server)
    wanted = {"producer_byte_rate": 1000.0, "request_percentage": 12.5}
    assert ask(app, "PUT", body={"entity": ALICE, "quotas": wanted}) == (200, {"entity": ALICE, "quotas": wanted})
    everyone = {"client-id": None}
    ask(app, "PUT", body={"entity": everyone, "quotas": {"consumer_byte_rate": 5}})
    assert ask(app, "GET") == (
        200,
        {
            "quotas": [
                {"entity": ALICE, "quotas": wanted},
                {"entity": everyone, "quotas": {"consumer_byte_rate": 5.0}},
            ]
        },
    )
    left = {"producer_byte_rate": 1000.0}
    assert ask(app, "DELETE", body={"entity": ALICE, "keys": ["request_percentage"]}) == (
        200,
        {"entity": ALICE, "quotas": left},
    )
    assert ask(app, "PUT", body={"entity": ALICE, "quotas": {"producer_byte_rate": None}})[1]["quotas"] == {}
    assert ask(app, "DELETE", body={"entity": everyone}) == (200, {"entity": everyone, "quotas": {}})
    assert ask(app, "GET") == (200, {"quotas": []})


@pytest.mark.parametrize(
    ("method", "body", "problem"),
    [
        pytest.param(
            "PUT",
            {"entity": ALICE, "quotas": {"producer_byte_rate": 0}},
            '{"user":"alice"}: Quota producer_byte_rate must be greater than 0',
            id="what AlterClientQuotas refuses, with entity, key and rule",
        ),
        pytest.param("PUT", {"entity": {}, "quotas": {}}, "{}: Invalid empty client quota entity", id="no entity"),
        pytest.param("DELETE", {"entity": {}}, "{}: Invalid empty client quota entity", id="no entity to delete of"),
        pytest.param("PUT", "{", "the body is not JSON: Input data was truncated", id="no JSON"),
        pytest.param("PUT", {"entity": ALICE}, "quotas: is needed", id="no quotas"),
        pytest.param(
            "DELETE",
            {"entity": ALICE, "key": "x"},
            "key: unknown field, did you mean keys?",
            id="another field",
        ),
        pytest.param(
            "PUT", " " * 70_000, "the body is too large; expected at most 65536 bytes", id="a body without end"
        ),
    ],
)
def test_a_change_that_is_refused_changes_nothing_and_says_why(method: str, body: object, problem: str) -> None:
    broker = VirtualBroker()
    status, answer = ask(application(broker.cluster_server), method, body=body)
    assert status == 400
    assert problem in answer["error"]
    assert broker.cluster.client_quotas.matching({}, (), strict=False) == []


@pytest.mark.parametrize(
    ("entity", "quotas", "path"),
    [
        pytest.param(
            ALICE, {"producer_byte_rate": 1, "consumer_byte_rate": 0}, "quotas.consumer_byte_rate", id="value"
        ),
        pytest.param({"user": "alice", "client-id": ""}, {}, "entity.client-id", id="one name of an entity"),
        pytest.param({"ip": "nowhere.example"}, {}, "entity.ip", id="an address"),
        pytest.param({"ip": "::1", "user": "alice"}, {}, "entity", id="names that do not go together"),
    ],
)
def test_where_in_the_body_a_mistake_is(entity: object, quotas: object, path: str) -> None:
    app = application(VirtualBroker().cluster_server)
    assert ask(app, "PUT", body={"entity": entity, "quotas": quotas})[1]["path"] == path


@pytest.mark.parametrize(
    ("method", "path"), [("GET", PATH), ("PUT", PATH), ("DELETE", PATH), ("GET", f"{PATH}/explain")]
)
def test_who_has_no_token_may_not_ask(method: str, path: str) -> None:
    broker = VirtualBroker("sluice.admin.token=secret")
    app = application(broker.cluster_server)
    body = {"entity": ALICE, "quotas": {"producer_byte_rate": 5}}
    assert ask(app, method, path, body=body, query="client_id=c")[0] == 401
    assert broker.cluster.client_quotas.matching({}, (), strict=False) == []
    assert ask(app, method, path, body=None, query="client_id=c", token="secret")[0] != 401


def test_an_explanation_tells_of_quotas_and_connections() -> None:
    broker = VirtualBroker("quota.producer.default=1000", "quota.profile=kafka-4.4")
    broker.topic()
    for client_id in ("c", "other"):
        client = broker.client(client_id)
        for size, wait_ms in ((500, 0), (11_500, 2_000)):
            client.send(produce_of(size, 9, client_id), 9)
            assert client.answer().throttle_time_ms == wait_ms
    app = application(broker.cluster_server)
    status, found = ask(app, "GET", f"{PATH}/explain", query="client_id=c")
    assert status == 200
    assert (found["client_id"], found["user"], found["profile"]) == ("c", "ANONYMOUS", "kafka-4.4")
    ((broker_seen,)) = found["brokers"]
    produce, fetch = broker_seen["quotas"]
    assert produce["last_delay"]["arithmetic"] == "(1,200 - 1,000) / 1,000 * 10000 ms = 2000 ms"
    assert (fetch["kind"], fetch["rate"]) == ("Fetch", None)
    (connection,) = broker_seen["connections"]
    assert connection["waits"]
    assert (connection["produce_throttle_time_avg_ms"], connection["produce_throttle_time_max_ms"]) == (1_000, 2_000)
    assert connection["fetch_throttle_time_avg_ms"] is None


def test_an_explanation_of_each_broker_and_one_of_the_controller() -> None:
    broker = VirtualBroker("sluice.brokers=2")
    broker.cluster.client_quotas.alter({"client-id": None}, {"controller_mutation_rate": 5.0})
    _, found = ask(application(broker.cluster_server), "GET", f"{PATH}/explain", query="client_id=c&user=alice")
    assert [seen["node_id"] for seen in found["brokers"]] == [1, 2]
    assert found["brokers"][0]["quotas"][-1]["kind"] == "ControllerMutation"


@pytest.mark.parametrize(
    ("query", "problem"),
    [("", "client_id: is needed"), ("client_id=c&x=1", "x: unknown parameter; expected client_id, user")],
)
def test_a_question_that_names_no_client_is_refused(query: str, problem: str) -> None:
    status, found = ask(application(VirtualBroker().cluster_server), "GET", f"{PATH}/explain", query=query)
    assert status == 400
    assert problem in found["error"]
