"""Throttle times of the upstream in responses, beside quotas of the proxy."""

import pytest

from sluice.broker.faults.rule import parse_rule
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from tests.support.records import batch, produce
from tests.support.virtual_broker import VirtualBroker
from tests.support.virtual_proxy import VirtualProxy

SLOW, FAST = "quota.producer.default=500", "quota.producer.default=1000"


def throttle_time_ms(*, upstream: tuple[str, ...], proxy: tuple[str, ...]) -> int:
    """Return the throttle time of a Produce above the quotas."""
    cluster = VirtualBroker(*upstream)
    cluster.topic()
    client = VirtualProxy(*proxy, upstream=cluster).client()
    response = client.exchange(produce(9, batch(b"x" * 20_000)), 9)
    return response.throttle_time_ms


THROTTLES = {
    "only the upstream's quota": ((SLOW,), ()),
    "only the proxy's quota": ((), (SLOW,)),
    "the upstream's is longer": ((SLOW,), (FAST,)),
    "the proxy's is longer": ((FAST,), (SLOW,)),
}


@pytest.mark.parametrize(("upstream", "proxy"), THROTTLES.values(), ids=THROTTLES)
def test_longer_throttle_time_counts(upstream: tuple[str, ...], proxy: tuple[str, ...]) -> None:
    longest = throttle_time_ms(upstream=(SLOW,), proxy=())
    assert longest > throttle_time_ms(upstream=(FAST,), proxy=()) > 0
    assert throttle_time_ms(upstream=upstream, proxy=proxy) == longest


def test_throttle_time_of_the_upstreams_mutation_quota_is_passed_on() -> None:
    proxy = VirtualProxy()
    proxy.upstream.cluster.client_quotas.alter({"client-id": None}, {"controller_mutation_rate": 1.0})
    proxy.cluster_server.faults.add(
        parse_rule({"action": {"kind": "delay", "ms": 5}}, "fault")
    )  # not as it was received
    topics = [CreatableTopic(name=name, num_partitions=50, replication_factor=1) for name in ("a", "b")]
    client = proxy.client()
    client.send(CreateTopicsRequest(topics=topics), 5)
    proxy.advance(5)
    assert client.response().throttle_time_ms > 0
