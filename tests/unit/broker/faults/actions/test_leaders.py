"""Fault actions on controllers, elections, leaders and coordinators, in virtual time."""

import pytest

from sluice.broker.faults.actions.leaders import CoordinatorMoved, LeaderMoved, SlowElection, UncleanElection
from sluice.broker.faults.rule import Rule
from sluice.broker.metadata.topic import NO_LEADER, Partition
from sluice.journal_events import LeaderChange
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from tests.support.faults import add, rule_error, three_brokers
from tests.support.records import produce
from tests.support.virtual_broker import VirtualBroker, broker_with_topic


@pytest.fixture
def three() -> VirtualBroker:
    return three_brokers()


def leaders(cluster: VirtualBroker) -> list[int]:
    return [partition.leader for partition in cluster.cluster.topics["t"].partitions]


def coordinator(cluster: VirtualBroker, group: str, node_id: int = 1) -> int:
    """Return the node id that a broker returns as the group's coordinator."""
    response = cluster.client(node_id=node_id).call(FindCoordinatorRequest(key=group, key_type=0), 3)
    return int(response.node_id)


# -- controller and elections ------------------------------------------------------------------------------------------


def test_crashed_leader_is_not_replaced_without_a_controller(three: VirtualBroker) -> None:
    add(three, Rule("controller-lost", during="20s"))
    assert three.client(node_id=2).call(MetadataRequest(topics=[]), 9).controller_id == NO_LEADER
    three.cluster_server.stop_broker(1, controlled=False)
    three.advance(19_999)
    assert leaders(three) == [1, 1]
    three.advance(1)
    assert leaders(three) == [2, 2]


def test_election_takes_the_configured_time(three: VirtualBroker) -> None:
    fault = add(three, Rule(SlowElection("2s")))
    three.cluster_server.stop_broker(1)
    assert leaders(three) == [NO_LEADER] * 2
    fault.remove()
    three.advance(1_999)
    assert leaders(three) == [NO_LEADER] * 2, "an election in progress keeps its duration"
    three.advance(1)
    assert leaders(three) == [2, 2]
    three.cluster_server.stop_broker(2)
    assert leaders(three) == [3, 3]


# -- lost records ------------------------------------------------------------------------------------------------------


def test_unclean_election_loses_the_tail_and_is_in_the_journal(three: VirtualBroker) -> None:
    for _ in range(5):
        three.client().call(produce(9, acks=-1), 9)
    fault = add(three, Rule(UncleanElection(records=2), topic="t", partition=0))
    log = three.partition().log
    assert (log.log_end_offset, leaders(three)) == (3, [2, 1])
    changes = [one for one in three.journal.events() if isinstance(one, LeaderChange)]
    lost = [(one.partition, one.lost_records) for one in changes if one.lost_records]
    assert lost == [(0, 2)]
    fault.remove()
    assert (log.log_end_offset, leaders(three)) == (3, [2, 1]), "removing the rule restores no records"


def test_internal_topics_lose_nothing_unless_named(three: VirtualBroker) -> None:
    coordinator(three, "g")
    before = [partition.leader_epoch for partition in three.cluster.topics["__consumer_offsets"].partitions]
    add(three, Rule("unclean-election"))
    assert [one.leader_epoch for one in three.cluster.topics["__consumer_offsets"].partitions] == before
    assert leaders(three) == [2, 2]


# -- moved leaders and coordinators ------------------------------------------------------------------------------------


def test_leader_moves_and_returns_when_the_rule_ends(three: VirtualBroker) -> None:
    fault = add(three, Rule(LeaderMoved(to=3), partition=1))
    assert leaders(three) == [1, 3]
    fault.remove()
    assert leaders(three) == [1, 1]


def test_leader_moves_to_another_replica_by_default(three: VirtualBroker) -> None:
    add(three, Rule("leader-moved", topic="t"))
    assert all(leader in (2, 3) for leader in leaders(three))


def test_no_leader_moves_if_one_cannot(three: VirtualBroker) -> None:
    three.topic("u", assignments={0: (1, 2)})
    problem = rule_error(three, Rule(LeaderMoved(to=3)))
    assert problem == "fault.action: broker 3 has no replica of u-0; expected one of 1, 2"
    assert leaders(three) == [1, 1]


def test_leader_moved_meanwhile_stays_when_the_rule_ends(three: VirtualBroker) -> None:
    fault = add(three, Rule(LeaderMoved(to=3), topic="t"))
    three.cluster_server.move_leader("t", 0, 2)
    fault.remove()
    assert leaders(three) == [2, 1]


def test_leader_stays_if_the_original_broker_is_stopped(three: VirtualBroker) -> None:
    fault = add(three, Rule(LeaderMoved(to=3), topic="t"))
    three.cluster_server.stop_broker(1)
    fault.remove()
    assert (leaders(three), fault.problem) == ([3, 3], "")


def test_group_coordinator_moves_and_returns_when_the_rule_ends(three: VirtualBroker) -> None:
    before = coordinator(three, "g")
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    fault = add(three, Rule("coordinator-moved", group="g"))
    after = coordinator(three, "g")
    assert after != before
    response = three.client(node_id=before).call(heartbeat, 4)
    assert response.error_code == ErrorCode.NOT_COORDINATOR
    assert three.client(node_id=after).call(heartbeat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    fault.remove()
    assert coordinator(three, "g") == before


def test_all_coordinators_of_a_broker_move(three: VirtualBroker) -> None:
    coordinator(three, "g")
    partitions = three.cluster.topics["__consumer_offsets"].partitions
    before = [partition.leader for partition in partitions]
    add(three, Rule("coordinator-moved", broker=2))
    after = [partition.leader for partition in partitions]
    assert 2 not in after
    assert [a for a, b in zip(after, before, strict=True) if b != 2] == [b for b in before if b != 2]


def test_unused_coordinator_can_be_moved(three: VirtualBroker) -> None:
    add(three, Rule(CoordinatorMoved(to=3), transactional_id="tx"))
    response = three.client().call(FindCoordinatorRequest(key="tx", key_type=1), 3)
    assert response.node_id == 3


# -- invalid rules -----------------------------------------------------------------------------------------------------


def test_invalid_rule_is_rejected_with_its_path(three: VirtualBroker) -> None:
    alone = broker_with_topic()
    assert [rule_error(alone, Rule(kind)) for kind in ("unclean-election", "leader-moved", "coordinator-moved")] == [
        "fault.action: expected a cluster of several brokers; this one has 1"
    ] * 3
    assert (
        rule_error(three, Rule(LeaderMoved(to=7))) == "fault.action.to: unknown broker; expected one of 1, 2, 3, got 7"
    )
    assert rule_error(three, Rule("leader-moved", topic="x")) == (
        "fault.action: no partition with a leader matches; topics are t"
    )
    assert rule_error(three, Rule("coordinator-moved")) == (
        "fault.action: no coordinator matches; coordinators exist once a group was used"
    )
    assert rule_error(three, Rule("coordinator-moved", group="g-*")).startswith(
        "fault.group: expected a name, got the pattern 'g-*'"
    )
    assert rule_error(three, Rule(SlowElection(0))) == "fault.action.takes: expected more than 0, got 0"
    assert rule_error(three, Rule("controller-lost", broker=1)).startswith("fault.broker: does not apply")
    three.topic("single", replicas=1)
    assert rule_error(three, Rule("unclean-election", topic="single")) == (
        "fault.action: single-0 has no other replica that could lead"
    )
    partition: Partition = three.partition("single")
    assert rule_error(three, Rule("leader-moved", topic="single")) == (
        f"fault.action: {partition} has no other replica in sync"
    )
