"""Fault actions that return wrong metadata and offsets, in virtual time."""

from typing import Any

import pytest

from sluice.broker.faults.actions.wrong_metadata import EmptyMetadata, OffsetLie, StaleLeaderHint, WrongLeader
from sluice.broker.faults.rule import Rule
from sluice.broker.metadata.topic import NO_LEADER
from sluice.protocol.apis.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from tests.support.faults import add, rule_error, three_brokers
from tests.support.records import fetch, produce
from tests.support.virtual_broker import VirtualBroker

METADATA = MetadataRequest(topics=[MetadataRequestTopic(name="t")])


@pytest.fixture
def three() -> VirtualBroker:
    return three_brokers()


def metadata_leaders(cluster: VirtualBroker) -> list[tuple[int, int, int]]:
    """Return error, leader and epoch of both partitions in a metadata response."""
    response = cluster.client().call(METADATA, 9)
    return [(one.error_code, one.leader_id, one.leader_epoch) for one in response.topics[0].partitions]


# -- leaders -----------------------------------------------------------------------------------------------------------


def test_partition_has_no_leader_as_often_as_the_rule_specifies(three: VirtualBroker) -> None:
    fault = add(three, Rule("unknown-leader", topic="t", partition=1, times=2))
    unknown = (ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, 0)
    assert [metadata_leaders(three)[1] for _ in range(3)] == [unknown, unknown, (0, 1, 0)]
    assert fault.hits == 2
    fault.remove()
    add(three, Rule("unknown-leader", partition=0))
    assert metadata_leaders(three)[1] == (0, 1, 0)


def test_describe_topic_partitions_returns_the_same_wrong_leader(three: VirtualBroker) -> None:
    add(three, Rule("unknown-leader"))
    response = three.client().call(DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]), 0)
    assert [one.leader_id for one in response.topics[0].partitions] == [NO_LEADER] * 2


@pytest.mark.parametrize(("epoch", "expected"), [("same", 3), ("new", 4), ("old", 2)])
def test_metadata_has_a_wrong_leader_with_the_chosen_epoch(three: VirtualBroker, epoch: Any, expected: int) -> None:
    for node_id in (2, 3, 1):
        three.cluster_server.move_leader("t", 0, node_id)
    add(three, Rule(WrongLeader(epoch=epoch), topic="t", partition=0))
    assert metadata_leaders(three) == [(0, 2, expected), (0, 1, 0)]
    assert three.partition().leader == 1


@pytest.mark.parametrize(("rule", "current", "expected"), [("new", 2**31 - 1, 2**31 - 1), ("old", 0, 0)])
def test_a_wrong_epoch_is_a_valid_one(three: VirtualBroker, rule: Any, current: int, expected: int) -> None:
    three.partition().leader_epoch = current
    add(three, Rule(WrongLeader(epoch=rule), topic="t", partition=0))
    assert metadata_leaders(three)[0] == (0, 2, expected)


def test_metadata_has_the_chosen_leader(three: VirtualBroker) -> None:
    add(three, Rule(WrongLeader(leader=3), topic="t"))
    assert [leader for _, leader, _ in metadata_leaders(three)] == [3, 3]


def test_partition_without_a_leader_gets_no_wrong_leader(three: VirtualBroker) -> None:
    add(three, Rule("unknown-leader"))
    add(three, Rule("wrong-leader"))
    assert [leader for _, leader, _ in metadata_leaders(three)] == [NO_LEADER] * 2


# -- leader hints ------------------------------------------------------------------------------------------------------


def produce_leader_hint(cluster: VirtualBroker) -> tuple[tuple[int, int], list[int]]:
    """Return the leader hint of a produce request to broker 2, and the node endpoints."""
    response = cluster.client(node_id=2).call(produce(10), 10)
    leader = response.responses[0].partition_responses[0].current_leader
    return (leader.leader_id, leader.leader_epoch), [node.node_id for node in response.node_endpoints]


STALE_HINTS = {
    "requested broker, older epoch": (StaleLeaderHint(), ((2, -1), [2])),
    "requested broker, current epoch": (StaleLeaderHint(epoch="current"), ((2, 0), [2])),
    "another broker": (StaleLeaderHint(leader=3), ((3, -1), [3])),
}


@pytest.mark.parametrize(("action", "expected"), STALE_HINTS.values(), ids=STALE_HINTS)
def test_producer_gets_a_stale_leader_hint(
    three: VirtualBroker, action: StaleLeaderHint, expected: tuple[tuple[int, int], list[int]]
) -> None:
    assert produce_leader_hint(three) == ((1, 0), [1])
    fault = add(three, Rule(action, topic="t"))
    assert produce_leader_hint(three) == expected
    fault.remove()
    assert produce_leader_hint(three) == ((1, 0), [1])


def test_consumer_gets_a_stale_leader_hint(three: VirtualBroker) -> None:
    topic = three.topic("u", replicas=1)  # a follower would serve the consumer
    add(three, Rule(StaleLeaderHint(leader=3), topic="u"))
    request = fetch(0, topic_id=topic.topic_id)
    response = three.client(node_id=topic.partitions[0].leader % 3 + 1).call(request, 16)
    leader = response.responses[0].partitions[0].current_leader
    assert (leader.leader_id, leader.leader_epoch, [one.node_id for one in response.node_endpoints]) == (3, -1, [3])


def test_leader_returns_no_leader_hint(three: VirtualBroker) -> None:
    add(three, Rule("stale-leader-hint"))
    response = three.client(node_id=1).call(produce(10), 10)
    assert response.responses[0].partition_responses[0].error_code == 0
    assert response.node_endpoints == []


def test_versions_without_hints_are_rejected(three: VirtualBroker) -> None:
    problem = rule_error(three, Rule("stale-leader-hint", api="Produce", version="-9"))
    assert problem.startswith("fault.api: stale-leader-hint has no effect on Produce in these versions")


# -- empty metadata ----------------------------------------------------------------------------------------------------


def test_empty_metadata_has_no_brokers_and_no_topics(three: VirtualBroker) -> None:
    fault = add(three, Rule("empty-metadata"))
    response = three.client().call(MetadataRequest(topics=None), 9)
    assert (response.brokers, response.topics, response.controller_id) == ([], [], -1)
    (topic,) = three.client().call(MetadataRequest(topics=[MetadataRequestTopic(name="new")]), 9).topics
    assert (topic.name, topic.error_code) == ("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert "new" not in three.cluster.topics
    assert fault.hits == 2


def test_empty_metadata_can_be_limited_to_the_start_of_a_broker(three: VirtualBroker) -> None:
    three.advance(10_000)
    fault = add(three, Rule(EmptyMetadata("3s"), broker=2))

    def broker_count() -> int:
        return len(three.client(node_id=2).call(METADATA, 9).brokers)

    assert broker_count() == 3
    three.cluster_server.stop_broker(2)
    three.run(three.cluster_server.start_broker(2))
    assert broker_count() == 0
    three.advance(2_999)
    assert broker_count() == 0
    three.advance(1)
    assert broker_count() == 3
    assert fault.hits == 2


# -- offsets -----------------------------------------------------------------------------------------------------------


def listed(cluster: VirtualBroker, version: int, timestamp: int, **fields: Any) -> Any:
    """Return the response for partition 0."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp, **fields)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[partition])])
    return cluster.client().call(request, version).topics[0].partitions[0]


def offsets(cluster: VirtualBroker) -> list[int]:
    """Return the earliest and latest offset, and the offset of a timestamp."""
    return [listed(cluster, 7, timestamp).offset for timestamp in (-2, -1, 0)]


OFFSET_LIES = {
    "one offset for all": (OffsetLie(offset=7), [7, 7, 7]),
    "latest offset too high": (OffsetLie(shift=100, of="latest"), [0, 105, 0]),
    "offsets too low, not below 0": (OffsetLie(shift=-2), [0, 3, 0]),
    "earliest offset too high": (OffsetLie(offset=9, of="earliest"), [9, 5, 0]),
    "offset of a timestamp": (OffsetLie(shift=1, of="timestamp"), [0, 5, 1]),
    "maximum offset": (OffsetLie(shift=2**63 - 1), [2**63 - 1] * 3),
}


@pytest.mark.parametrize(("action", "expected"), OFFSET_LIES.values(), ids=OFFSET_LIES)
def test_offset_lie_changes_returned_offsets(three: VirtualBroker, action: OffsetLie, expected: list[int]) -> None:
    for _ in range(5):
        three.client().call(produce(9), 9)
    assert offsets(three) == [0, 5, 0]
    fault = add(three, Rule(action, topic="t", partition=0))
    assert offsets(three) == expected
    fault.remove()
    add(three, Rule(action, partition=1))
    assert offsets(three) == [0, 5, 0]


def test_offset_lie_changes_lists_of_version_0(three: VirtualBroker) -> None:
    three.client().call(produce(9), 9)
    add(three, Rule(OffsetLie(shift=10)))
    assert listed(three, 0, -1, max_num_offsets=2).old_style_offsets == [11, 10]


# -- invalid rules -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (Rule("offset-lie"), "fault.action: expected either offset or shift"),
        (Rule(OffsetLie(offset=1, shift=1)), "fault.action: expected either offset or shift"),
        (Rule(OffsetLie(shift=0)), "fault.action.shift: expected a number other than 0, got 0"),
        (Rule(OffsetLie(shift=-(2**70))), "fault.action.shift: expected at most 9223372036854775807"),
        (Rule(OffsetLie(offset=2**63)), "fault.action.offset: expected at most 9223372036854775807"),
        (Rule(EmptyMetadata(0)), "fault.action.after_start: expected more than 0, got 0"),
        (Rule(WrongLeader(leader=4)), "fault.action.leader: unknown broker; expected one of 1, 2, 3, got 4"),
        (Rule("unknown-leader", api="Produce"), "fault.api: unknown-leader has no effect on Produce in these versions"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_rule_is_rejected_with_its_path(three: VirtualBroker, rule: Rule, problem: str) -> None:
    assert rule_error(three, rule).startswith(problem)


@pytest.mark.parametrize("kind", ["wrong-leader", "stale-leader-hint"])
def test_single_broker_has_no_other_broker_to_return(kind: str) -> None:
    problem = "fault.action: expected a cluster of several brokers; this one has 1"
    assert rule_error(VirtualBroker(), Rule(kind)) == problem
