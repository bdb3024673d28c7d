"""sluice.SyncProxy with sockets, in front of a SyncBroker."""

import pytest

from sluice import ArgumentError, NotRunningError, SyncBroker, SyncProxy
from sluice.faults import Error


def test_it_has_the_api_of_a_broker() -> None:
    with SyncBroker() as broker, SyncProxy(broker.bootstrap) as proxy:
        with proxy.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Produce", times=2) as fault:
            proxy.client("shop").send("orders", b"one pizza")
            assert fault.hits == 2
        proxy.assert_requests("Produce", client_id="shop", exactly=3)
        (order,) = broker.client().receive("orders")
        assert order.value == b"one pizza"
        bootstrap = proxy.bootstrap
        proxy.reset()
        assert proxy.bootstrap == bootstrap
        proxy.cluster.create_topic("made", 2)
        assert broker.cluster.partition("made", 1).leader == 1
    with pytest.raises(NotRunningError):
        proxy.cluster.create_topic("late")


def test_its_admin_port_serves_the_journal_of_the_proxy() -> None:
    with SyncBroker() as broker, SyncProxy(broker.bootstrap, admin_port=0) as proxy:
        assert proxy.admin is not None
        assert proxy.admin != broker.admin


def test_a_refused_change_is_listed() -> None:
    with SyncBroker() as broker:
        broker.cluster.create_topic("orders")
        with SyncProxy(broker.bootstrap, protect_existing=True) as proxy:
            with pytest.raises(Exception, match="topic orders existed before the test"):
                proxy.client().send("orders", b"x")
            assert proxy.refused == ["Produce: topic orders existed before the test"]


def test_async_with_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^SyncProxy: expected `with`, got `async with`\. Or use sluice\.Proxy$"):
        SyncProxy("127.0.0.1:9092").__aenter__().send(None)  # type: ignore[attr-defined]  # type checkers find it
