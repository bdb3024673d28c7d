"""Wrong requests to the admin port: a status, and one line that states the place and the problem."""

import http.client
import json
from collections.abc import Iterator

import pytest

from sluice import SyncBroker

QUOTA = '{{"entity": {{"client-id": "a"}}, "quotas": {}}}'.format
# Request -> status and a part of the message.
REQUESTS: dict[tuple[str, ...], tuple[int, str]] = {
    ("GET", "/nope"): (404, "/nope: there is no such path; /api/openapi.json lists all paths"),
    ("GET", "/page/../main.py"): (404, "there is no such path"),
    ("GET", "/%2e%2e/etc/passwd"): (404, "there is no such path"),
    ("GET", "/" + "a" * 9000): (404, "there is no such path"),
    ("OPTIONS", "/metrics"): (405, "OPTIONS /metrics: method not allowed; expected GET, HEAD"),
    ("POST", "/api/v1/quotas", "{}"): (405, "method not allowed; expected GET, PUT, DELETE, HEAD"),
    ("PUT", "/api/v1/quotas", ""): (400, "entity: missing"),
    ("PUT", "/api/v1/quotas", "{"): (400, "the body is not JSON: Input data was truncated"),
    ("PUT", "/api/v1/quotas", "[]"): (400, "expected a table, got a list"),
    ("PUT", "/api/v1/quotas", '{"a":' * 9000): (400, "the body is nested too deeply"),
    ("PUT", "/api/v1/quotas", "x" * 100_000): (400, "the body is too large; expected at most 65536 bytes"),
    ("PUT", "/api/v1/quotas", '{"entity": {}, "quotas": {}}'): (400, "Invalid empty client quota entity"),
    ("PUT", "/api/v1/quotas", '{"entity": {"client": "a"}, "quotas": {}}'): (400, "Unhandled client quota entity type"),
    ("PUT", "/api/v1/quotas", '{"entity": {"client-id": 5}, "quotas": {}}'): (400, "entity.client-id: expected text"),
    ("PUT", "/api/v1/quotas", '{"entity": {}, "quota": {}}'): (400, "quota: unknown field; expected one of"),
    ("PUT", "/api/v1/quotas", QUOTA('{"producer_byte_rate": "fast"}')): (
        400,
        "producer_byte_rate: expected bytes per second of at least 1, such as 2M, 512Ki or 1e6, got fast",
    ),
    ("PUT", "/api/v1/quotas", QUOTA('{"request_percentage": "x"}')): (400, "request_percentage: expected a number"),
    ("PUT", "/api/v1/quotas", QUOTA('{"request_percentage": 5, "producer_byte_rate": true}')): (
        400,
        "quotas.producer_byte_rate: expected a number or text or nothing, got true or false",
    ),
    ("PUT", "/api/v1/quotas", QUOTA('{"producer_byte_rate": -1}')): (400, "must be greater than 0"),
    ("PUT", "/api/v1/quotas", QUOTA('{"producer_byte_rate": NaN}')): (400, "the body is not JSON"),
    ("PUT", "/api/v1/quotas", QUOTA('{"producer_byte_rate": 1e400}')): (
        400,
        "the body is not JSON: Number out of range",
    ),
    ("PUT", "/api/v1/quotas", QUOTA('{"nope": 1}')): (400, "Invalid configuration key nope"),
    ("GET", "/api/v1/quotas?x=1"): (400, "x: unknown parameter; expected no parameters"),
    ("GET", "/api/v1/quotas/explain"): (400, "client_id: missing"),
    ("GET", "/api/v1/quotas/explain?client_id=a&x=1"): (400, "x: unknown parameter; expected client_id, user"),
    ("POST", "/api/v1/faults", '{"action": "clos"}'): (400, "fault.action: expected one of error, delay"),
    ("POST", "/api/v1/faults", '{"action": {"kind": "error"}}'): (400, "fault.action.code: missing"),
    ("POST", "/api/v1/faults", "5"): (400, "fault: expected a table, got a whole number"),
    ("POST", "/api/v1/faults", '{"action": "close", "apis": "x"}'): (400, "fault.apis: unknown field"),
    ("GET", "/api/v1/faults/none"): (404, "unknown fault rule 'none'; none exists"),
    ("DELETE", "/api/v1/faults/%FF"): (404, "unknown fault rule"),
    ("GET", "/api/v1/journal?limit=x"): (400, "limit: expected a whole number, got 'x'"),
    ("GET", "/api/v1/journal?limit=-1"): (400, "limit: expected a whole number >= 1"),
    ("GET", "/api/v1/journal?limit=99999999999999999999"): (400, "limit: expected a whole number <= 10000"),
    ("GET", "/api/v1/journal?kind=x"): (400, "kind: expected one of connection-opened, "),
    ("GET", "/api/v1/journal?api=x"): (400, "api: expected one of Produce, "),
    ("GET", "/api/v1/journal?broker=x"): (400, "broker: expected a node id, got x"),
    ("GET", "/api/v1/journal?follow=maybe"): (400, "follow: expected true or false, got 'maybe'"),
    ("POST", "/api/v1/brokers/9/stop"): (404, "there is no broker 9; expected one of 1"),
    ("POST", "/api/v1/brokers/x/stop"): (400, "node_id: expected a node id, got 'x'"),
    ("POST", "/api/v1/brokers/99999999999999999999/stop"): (400, "node_id: expected a node id"),
    ("GET", "/api/v1/brokers/1/stop"): (405, "method not allowed; expected POST"),
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with SyncBroker(admin_port=0) as broker:
        assert broker.admin is not None
        yield broker.admin.removeprefix("http://")


def test_text_rates_are_accepted(address: str) -> None:
    connection = http.client.HTTPConnection(address)
    connection.request(
        "PUT", "/api/v1/quotas", QUOTA('{"producer_byte_rate": "512Ki"}'), {"content-type": "application/json"}
    )
    assert json.load(connection.getresponse())["quotas"] == {"producer_byte_rate": 524288.0}
    connection.close()


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda parts: " ".join(parts)[:80])
def test_wrong_request_is_one_line(request_: tuple[str, ...], address: str) -> None:
    status, message = REQUESTS[request_]
    connection = http.client.HTTPConnection(address)
    method, path, *body = request_
    connection.request(method, path, body[0] if body else None, {"content-type": "application/json"})
    response = connection.getresponse()
    error = json.load(response)["error"]
    assert response.status == status
    assert message in error
    assert "\n" not in error
    connection.close()
