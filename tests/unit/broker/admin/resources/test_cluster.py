"""`/api/v1` of the cluster: its state, changes, and errors."""

from typing import Any

import pytest

from tests.support.http import Admin

TOKEN = "sluice.admin.token=a secret"


def three(*overrides: str) -> Admin:
    """Return the admin port of three brokers with partition t-0 on brokers 1 and 2."""
    admin = Admin("sluice.brokers=3", *overrides)
    admin.broker.topic(assignments={0: (1, 2)})
    return admin


def post(admin: Admin, path: str, body: str = "") -> tuple[int, Any]:
    return admin.send(f"/api/v1/{path}", "POST", body)


def test_cluster_state_is_returned() -> None:
    admin = three()
    status, result = admin.send("/api/v1/cluster")
    assert status == 200
    port = admin.broker.server.endpoints[0].port
    assert result["controller_id"] == 1
    assert result["brokers"][0] == {
        "id": 1,
        "state": "running",
        "fenced": False,
        "listeners": {"PLAINTEXT": f"127.0.0.1:{port}"},
        "leads": 1,
    }
    assert [broker["id"] for broker in result["brokers"]] == [1, 2, 3]
    assert result["topics"] == [
        {
            "name": "t",
            "partitions": [
                {
                    "index": 0,
                    "leader": 1,
                    "leader_epoch": 0,
                    "replicas": [1, 2],
                    "isr": [1, 2],
                    "adding": [],
                    "removing": [],
                    "high_watermark": 0,
                    "log_end_offset": 0,
                }
            ],
        }
    ]


def test_brokers_can_be_stopped_started_isolated_and_rejoined() -> None:
    admin = three()
    status, result = post(admin, "brokers/1/stop")
    assert (status, result["state"], result["fenced"]) == (200, "stopped", True)
    assert admin.broker.partition().leader == 2
    status, result = post(admin, "brokers/1/start")
    assert (status, result["state"], result["fenced"]) == (200, "running", False)
    status, result = post(admin, "brokers/2/isolate")
    assert (status, result["state"]) == (200, "isolated")
    status, result = post(admin, "brokers/2/rejoin")
    assert (status, result["state"]) == (200, "running")
    status, result = post(admin, "brokers/2/stop", '{"controlled": false}')
    assert (status, result["state"], result["fenced"]) == (200, "stopped", False)


def test_leader_can_be_moved_and_elected() -> None:
    admin = three()
    status, result = post(admin, "partitions/t/0/leader", '{"node": 2}')
    assert (status, result["leader"], result["leader_epoch"]) == (200, 2, 1)
    status, result = post(admin, "partitions/t/0/leader", '{"election": "preferred"}')
    assert (status, result["leader"]) == (200, 1)
    status, result = post(admin, "partitions/t/0/leader", '{"election": "preferred"}')
    assert (status, result["leader"]) == (200, 1), "an election that is not needed is no error"


INVALID_REQUESTS = {
    "unknown broker": ("brokers/4/stop", "", 404, "there is no broker 4; expected one of 1, 2, 3"),
    "invalid broker id": ("brokers/x/stop", "", 400, "node_id: expected a node id, got 'x'"),
    "start of a running broker": ("brokers/1/start", "", 409, "broker 1 is running"),
    "rejoin of a running broker": ("brokers/1/rejoin", "", 409, "broker 1 is running"),
    "invalid JSON": ("brokers/1/stop", "{", 400, "Input data was truncated"),
    "unknown field": ("brokers/1/stop", '{"controled": 1}', 400, "controled: unknown field"),
    "wrong type": ("brokers/1/stop", '{"controlled": 1}', 400, "controlled: expected true or false"),
    "large body": ("brokers/1/stop", " " * 70_000, 400, "at most 65536 bytes"),
    "unknown topic": ("partitions/u/0/leader", '{"node": 1}', 404, "there is no topic u"),
    "unknown partition": (
        "partitions/t/1/leader",
        '{"node": 1}',
        404,
        "partition t-1 does not exist; expected partition 0 to 0",
    ),
    "no replica": ("partitions/t/0/leader", '{"node": 3}', 409, "broker 3 has no replica of t-0"),
    "empty request": ("partitions/t/0/leader", "{}", 400, 'expected the body {"node": ID}'),
    "unknown election type": ("partitions/t/0/leader", '{"election": "fair"}', 400, "election: expected one of "),
}


@pytest.mark.parametrize(("path", "body", "status", "error"), INVALID_REQUESTS.values(), ids=INVALID_REQUESTS)
def test_invalid_request_returns_an_error(path: str, body: str, status: int, error: str) -> None:
    actual_status, result = post(three(), path, body)
    assert actual_status == status
    assert error in result["error"]


def test_replica_out_of_sync_cannot_lead() -> None:
    admin = three()
    post(admin, "brokers/2/stop")
    status, result = post(admin, "partitions/t/0/leader", '{"node": 2}')
    assert (status, result["error"]) == (409, "broker 2 is not in sync for t-0; expected one of 1")
    post(admin, "brokers/1/stop")
    status, result = post(admin, "partitions/t/0/leader", '{"election": "unclean"}')
    assert status == 409
    assert result["error"].startswith("t-0: ")


@pytest.mark.parametrize("path", ["brokers/1/stop", "brokers/1/isolate", "partitions/t/0/leader"])
def test_changes_require_the_token(path: str) -> None:
    admin = three(TOKEN)
    status, _ = post(admin, path, '{"node": 2}')
    assert status == 401
    assert admin.broker.cluster.controller.is_running(1)
    assert admin.broker.partition().leader == 1


def test_reads_require_the_token() -> None:
    admin = three(TOKEN)
    assert admin.send("/api/v1/cluster")[0] == 401
    assert admin.send("/api/v1/cluster", token="a secret")[0] == 200
