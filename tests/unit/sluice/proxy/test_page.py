"""The web page of a proxy: the upstream cluster and its brokers, instead of topics and leaders of our own."""

import pytest

from sluice.broker.throttling.scope import Scope
from tests.support.records import fetch, produce_of
from tests.support.virtual_broker import VirtualBroker
from tests.support.virtual_proxy import VirtualProxy
from tests.support.watching import watching


def test_the_upstream_cluster_is_named() -> None:
    proxy = VirtualProxy()
    with watching(proxy) as watcher:
        cluster = watcher.message()["cluster"]
    assert (cluster["upstream"], cluster["cluster_id"]) == ("upstream:9092", proxy.upstream.cluster.cluster_id)
    with watching(VirtualBroker()) as watcher:
        assert watcher.message()["cluster"]["upstream"] is None


def test_traffic_is_that_with_the_upstream_broker() -> None:
    proxy = VirtualProxy()
    proxy.upstream.topic()
    client = proxy.client("shop")
    with watching(proxy) as watcher:
        watcher.message()
        client.call(produce_of(1000, 9, "shop"), 9)
        client.send(fetch(1, max_wait_ms=10_000, min_bytes=1), 11)
        (seen,) = watcher.later()["brokers"]
    assert (seen["requests_per_s"], seen["connections"], seen["leads"]) == (2, 1, None)
    assert 2000 < seen["in_per_s"] < 2600, "requests of 1,000 bytes of records, in half a second"
    assert 0 < seen["out_per_s"] < 200, "the Produce response"
    address = f"upstream:{proxy.upstream.server.endpoints[0].port}"
    assert seen["upstream"] == {"address": address, "reachable": True, "in_flight": 1}


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_the_mode_of_quotas_is_shown(mode: str) -> None:
    with watching(VirtualProxy(f"sluice.quota.mode={mode}")) as watcher:
        assert watcher.message()["cluster"]["quota_mode"] == mode


def test_the_limit_of_rules_and_quotas_is_shown() -> None:
    proxy = VirtualProxy(scope=Scope(("shop-*",), ("orders",)))
    with watching(proxy) as watcher:
        cluster = watcher.message()["cluster"]
    assert (cluster["only_clients"], cluster["only_topics"]) == (["shop-*"], ["orders"])
