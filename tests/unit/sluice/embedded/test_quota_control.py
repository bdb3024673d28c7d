"""Quotas set by a test, and their removal."""

from sluice.embedded.quota_control import set_quota
from tests.support.records import produce
from tests.support.virtual_broker import VirtualBroker


def test_client_is_throttled_while_the_quota_is_set() -> None:
    broker = VirtualBroker("quota.profile=kafka-4.4")
    broker.topic()
    client = broker.client("shop")
    with set_quota(broker.cluster, "shop", None, {"produce": (1, None)}, {}):
        assert client.call(produce(9), 9).throttle_time_ms > 0
    assert broker.client("shop").call(produce(9), 9).throttle_time_ms == 0


def test_previous_quota_is_restored() -> None:
    cluster = VirtualBroker().cluster
    quotas = cluster.client_quotas
    set_quota(cluster, "shop", None, {"produce": (1000, None), "fetch": (500, None)}, {})
    inner = set_quota(cluster, "shop", None, {"produce": (10, None)}, {})
    assert quotas.matching({}, (), strict=False)[0][1] == {"producer_byte_rate": 10, "consumer_byte_rate": 500}
    inner.remove()
    assert quotas.matching({}, (), strict=False)[0][1] == {"producer_byte_rate": 1000, "consumer_byte_rate": 500}
