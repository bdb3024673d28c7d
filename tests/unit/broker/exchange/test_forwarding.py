"""Requests for the controller, on a broker that cannot reach it."""

from copy import copy

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
# Requests with two entries, and the number of error codes in the response, including the top-level one.
TWO_ENTRIES: list[tuple[Message, int]] = [
    (
        request(
            "AlterClientQuotas", entries=[{"entity": [{"entity_type": "user", "entity_name": name}]} for name in A_B]
        ),
        2,
    ),
    (request("AlterConfigs", resources=[{"resource_type": 2, "resource_name": name} for name in A_B]), 2),
    (request("AlterPartitionReassignments", topics=[{"name": name, "partitions": [{}]} for name in A_B]), 3),
    (
        request(
            "AlterUserScramCredentials",
            deletions=[{"name": "b", "mechanism": 1}],
            upsertions=[{"name": name, "mechanism": 1} for name in ("b", "a")],
        ),
        2,
    ),
    (request("CreateAcls", creations=[{}, {}]), 2),
    (request("CreatePartitions", topics=[{"name": name, "assignments": None} for name in A_B], timeout_ms=1000), 2),
    (request("CreateTopics", topics=[{"name": name} for name in A_B]), 2),
    (request("DeleteAcls", filters=[{}, {}]), 2),
    (request("DeleteTopics", topic_names=["a", "b"], topics=[{"name": name} for name in A_B], timeout_ms=1000), 2),
    (request("DescribeQuorum", topics=[{"topic_name": name} for name in A_B]), 1),
    (request("UnregisterBroker", broker_id=1), 1),
    (request("UpdateFeatures", feature_updates=[{"feature": name} for name in A_B]), 1),
    (request("ElectLeaders", topic_partitions=[{"topic": name, "partitions": [0]} for name in A_B]), 3),
    (request("IncrementalAlterConfigs", resources=[{"resource_type": 2, "resource_name": name} for name in A_B]), 2),
    (request("ListPartitionReassignments", topics=[{"name": name, "partition_indexes": [0]} for name in A_B]), 1),
]
WITHOUT_NAMES = {"CreateAcls", "DeleteAcls", "UnregisterBroker", "UpdateFeatures"}  # in responses
WITHOUT_TOP_LEVEL_CODE = {("ElectLeaders", 0)}
TIMED = {"AlterPartitionReassignments", "CreatePartitions", "CreateTopics", "DeleteTopics", "ElectLeaders"}
EVERY_VERSION = [
    pytest.param(request, version, codes, id=f"{API_KEYS[key].name} v{version}")
    for request, codes in TWO_ENTRIES
    for key in (api_of(type(request)).key,)
    for version in range(HANDLERS[key].min_version, HANDLERS[key].max_version + 1)
]


def isolated() -> tuple[VirtualBroker, Client]:
    cluster = VirtualBroker("sluice.brokers=3")
    cluster.cluster_server.isolate_broker(1)
    return cluster, cluster.client(node_id=1)


def test_every_forwarded_api_has_a_case() -> None:
    assert {api_of(type(request)).key for request, _ in TWO_ENTRIES} == FORWARDED & HANDLERS.keys()


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
