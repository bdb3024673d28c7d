"""Requests for the controller, on a broker that cannot reach it."""

from copy import copy
from typing import Any

import pytest

from sluice.broker.exchange.forwarding import FORWARDING_TIMEOUT_MS
from sluice.broker.exchange.registry import FORWARDED, HANDLERS
from sluice.protocol.apis import API_KEYS, api_of
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.messages import request
from tests.support.virtual_broker import Client, VirtualBroker
from tests.support.wire import error_codes

A_B = ("a", "b")
# The fields of a request with two entries, and how many error codes the response has, with the top-level one.
TWO_ENTRIES: dict[str, tuple[dict[str, Any], int]] = {
    "AlterClientQuotas": ({"entries": [{"entity": [{"entity_type": "user", "entity_name": name}]} for name in A_B]}, 2),
    "AlterConfigs": ({"resources": [{"resource_type": 2, "resource_name": name} for name in A_B]}, 2),
    "AlterPartitionReassignments": ({"topics": [{"name": name, "partitions": [{}]} for name in A_B]}, 3),
    "AlterUserScramCredentials": (
        {
            "deletions": [{"name": "b", "mechanism": 1}],
            "upsertions": [{"name": name, "mechanism": 1} for name in ("b", "a")],
        },
        2,
    ),
    "CreateAcls": ({"creations": [{}, {}]}, 2),
    "CreatePartitions": ({"topics": [{"name": name, "assignments": None} for name in A_B], "timeout_ms": 1000}, 2),
    "CreateTopics": ({"topics": [{"name": name} for name in A_B]}, 2),
    "DeleteAcls": ({"filters": [{}, {}]}, 2),
    "DeleteTopics": ({"topic_names": ["a", "b"], "topics": [{"name": name} for name in A_B], "timeout_ms": 1000}, 2),
    "DescribeQuorum": ({"topics": [{"topic_name": name} for name in A_B]}, 1),
    "UnregisterBroker": ({"broker_id": 1}, 1),
    "UpdateFeatures": ({"feature_updates": [{"feature": name} for name in A_B]}, 1),
    "ElectLeaders": ({"topic_partitions": [{"topic": name, "partitions": [0]} for name in A_B]}, 3),
    "IncrementalAlterConfigs": ({"resources": [{"resource_type": 2, "resource_name": name} for name in A_B]}, 2),
    "ListPartitionReassignments": ({"topics": [{"name": name, "partition_indexes": [0]} for name in A_B]}, 1),
}
WITHOUT_NAMES = {"CreateAcls", "DeleteAcls", "UnregisterBroker", "UpdateFeatures"}  # in responses
WITHOUT_TOP_LEVEL_CODE = {("ElectLeaders", 0)}
TIMED = {"AlterPartitionReassignments", "CreatePartitions", "CreateTopics", "DeleteTopics", "ElectLeaders"}
EVERY_VERSION = [
    pytest.param(request(api, **fields), version, codes, id=f"{api} v{version}")
    for api, (fields, codes) in TWO_ENTRIES.items()
    for handler in (HANDLERS[key] for key in HANDLERS if API_KEYS[key].name == api)
    for version in range(handler.min_version, handler.max_version + 1)
]


def isolated() -> tuple[VirtualBroker, Client]:
    cluster = VirtualBroker("sluice.brokers=3")
    cluster.cluster_server.isolate_broker(1)
    return cluster, cluster.client(node_id=1)


def test_every_forwarded_api_has_a_case() -> None:
    assert {*TWO_ENTRIES} == {API_KEYS[key].name for key in FORWARDED & HANDLERS.keys()}


@pytest.mark.parametrize(("request_", "version", "codes"), EVERY_VERSION)
def test_every_entry_of_a_forwarded_request_times_out_after_a_minute(
    request_: Message, version: int, codes: int
) -> None:
    cluster, client = isolated()
    client.send(request_, version)
    cluster.advance(FORWARDING_TIMEOUT_MS - 1)
    assert not client.responses
    cluster.advance(1)
    response = client.response()
    codes -= (response.api, version) in WITHOUT_TOP_LEVEL_CODE
    assert error_codes(response.message) == [ErrorCode.REQUEST_TIMED_OUT] * codes
    text = repr(response.message)
    assert response.api in WITHOUT_NAMES or 0 < text.index("'a'") < text.index("'b'")
    cluster.cluster_server.rejoin_broker(1)
    assert not client.responses, "a request gets one response"
    assert not cluster.cluster.topics, "a request that timed out is not performed"


@pytest.mark.parametrize("timeout_ms", [0, -1])
@pytest.mark.parametrize(
    ("request_", "version", "codes"), [case for case in EVERY_VERSION if str(case.id).split()[0] in TIMED]
)
def test_request_without_time_is_not_performed(request_: Message, version: int, codes: int, timeout_ms: int) -> None:
    broker = VirtualBroker()
    timed = copy(request_)
    timed.timeout_ms = timeout_ms  # type: ignore[attr-defined]
    codes -= (api_of(type(request_)).name, version) in WITHOUT_TOP_LEVEL_CODE
    assert error_codes(broker.client().call(timed, version)) == [ErrorCode.REQUEST_TIMED_OUT] * codes
    assert not broker.cluster.topics


def test_request_of_a_disconnected_client_is_not_forwarded() -> None:
    cluster, client = isolated()
    client.send(request("CreateTopics", topics=[{"name": "a", "num_partitions": 1, "replication_factor": 1}]), 7)
    client.leave()
    cluster.cluster_server.rejoin_broker(1)
    cluster.settle()
    assert not cluster.cluster.topics


def test_stopping_the_broker_closes_connections_with_waiting_requests() -> None:
    cluster, client = isolated()
    client.send(request("CreateTopics", topics=[{"name": "a"}]), 7)
    cluster.cluster_server.stop_broker(1)
    cluster.advance(FORWARDING_TIMEOUT_MS)
    assert not client.responses
    assert not client.is_open
