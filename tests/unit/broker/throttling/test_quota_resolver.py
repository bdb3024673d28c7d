"""A quota callback in a broker: it decides, it is told of topics, and a class that is none stops the start."""

import pytest

from sluice.errors import ConfigError
from tests.support.records import produce_of
from tests.support.virtual_broker import VirtualBroker
from tests.unit.quotas.test_callback import HERE as CALLBACKS
from tests.unit.quotas.test_callback import Tenants

CLASS = f"client.quota.callback.class={CALLBACKS}.Tenants"


def callback_of(broker: VirtualBroker) -> Tenants:
    callback = broker.broker._quota_resolver.callback
    assert isinstance(callback, Tenants)
    return callback


def test_a_callback_holds_clients_without_any_quota_being_set() -> None:
    broker = VirtualBroker(CLASS, "quota.profile=kafka-4.4")
    broker.topic()
    for client_id, throttle_ms in (("a.one", 0), ("a.two", 2_000), ("b.one", 0)):
        client = broker.client(client_id)
        client.send(produce_of(600, 9, client_id), 9)
        assert client.answer().throttle_time_ms == throttle_ms


def test_it_is_told_of_topics_within_a_second_and_then_no_more() -> None:
    broker = VirtualBroker(CLASS)
    tenants = callback_of(broker)
    broker.topic("t", 2)
    broker.advance(1_000)
    assert tenants.told[1:] == [{"t": (1, 1)}]
    broker.advance(5_000)
    tenants.limits["a"] = 1.0
    broker.client("a.one")
    broker.topic("u")
    broker.advance(1_000)
    assert tenants.told[2:] == [{"t": (1, 1), "u": (1,)}]


def test_limits_that_change_with_topics_hold_for_what_was_recorded() -> None:
    broker = VirtualBroker(CLASS, "quota.profile=kafka-4.4")
    broker.topic("t")
    broker.advance(1_000)
    client = broker.client("a.one")
    client.send(produce_of(600, 9, "a.one"), 9)
    assert client.answer().throttle_time_ms == 0
    callback_of(broker).limits["a"] = 10.0
    broker.topic("u")
    broker.advance(1_000)
    (usage,) = broker.broker.quotas.produce.snapshot(broker.clock.wall_ms())
    assert usage.bound == 10.0


def test_it_is_closed_with_the_broker() -> None:
    broker = VirtualBroker(CLASS)
    broker.broker.close()
    assert callback_of(broker).told[-1] == "closed"


def test_a_class_that_is_none_stops_the_start() -> None:
    with pytest.raises(ConfigError, match=r"client\.quota\.callback\.class=nowhere\.Class: cannot load"):
        VirtualBroker("client.quota.callback.class=nowhere.Class")


def test_without_a_class_nothing_is_asked() -> None:
    assert VirtualBroker().broker._quota_resolver.callback is None
