"""Prometheus metrics of a proxy: those of the upstream broker, and none of topics and logs."""

import pytest
from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from sluice.broker.server.metrics import registry
from sluice.metrics import METRICS
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from tests.support.records import fetch, produce
from tests.support.virtual_broker import Client
from tests.support.virtual_proxy import VirtualProxy

OF_UPSTREAM = {name: metric for name, metric in METRICS.items() if metric.only_of == "proxy"}


@pytest.fixture
def proxy() -> VirtualProxy:
    proxy = VirtualProxy()
    proxy.upstream.topic()
    return proxy


@pytest.fixture
def client(proxy: VirtualProxy) -> Client:
    return proxy.client()


def scrape(proxy: VirtualProxy) -> dict[str, Metric]:
    text = generate_latest(registry(proxy.cluster_server)).decode()
    families = text_string_to_metric_families(text)
    return {family.name + ("_total" if family.type == "counter" else ""): family for family in families}


def value(proxy: VirtualProxy, name: str, **labels: str) -> float:
    samples = [sample for family in scrape(proxy).values() for sample in family.samples if sample.name == name]
    (found,) = [sample.value for sample in samples if sample.labels == {"broker": "1", **labels}]
    return found


def test_families_are_the_declared_ones(client: Client, proxy: VirtualProxy) -> None:
    client.call(produce(9, topic="nowhere"), 9)
    families = scrape(proxy)
    assert set(families) == {name for name, metric in METRICS.items() if metric.only_of != "broker"}
    for metric in OF_UPSTREAM.values():
        family = families[metric.name]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        assert family.samples
        assert {label for sample in family.samples for label in sample.labels} - {"le", "broker"} == set(metric.labels)


def test_open_and_ended_connections_are_counted(proxy: VirtualProxy) -> None:
    clients = [proxy.client() for _ in range(3)]
    for client in clients:
        client.call(MetadataRequest(topics=[]), 9)
    clients[0].leave()
    proxy.connector.transports[1].end(None)
    proxy.settle()
    assert value(proxy, "sluice_upstream_connections") == 1
    assert value(proxy, "sluice_upstream_disconnects_total") == 1, "the client ended the other one"


def test_requests_in_flight_are_counted(client: Client, proxy: VirtualProxy) -> None:
    client.send_together(*[(fetch(0, max_wait_ms=500, min_bytes=1), 11)] * 2)
    assert value(proxy, "sluice_upstream_requests_in_flight") == 2
    proxy.advance(500)
    assert value(proxy, "sluice_upstream_requests_in_flight") == 1, (
        "the upstream begins the second wait after the first"
    )
    proxy.advance(500)
    assert value(proxy, "sluice_upstream_requests_in_flight") == 0


def test_time_of_a_request_is_that_at_the_upstream(client: Client, proxy: VirtualProxy) -> None:
    client.send(fetch(0, max_wait_ms=700, min_bytes=1), 11)
    proxy.advance(700)
    name = "sluice_upstream_request_duration_seconds"
    assert value(proxy, f"{name}_sum", api="Fetch") == pytest.approx(0.7)
    assert value(proxy, f"{name}_bucket", api="Fetch", le="0.5") == 0
    assert value(proxy, f"{name}_bucket", api="Fetch", le="1.0") == 1


def test_delay_of_a_fault_rule_is_not_the_upstreams(client: Client, proxy: VirtualProxy) -> None:
    proxy.cluster_server.faults.add({"action": {"kind": "delay", "ms": 700}, "api": "Metadata"})
    client.send(MetadataRequest(topics=[]), 9)
    proxy.advance(700)
    assert client.take_responses()
    assert value(proxy, "sluice_upstream_request_duration_seconds_sum", api="Metadata") == 0
    assert value(proxy, "sluice_request_duration_seconds_sum", api="Metadata") == pytest.approx(0.7)


def test_errors_of_fault_rules_are_not_the_upstreams(client: Client, proxy: VirtualProxy) -> None:
    proxy.cluster_server.faults.add({"action": {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"}, "times": 1})
    client.call(produce(9), 9)
    client.call(produce(9, topic="nowhere"), 9)
    (sample,) = scrape(proxy)["sluice_upstream_errors_total"].samples
    assert (sample.labels["api"], sample.labels["error"], sample.value) == ("Produce", "UNKNOWN_TOPIC_OR_PARTITION", 1)
    assert value(proxy, "sluice_requests_total", api="Produce", version="9", error="NOT_LEADER_OR_FOLLOWER") == 1


def test_unknown_error_code_of_a_newer_upstream_has_its_number(client: Client, proxy: VirtualProxy) -> None:
    newer = max(ErrorCode) + 1
    proxy.upstream.cluster_server.faults.add({"action": {"kind": "error", "code": 87}, "api": "Produce"})
    transport = proxy.connector.transports
    client.call(MetadataRequest(topics=[]), 9)
    on_bytes = transport[0].receive
    transport[0]._client.on_bytes = lambda data: on_bytes(data.replace(b"\0\x57", newer.to_bytes(2)))
    client.call(produce(9), 9)
    assert value(proxy, "sluice_upstream_errors_total", api="Produce", error=str(newer)) == 1
    assert value(proxy, "sluice_requests_total", api="Produce", version="9", error=str(newer)) == 1


def test_bytes_are_those_of_the_upstream_connections(client: Client, proxy: VirtualProxy) -> None:
    client.send(produce(9, acks=0), 9)
    without_response = value(proxy, "sluice_upstream_sent_bytes_total")
    assert without_response == len(proxy.connector.transports[0].sent) > 0
    assert value(proxy, "sluice_upstream_received_bytes_total") == 0
    response = client.exchange(produce(9), 9)
    assert value(proxy, "sluice_upstream_sent_bytes_total") == 2 * without_response
    assert value(proxy, "sluice_upstream_received_bytes_total") == 4 + response.size


def test_malformed_response_is_counted(client: Client, proxy: VirtualProxy) -> None:
    client.call(MetadataRequest(topics=[]), 9)
    proxy.connector.transports[0].receive(b"\0\0\0\4\0\0\0\1")
    proxy.settle()
    assert value(proxy, "sluice_upstream_invalid_responses_total") == 1
    assert value(proxy, "sluice_upstream_disconnects_total") == 0
