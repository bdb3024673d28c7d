"""`/api/v1` of the cluster: what it tells, what it does, and what it says to a request that cannot be."""

import json
from typing import Any

import pytest

from sluice.broker.admin.server import application
from sluice.broker.metadata.new_topic import NewTopic
from tests.support.http import call
from tests.support.virtual_broker import VirtualBroker

TOKEN = "sluice.admin.token=a secret"


def three(*overrides: str) -> VirtualBroker:
    """Three brokers, and t-0 on 1 and 2."""
    cluster = VirtualBroker("sluice.brokers=3", *overrides)
    cluster.cluster.create(NewTopic("t", assignments={0: (1, 2)}))
    return cluster


def post(cluster: VirtualBroker, path: str, body: str = "", **headers: str) -> tuple[int, Any]:
    status, _, answer = call(application(cluster.cluster_server), path, "POST", body, **headers)
    cluster.settle()
    return status, json.loads(answer)


def test_the_cluster_is_told() -> None:
    cluster = three()
    status, _, body = call(application(cluster.cluster_server), "/api/v1/cluster")
    assert status == 200
    told = json.loads(body)
    port = cluster.server.endpoints[0].port
    assert told["controller_id"] == 1
    assert told["brokers"][0] == {
        "id": 1,
        "state": "running",
        "fenced": False,
        "listeners": {"PLAINTEXT": f"127.0.0.1:{port}"},
        "leads": 1,
    }
    assert [broker["id"] for broker in told["brokers"]] == [1, 2, 3]
    assert told["topics"] == [
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


def test_brokers_stop_start_are_cut_off_and_come_back() -> None:
    cluster = three()
    status, told = post(cluster, "/api/v1/brokers/1/stop")
    assert (status, told["state"], told["fenced"]) == (200, "stopped", True)
    assert cluster.partition().leader == 2
    status, told = post(cluster, "/api/v1/brokers/1/start")
    assert (status, told["state"], told["fenced"]) == (200, "running", False)
    status, told = post(cluster, "/api/v1/brokers/2/isolate")
    assert (status, told["state"]) == (200, "isolated")
    status, told = post(cluster, "/api/v1/brokers/2/rejoin")
    assert (status, told["state"]) == (200, "running")
    status, told = post(cluster, "/api/v1/brokers/2/stop", '{"controlled": false}')
    assert (status, told["state"], told["fenced"]) == (200, "stopped", False)


def test_a_leader_is_moved_and_elected() -> None:
    cluster = three()
    status, told = post(cluster, "/api/v1/partitions/t/0/leader", '{"node": 2}')
    assert (status, told["leader"], told["leader_epoch"]) == (200, 2, 1)
    status, told = post(cluster, "/api/v1/partitions/t/0/leader", '{"election": "preferred"}')
    assert (status, told["leader"]) == (200, 1)
    status, told = post(cluster, "/api/v1/partitions/t/0/leader", '{"election": "preferred"}')
    assert (status, told["leader"]) == (200, 1), "that none is needed is no error"


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        pytest.param(
            "brokers/4/stop", "", 404, "there is no broker 4; expected one of 1, 2, 3", id="an unknown broker"
        ),
        pytest.param("brokers/x/stop", "", 400, "node_id: must be a node id, not 'x'", id="no broker's id"),
        pytest.param("brokers/1/start", "", 409, "broker 1 is running", id="a broker that runs is not started"),
        pytest.param("brokers/1/rejoin", "", 409, "broker 1 is running", id="a broker that is there"),
        pytest.param("brokers/1/stop", "{", 400, "Input data was truncated", id="no JSON"),
        pytest.param(
            "brokers/1/stop",
            '{"controled": 1}',
            400,
            "controled: unknown field",
            id="another field",
        ),
        pytest.param(
            "brokers/1/stop", '{"controlled": 1}', 400, "controlled: must be true or false", id="another type"
        ),
        pytest.param("brokers/1/stop", " " * 70_000, 400, "at most 65536 bytes", id="a large body"),
        pytest.param("partitions/u/0/leader", '{"node": 1}', 404, "there is no topic u", id="an unknown topic"),
        pytest.param(
            "partitions/t/1/leader",
            '{"node": 1}',
            404,
            "partition t-1 does not exist; expected partition 0 to 0",
            id="no partition",
        ),
        pytest.param("partitions/t/0/leader", '{"node": 3}', 409, "broker 3 has no replica of t-0", id="no replica"),
        pytest.param("partitions/t/0/leader", "{}", 400, 'expected the body {"node": ID}', id="nothing wished"),
        pytest.param("partitions/t/0/leader", '{"election": "fair"}', 400, "election: 'fair': must be", id="unknown"),
    ],
)
def test_what_cannot_be_is_told(path: str, body: str, status: int, words: str) -> None:
    answered, told = post(three(), f"/api/v1/{path}", body)
    assert answered == status
    assert words in told["error"]


def test_a_replica_that_is_not_in_sync_does_not_lead() -> None:
    cluster = three()
    post(cluster, "/api/v1/brokers/2/stop")
    status, told = post(cluster, "/api/v1/partitions/t/0/leader", '{"node": 2}')
    assert (status, told["error"]) == (409, "broker 2 is not in sync for t-0; expected one of 1")
    post(cluster, "/api/v1/brokers/1/stop")
    status, told = post(cluster, "/api/v1/partitions/t/0/leader", '{"election": "unclean"}')
    assert status == 409
    assert told["error"].startswith("t-0: ")


@pytest.mark.parametrize("path", ["brokers/1/stop", "brokers/1/isolate", "partitions/t/0/leader"])
def test_a_token_guards_what_changes_the_cluster(path: str) -> None:
    cluster = three(TOKEN)
    status, _ = post(cluster, f"/api/v1/{path}", '{"node": 2}')
    assert status == 401
    assert cluster.cluster.controller.is_running(1)
    assert cluster.partition().leader == 1


def test_a_token_guards_what_is_told() -> None:
    app = application(three(TOKEN).cluster_server)
    assert call(app, "/api/v1/cluster")[0] == 401
    assert call(app, "/api/v1/cluster", authorization="Bearer a secret")[0] == 200
