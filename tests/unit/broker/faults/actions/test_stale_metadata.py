"""Fault actions on metadata updates, in virtual time."""

import pytest

from sluice.broker.faults.actions.stale_metadata import MetadataLag
from sluice.broker.faults.rule import Rule
from sluice.errors import FaultError
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.virtual_broker import VirtualBroker


@pytest.fixture
def three() -> VirtualBroker:
    cluster = VirtualBroker("sluice.brokers=3", "sluice.election.delay.ms=0")
    cluster.topic("t", replicas=3)
    cluster.cluster_server.move_leader("t", 0, 1)
    return cluster


def metadata_leaders(cluster: VirtualBroker) -> list[int]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    responses = [cluster.client(node_id=node_id).call(request, 9) for node_id in (1, 2, 3)]
    return [response.topics[0].partitions[0].leader_id for response in responses]


def test_stale_metadata_is_returned_until_the_rule_ends(three: VirtualBroker) -> None:
    fault = three.cluster_server.faults.add(Rule("stale-metadata", broker=[1, 3]))
    three.cluster_server.move_leader("t", 0, 2)
    three.advance(60_000)
    assert (metadata_leaders(three), fault.hits) == ([1, 2, 1], 2)
    fault.remove()
    assert metadata_leaders(three) == [2, 2, 2]


def test_metadata_lags_on_the_named_brokers(three: VirtualBroker) -> None:
    three.cluster_server.faults.add(Rule(MetadataLag("500ms"), broker=3))
    three.cluster_server.move_leader("t", 0, 2)
    assert metadata_leaders(three) == [2, 2, 1]
    three.advance(500)
    assert metadata_leaders(three) == [2, 2, 2]


def test_rule_ends_without_a_problem_on_a_stopped_broker(three: VirtualBroker) -> None:
    fault = three.cluster_server.faults.add(Rule("stale-metadata", broker=3))
    three.cluster_server.stop_broker(3)
    fault.remove()
    assert fault.problem == ""
    three.run(three.cluster_server.start_broker(3))
    three.cluster_server.move_leader("t", 0, 2)
    assert metadata_leaders(three) == [2, 2, 2]


def test_restarted_broker_loads_current_metadata_and_then_stays_stale(three: VirtualBroker) -> None:
    three.cluster_server.faults.add(Rule("stale-metadata", broker=3))
    three.cluster_server.stop_broker(3)
    three.cluster_server.move_leader("t", 0, 2)
    three.run(three.cluster_server.start_broker(3))
    three.cluster_server.move_leader("t", 0, 1)
    assert metadata_leaders(three) == [1, 1, 2]


def test_zero_lag_is_rejected(three: VirtualBroker) -> None:
    with pytest.raises(FaultError, match=r"^fault\.action\.lag: expected more than 0, got 0s$"):
        three.cluster_server.faults.add(Rule(MetadataLag("0s")))
