"""A client.quota.callback.class in a broker: its limits, topic updates, and an invalid class."""

import pytest

from sluice.errors import ConfigError
from tests.support.records import produce_of
from tests.support.virtual_broker import VirtualBroker, broker_with_topic
from tests.unit.quotas.test_callback import HERE as CALLBACKS
from tests.unit.quotas.test_callback import Tenants

CLASS = f"client.quota.callback.class={CALLBACKS}.Tenants"


def callback_of(broker: VirtualBroker) -> Tenants:
    callback = broker.broker._quota_resolver.callback
    assert isinstance(callback, Tenants)
    return callback


def test_callback_limits_clients_without_configured_quotas() -> None:
    broker = broker_with_topic(CLASS, "quota.profile=kafka-4.4")
    for client_id, throttle_ms in (("a.one", 0), ("a.two", 2_000), ("b.one", 0)):
        client = broker.client(client_id)
        assert client.exchange(produce_of(600, 9, client_id), 9).throttle_time_ms == throttle_ms


def test_callback_gets_changed_topics_once_within_a_second() -> None:
    broker = VirtualBroker(CLASS)
    tenants = callback_of(broker)
    broker.topic("t", 2)
    broker.advance(1_000)
    assert tenants.calls[1:] == [{"t": (1, 1)}]
    broker.advance(5_000)
    tenants.limits["a"] = 1.0
    broker.client("a.one")
    broker.topic("u")
    broker.advance(1_000)
    assert tenants.calls[2:] == [{"t": (1, 1), "u": (1,)}]


def test_limit_changed_by_a_topic_update_applies_to_existing_records() -> None:
    broker = broker_with_topic(CLASS, "quota.profile=kafka-4.4")
    broker.advance(1_000)
    client = broker.client("a.one")
    assert client.exchange(produce_of(600, 9, "a.one"), 9).throttle_time_ms == 0
    callback_of(broker).limits["a"] = 10.0
    broker.topic("u")
    broker.advance(1_000)
    (usage,) = broker.broker.quotas.produce.snapshot(broker.clock.wall_ms())
    assert usage.bound == 10.0


def test_callback_is_closed_with_the_broker() -> None:
    broker = VirtualBroker(CLASS)
    broker.broker.close()
    assert callback_of(broker).calls[-1] == "closed"


def test_unknown_callback_class_fails_the_start() -> None:
    with pytest.raises(ConfigError, match=r"client\.quota\.callback\.class=nowhere\.Class: cannot load"):
        VirtualBroker("client.quota.callback.class=nowhere.Class")


def test_broker_without_a_callback_class_creates_no_callback() -> None:
    assert VirtualBroker().broker._quota_resolver.callback is None
