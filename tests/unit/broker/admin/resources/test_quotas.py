"""`/api/v1/quotas` of the admin port."""

import pytest

from tests.support.http import Admin
from tests.support.records import produce_of
from tests.support.virtual_broker import broker_with_topic

PATH = "/api/v1/quotas"
ALICE = {"user": "alice"}


def test_quotas_can_be_set_listed_and_deleted() -> None:
    admin = Admin()
    quotas = {"producer_byte_rate": 1000.0, "request_percentage": 12.5}
    assert admin.send(PATH, "PUT", {"entity": ALICE, "quotas": quotas}) == (200, {"entity": ALICE, "quotas": quotas})
    default_entity = {"client-id": None}
    admin.send(PATH, "PUT", {"entity": default_entity, "quotas": {"consumer_byte_rate": 5}})
    default = {"entity": default_entity, "quotas": {"consumer_byte_rate": 5.0}}
    assert admin.send(PATH) == (200, {"quotas": [{"entity": ALICE, "quotas": quotas}, default]})
    remaining = {"entity": ALICE, "quotas": {"producer_byte_rate": 1000.0}}
    assert admin.send(PATH, "DELETE", {"entity": ALICE, "keys": ["request_percentage"]}) == (200, remaining)
    assert admin.send(PATH, "PUT", {"entity": ALICE, "quotas": {"producer_byte_rate": None}})[1]["quotas"] == {}
    assert admin.send(PATH, "DELETE", {"entity": default_entity}) == (200, {"entity": default_entity, "quotas": {}})
    assert admin.send(PATH) == (200, {"quotas": []})


INVALID_CHANGES = {
    "invalid value, with entity and key": (
        "PUT",
        {"entity": ALICE, "quotas": {"producer_byte_rate": 0}},
        '{"user":"alice"}: Quota producer_byte_rate must be greater than 0',
    ),
    "empty entity": ("PUT", {"entity": {}, "quotas": {}}, "{}: Invalid empty client quota entity"),
    "empty entity to delete": ("DELETE", {"entity": {}}, "{}: Invalid empty client quota entity"),
    "invalid JSON": ("PUT", "{", "the body is not JSON: Input data was truncated"),
    "missing quotas": ("PUT", {"entity": ALICE}, "quotas: missing"),
    "unknown field": (
        "DELETE",
        {"entity": ALICE, "key": "x"},
        "key: unknown field; expected one of entity, keys. Did you mean keys?",
    ),
    "large body": ("PUT", " " * 70_000, "the body is too large; expected at most 65536 bytes"),
}


@pytest.mark.parametrize(("method", "body", "problem"), INVALID_CHANGES.values(), ids=INVALID_CHANGES)
def test_invalid_change_is_rejected_with_its_reason(method: str, body: object, problem: str) -> None:
    admin = Admin()
    status, response = admin.send(PATH, method, body)
    assert status == 400
    assert problem in response["error"]
    assert admin.broker.cluster.client_quotas.matching({}, (), strict=False) == []


ERROR_PATHS = {
    "value": (ALICE, {"producer_byte_rate": 1, "consumer_byte_rate": 0}, "quotas.consumer_byte_rate"),
    "one name of the entity": ({"user": "alice", "client-id": ""}, {}, "entity.client-id"),
    "address": ({"ip": "nowhere.example"}, {}, "entity.ip"),
    "invalid combination of names": ({"ip": "::1", "user": "alice"}, {}, "entity"),
}


@pytest.mark.parametrize(("entity", "quotas", "path"), ERROR_PATHS.values(), ids=ERROR_PATHS)
def test_error_names_the_path_in_the_body(entity: object, quotas: object, path: str) -> None:
    assert Admin().send(PATH, "PUT", {"entity": entity, "quotas": quotas})[1]["path"] == path


@pytest.mark.parametrize(
    ("method", "path"), [("GET", PATH), ("PUT", PATH), ("DELETE", PATH), ("GET", f"{PATH}/explain")]
)
def test_missing_token_is_rejected(method: str, path: str) -> None:
    admin = Admin("sluice.admin.token=secret")
    body = {"entity": ALICE, "quotas": {"producer_byte_rate": 5}}
    assert admin.send(path, method, body, "client_id=c")[0] == 401
    assert admin.broker.cluster.client_quotas.matching({}, (), strict=False) == []
    assert admin.send(path, method, None, "client_id=c", token="secret")[0] != 401


def test_explanation_contains_quotas_and_connections() -> None:
    broker = broker_with_topic("quota.producer.default=1000", "quota.profile=kafka-4.4")
    for client_id in ("c", "other"):
        client = broker.client(client_id)
        for size, wait_ms in ((500, 0), (11_500, 2_000)):
            assert client.exchange(produce_of(size, 9, client_id), 9).throttle_time_ms == wait_ms
    status, found = Admin(broker=broker).send(f"{PATH}/explain", query="client_id=c")
    assert status == 200
    assert (found["client_id"], found["user"], found["profile"]) == ("c", "ANONYMOUS", "kafka-4.4")
    ((broker_result,)) = found["brokers"]
    produce, fetch = broker_result["quotas"]
    assert (
        produce["last_delay"]["arithmetic"] == "(1,200 bytes/s - 1,000 bytes/s) / 1,000 bytes/s * 10,000 ms = 2,000 ms"
    )
    assert (fetch["kind"], fetch["rate"]) == ("Fetch", None)
    (connection,) = broker_result["connections"]
    assert connection["waits"]
    assert (connection["produce_throttle_time_avg_ms"], connection["produce_throttle_time_max_ms"]) == (1_000, 2_000)
    assert (produce["throttle_time_avg_ms"], fetch["throttle_time_avg_ms"]) == (2_000, None), "of throttled requests"
    (of_c,) = [one for one in broker.broker.quotas.produce.snapshot(0) if one.client_id == "c"]
    assert of_c.throttle_time_avg_ms == produce["throttle_time_avg_ms"], (
        "the value of kafka_server_produce_throttle_time"
    )
    assert connection["fetch_throttle_time_avg_ms"] is None


def test_explanation_covers_each_broker_and_the_controller() -> None:
    admin = Admin("sluice.brokers=2")
    admin.broker.cluster.client_quotas.alter({"client-id": None}, {"controller_mutation_rate": 5.0})
    _, found = admin.send(f"{PATH}/explain", query="client_id=c&user=alice")
    assert [broker_result["node_id"] for broker_result in found["brokers"]] == [1, 2]
    assert found["brokers"][0]["quotas"][-1]["kind"] == "ControllerMutation"


WRONG_QUERIES = [("", "client_id: missing"), ("client_id=c&x=1", "x: unknown parameter; expected client_id, user")]


@pytest.mark.parametrize(("query", "problem"), WRONG_QUERIES)
def test_explanation_without_a_client_id_is_rejected(query: str, problem: str) -> None:
    status, found = Admin().send(f"{PATH}/explain", query=query)
    assert status == 400
    assert problem in found["error"]
