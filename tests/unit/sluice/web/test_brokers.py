"""The brokers on the page."""

import pytest

from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import produce_of
from tests.support.virtual_broker import VirtualBroker
from tests.support.watching import watching


def test_traffic_is_per_second_since_the_previous_snapshot() -> None:
    broker = VirtualBroker()
    broker.topic()
    client = broker.client("shop")
    with watching(broker) as watcher:
        (seen,) = watcher.message()["brokers"]
        assert (seen["requests_per_s"], seen["in_per_s"]) == (0, 0)
        client.call(MetadataRequest(), 9)
        client.call(produce_of(1000, 9, "shop"), 9)
        (seen,) = watcher.later()["brokers"]
    assert (seen["requests_per_s"], seen["connections"], seen["leads"]) == (4, 1, 1)
    assert 1800 < seen["in_per_s"] < 2000, "bytes of records, in half a second"


STATES = {"stopped": ("stop", "stopped", ["start"]), "isolated": ("isolate", "isolated", ["stop", "rejoin"])}


@pytest.mark.parametrize(("event", "state", "can"), STATES.values(), ids=STATES)
def test_the_state_of_a_broker_determines_the_actions(event: str, state: str, can: list[str]) -> None:
    broker = VirtualBroker("sluice.brokers=3")
    with watching(broker) as watcher:
        assert [seen["can"] for seen in watcher.message()["brokers"]] == [["stop", "isolate"]] * 3
        getattr(broker.cluster_server, f"{event}_broker")(2)
        seen = watcher.later()["brokers"][1]
    assert (seen["id"], seen["state"], seen["can"]) == (2, state, can)


def test_a_restarted_broker_counts_from_0() -> None:
    broker = VirtualBroker("sluice.brokers=3")
    broker.client("shop", node_id=2).call(MetadataRequest(), 9)
    with watching(broker) as watcher:
        watcher.message()
        broker.cluster_server.stop_broker(2)
        broker.advance(500)
        broker.run(broker.cluster_server.start_broker(2))
        seen = watcher.later()["brokers"][1]
    assert (seen["state"], seen["requests_per_s"]) == ("running", 0)
