"""Stopped and isolated brokers of a proxy: clients do not reach them, and the upstream brokers are unchanged."""

import pytest

from sluice.broker.controller.controller import RUNNING
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.proxy.upstream.cluster import UpstreamBroker
from tests.support.records import fetch, produce
from tests.support.virtual_broker import JOURNAL, Client, VirtualBroker
from tests.support.virtual_proxy import VirtualProxy


@pytest.fixture
def proxy() -> VirtualProxy:
    proxy = VirtualProxy(JOURNAL, upstream=VirtualBroker(JOURNAL, "sluice.brokers=2"))
    proxy.topic(assignments={0: (1,), 1: (2,)})
    return proxy


@pytest.fixture
def client(proxy: VirtualProxy) -> Client:
    return proxy.client()


def is_listening(proxy: VirtualProxy, node_id: int = 1) -> bool:
    return proxy.cluster_server.servers[node_id].endpoints[0].port in proxy.loop.factories


@pytest.mark.parametrize("controlled", [True, False])
def test_a_stopped_broker_closes_and_refuses_clients_and_starts_on_its_port(
    client: Client, proxy: VirtualProxy, controlled: bool
) -> None:
    client.call(produce(9), 9)
    port = proxy.server.endpoints[0].port
    fault = proxy.cluster_server.faults.add({"action": {"kind": "broker-down", "controlled": controlled}, "broker": 1})
    proxy.settle()
    assert (client.is_open, is_listening(proxy, 1), is_listening(proxy, 2)) == (False, False, True)
    assert proxy.upstream.cluster.controller.state(1) is RUNNING
    assert not proxy.upstream.cluster.fenced
    assert proxy.upstream.partition().log.log_end_offset == 1
    fault.remove()
    proxy.settle()
    assert proxy.cluster_server.servers[1].endpoints[0].port == port
    again = proxy.client()
    again.call(produce(9), 9)
    brokers = again.call(MetadataRequest(topics=[]), 9).brokers
    assert (1, port) in [(broker.node_id, broker.port) for broker in brokers]


def test_an_isolated_broker_neither_receives_nor_sends_until_the_rule_ends(client: Client, proxy: VirtualProxy) -> None:
    client.send(fetch(0, max_wait_ms=500), 11)  # a response in flight
    proxy.cluster_server.faults.add({"action": "isolate", "broker": 1, "during": "2s"})
    later = proxy.client("later")
    later.send(produce(9), 9)
    proxy.advance(1_999)
    assert (client.take_responses(), later.take_responses()) == ([], [])
    assert (client.is_open, later.is_open) == (True, True)
    assert proxy.upstream.partition().log.log_end_offset == 0
    assert proxy.client("other", node_id=2).call(produce(9, partition=1), 9).responses
    proxy.advance(1)
    assert [response.at_ms for response in (*client.take_responses(), *later.take_responses())] == [2_000, 2_000]
    assert proxy.upstream.partition().log.log_end_offset == 1


def test_a_single_broker_can_be_isolated_from_its_clients() -> None:
    proxy = VirtualProxy()
    proxy.cluster_server.faults.add({"action": "isolate"})
    client = proxy.client()
    client.send(MetadataRequest(), 9)
    assert client.responses == []


def test_an_isolated_broker_can_be_stopped_and_started(proxy: VirtualProxy) -> None:
    server = proxy.cluster_server
    server.isolate_broker(1)
    server.stop_broker(1)
    proxy.run(server.start_broker(1))
    assert proxy.client().call(produce(9), 9).responses


def test_rules_affect_a_broker_that_joins_later(proxy: VirtualProxy) -> None:
    server = proxy.cluster_server
    server.stop_broker(2)
    server.faults.add({"action": "black-hole", "api": "Produce"})
    port = proxy.upstream.cluster_server.servers[2].endpoints[0].port
    server.upstream.brokers[3] = UpstreamBroker(3, "upstream", port)
    proxy.upstream.cluster_server.servers[3] = proxy.upstream.cluster_server.servers[2]
    proxy.run(server._add(3, proxy.upstream.broker.served))
    client = proxy.client(node_id=3)
    client.send(produce(9, partition=1), 9)
    assert client.responses == []
    server.faults.add({"action": "broker-down", "broker": 3, "during": "1s"})
    proxy.settle()
    assert not client.is_open
    proxy.advance(1_000)
    assert proxy.client(node_id=3).call(MetadataRequest(), 9).brokers
