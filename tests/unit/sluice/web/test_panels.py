"""Quotas, fault rules and connections on the page."""

import pytest

from sluice.broker.server.cluster_server import ClusterServer
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.quotas.entity import DEFAULT, QuotaEntity
from sluice.web.panels import QuotaSeen, connections, faults, quotas
from tests.support.records import produce_of
from tests.support.virtual_broker import VirtualBroker


def test_quotas_set_at_runtime_are_marked() -> None:
    broker = VirtualBroker("quota.producer.default=1M", "quota.producer.override=gold:4M")
    broker.cluster.client_quotas.alter({"client-id": "gold"}, {"producer_byte_rate": 5.0})
    broker.cluster.client_quotas.alter({"user": "alice", "client-id": None}, {"request_percentage": 12.5})
    broker.cluster.client_quotas.alter({"ip": "127.0.0.1"}, {"connection_creation_rate": 3.0})
    found = quotas(broker.cluster_server)
    assert found.rows == [
        QuotaSeen({"client-id": None}, "producer_byte_rate", 1e6, altered=False),
        QuotaSeen({"client-id": "gold"}, "producer_byte_rate", 5.0, altered=True),
        QuotaSeen({"ip": "127.0.0.1"}, "connection_creation_rate", 3.0, altered=True),
        QuotaSeen({"user": "alice", "client-id": None}, "request_percentage", 12.5, altered=True),
    ]
    assert found.total == 4


def test_the_number_of_quotas_is_limited() -> None:
    broker = VirtualBroker()
    for number in range(150):
        broker.cluster.quota_stores.of_clients["producer_byte_rate"].alter(QuotaEntity(DEFAULT, f"c{number}"), 1.0)
    found = quotas(broker.cluster_server)
    assert (len(found.rows), found.total) == (100, 150)


def test_without_rules_no_fault_engine_is_created() -> None:
    broker = VirtualBroker()
    assert faults(broker.cluster_server).rows == []
    assert ClusterServer.faults.if_made(broker.cluster_server) is None


def test_fault_rules_are_those_of_the_admin_port() -> None:
    broker = VirtualBroker()
    broker.cluster_server.faults.add({"action": "close", "id": "cut", "api": "Produce"})
    (row,) = faults(broker.cluster_server).rows
    assert (row.id, row.state, row.hits) == ("cut", "in force", 0)


def test_waiting_connections_are_first_then_the_newest() -> None:
    broker = VirtualBroker("quota.producer.default=1000")
    broker.topic()
    held, idle, new = (broker.client(name) for name in ("held", "idle", "new"))
    held.send(produce_of(100_000, 9, "held"), 9)
    idle.call(MetadataRequest(), 9)
    broker.advance(3000)
    new.call(ApiVersionsRequest(client_software_name="lib", client_software_version="2"), 3)
    found = connections(broker.cluster_server, "")
    assert [(row.client_id, row.waiting, row.idle_s) for row in found.rows] == [
        ("held", True, 3),
        ("idle", False, 3),
        ("new", False, 0),
    ]
    assert found.rows[2].software == "lib 2"


@pytest.mark.parametrize(("text", "ids"), [("SH", ["shop"]), ("x", [])])
def test_connections_are_searched(text: str, ids: list[str]) -> None:
    broker = VirtualBroker()
    for name in ("shop", "other"):
        broker.client(name).call(MetadataRequest(), 9)
    assert [row.client_id for row in connections(broker.cluster_server, text).rows] == ids
