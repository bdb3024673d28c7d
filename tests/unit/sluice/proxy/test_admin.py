"""The admin port of a proxy: every operation works, or is refused in one line with the reason."""

import json

import pytest

from sluice.broker.admin.application import OPERATIONS, application
from sluice.broker.scenarios.files import names
from sluice.web import load
from tests.support.http import Admin, call
from tests.support.records import produce
from tests.support.virtual_broker import VirtualBroker
from tests.support.virtual_proxy import VirtualProxy

FAULT = '{"id": "f", "action": {"kind": "error", "code": 6}, "api": "Produce"}'
QUOTA = '{"entity": {"client-id": "shop"}, "quotas": {"producer_byte_rate": 1000}}'
SCENARIO = '{"scenario": {"name": "s", "steps": [{"at": "1s", "say": "hello"}]}}'
_LEADS = "a proxy does not choose leaders; the cluster behind it does"
# Operation -> for each request: path, body, status, and a part of the response.
REQUESTS: dict[str, list[tuple[str, str, int, str]]] = {
    "GET /healthz": [("/healthz", "", 200, '{"status":"ok"}')],
    "GET /metrics": [("/metrics", "", 200, 'sluice_upstream_reachable{broker="1"} 1.0')],
    "GET /api/openapi.json": [("/api/openapi.json", "", 200, '"openapi"')],
    "GET /api/v1/cluster": [("/api/v1/cluster", "", 200, '"upstream":"upstream:9092"')],
    "POST /api/v1/brokers/{node_id}/stop": [
        ("/api/v1/brokers/1/stop", "", 200, '"state":"stopped"'),
        ("/api/v1/brokers/1/stop", '{"controlled": false}', 200, '"state":"stopped"'),
    ],
    "POST /api/v1/brokers/{node_id}/start": [("/api/v1/brokers/1/start", "", 409, "broker 1 is running")],
    "POST /api/v1/brokers/{node_id}/isolate": [("/api/v1/brokers/1/isolate", "", 200, '"state":"isolated"')],
    "POST /api/v1/brokers/{node_id}/rejoin": [("/api/v1/brokers/1/rejoin", "", 409, "broker 1 is running")],
    "POST /api/v1/partitions/{topic}/{index}/leader": [
        ("/api/v1/partitions/t/0/leader", '{"node": 1}', 409, _LEADS),
        ("/api/v1/partitions/t/0/leader", '{"election": "preferred"}', 409, _LEADS),
        ("/api/v1/partitions/nowhere/0/leader", '{"election": "unclean"}', 409, _LEADS),
    ],
    "GET /api/v1/faults": [("/api/v1/faults", "", 200, '"id":"before"')],
    "POST /api/v1/faults": [
        ("/api/v1/faults", FAULT, 200, '"id":"f"'),
        ("/api/v1/faults", '{"action": "disk-full"}', 400, "disk-full is not possible in a proxy"),
    ],
    "DELETE /api/v1/faults": [("/api/v1/faults", "", 200, '"id":"before"')],
    "GET /api/v1/faults/schema": [("/api/v1/faults/schema", "", 200, '"$defs"')],
    "GET /api/v1/faults/{id}": [("/api/v1/faults/before", "", 200, '"id":"before"')],
    "POST /api/v1/faults/{id}/release": [("/api/v1/faults/before/release", "{}", 200, '"held":0')],
    "DELETE /api/v1/faults/{id}": [("/api/v1/faults/before", "", 200, '"id":"before"')],
    "GET /api/v1/journal": [("/api/v1/journal", "", 200, '"kind":"request"')],
    "GET /api/v1/journal/schema": [("/api/v1/journal/schema", "", 200, '"$defs"')],
    "POST /api/v1/observe": [("/api/v1/observe", "", 200, '{"faults":["before"],"quotas":0,"scenario":""}')],
    "GET /api/v1/quotas": [("/api/v1/quotas", "", 200, '{"quotas":[]}')],
    "PUT /api/v1/quotas": [("/api/v1/quotas", QUOTA, 200, '"producer_byte_rate":1000')],
    "DELETE /api/v1/quotas": [("/api/v1/quotas", '{"entity": {"client-id": "shop"}}', 200, '"quotas":{}')],
    "GET /api/v1/quotas/explain": [("/api/v1/quotas/explain?client_id=shop", "", 200, '"node_id":1')],
    "GET /api/v1/scenarios": [("/api/v1/scenarios", "", 200, '"name":"quota-squeeze"')],
    "POST /api/v1/scenarios/run": [
        ("/api/v1/scenarios/run", SCENARIO, 200, '"state":"running"'),
        ("/api/v1/scenarios/run", '{"name": "rolling-restart"}', 409, "brokers: the scenario expects 1, 2, 3, got 1"),
    ],
    "GET /api/v1/scenarios/runs": [("/api/v1/scenarios/runs", "", 200, '{"runs":[]}')],
    "GET /api/v1/scenarios/runs/{id}": [("/api/v1/scenarios/runs/run-1", "", 404, "no scenario has run yet")],
    "DELETE /api/v1/scenarios/runs/{id}": [("/api/v1/scenarios/runs/run-1", "", 404, "no scenario has run yet")],
}
_RUNS = "/api/v1/scenarios/runs"
CASES = [(operation.split()[0], *request) for operation, requests in REQUESTS.items() for request in requests]


def proxy_with_traffic() -> VirtualProxy:
    proxy = VirtualProxy("sluice.journal.events=1000")
    proxy.upstream.topic()
    proxy.client("shop").call(produce(9), 9)
    proxy.cluster_server.faults.add({"id": "before", "action": "close", "api": "Fetch"})
    return proxy


def test_every_operation_is_listed() -> None:
    assert {*REQUESTS} == {f"{one.method} {one.path}" for one in OPERATIONS}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "part"),
    CASES,
    ids=[f"{method} {path} {body}" for method, path, body, *_ in CASES],
)
def test_operation_works_or_is_refused_in_one_line(method: str, path: str, body: str, status: int, part: str) -> None:
    path, _, query = path.partition("?")
    app = application(proxy_with_traffic().cluster_server, load())
    actual, _, response = call(app, path, method, body, query)
    assert (actual, part in response) == (status, True), response
    if status >= 400:
        assert "\n" not in json.loads(response)["error"]


def test_cluster_is_the_upstream_without_topics() -> None:
    proxy = proxy_with_traffic()
    status, result = Admin(broker=proxy).send("/api/v1/cluster")
    upstream_port, port = proxy.upstream.server.endpoints[0].port, proxy.server.endpoints[0].port
    assert status == 200
    assert result == {
        "cluster_id": proxy.upstream.cluster.cluster_id,
        "controller_id": 1,
        "brokers": [
            {
                "id": 1,
                "state": "running",
                "fenced": False,
                "listeners": {"PLAINTEXT": f"127.0.0.1:{port}"},
                "upstream": {"address": f"upstream:{upstream_port}", "reachable": True},
            }
        ],
        "upstream": "upstream:9092",
    }


def test_catalogue_lists_the_scenarios_that_a_proxy_can_run() -> None:
    admin = Admin(broker=VirtualProxy(upstream=VirtualBroker("sluice.brokers=3")))
    listed = {entry["name"] for entry in admin.send("/api/v1/scenarios")[1]["scenarios"]}
    refused = {*names()} - listed
    assert "disk-full" in refused
    for name in names():
        status, result = admin.send("/api/v1/scenarios/run", "POST", {"name": name})
        assert (status == 409) == (name in refused)
        if status == 409:
            assert "not possible in a proxy" in result["error"]
        else:
            admin.send(f"{_RUNS}/{result['id']}", "DELETE")
