"""Rebalances of consumer groups: reassignment, epochs, timeouts."""

import pytest

from sluice.broker.coordinator.group.consumer.group import ConsumerState
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.errors import ErrorCode
from tests.support.configs import config_changes
from tests.support.consumer_groups import AT_ONCE, REBALANCE_MS, ConsumerMember, consumer_group
from tests.support.group_members import converge, joined, settled
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

SESSION_MS = 45_000
_GROUP = 32  # ConfigResource.Type


def make_broker(*overrides: str) -> VirtualBroker:
    return broker_with_topic(AT_ONCE, *overrides, partitions=4)


@pytest.fixture
def broker() -> VirtualBroker:
    return make_broker()


def two_members(broker: VirtualBroker) -> tuple[ConsumerMember, ...]:
    """Return two members with two of four partitions each."""
    return settled(ConsumerMember(broker, "one"), ConsumerMember(broker, "two"))


def test_partition_moves_between_members_in_three_heartbeats(broker: VirtualBroker) -> None:
    one, two = joined(ConsumerMember(broker, "one")), ConsumerMember(broker, "two")
    assert (one.epoch, one.partitions) == (2, {"t": {0, 1, 2, 3}})
    assert consumer_group(broker).state is ConsumerState.STABLE
    two.join()
    assert (two.epoch, two.partitions) == (3, {})
    assert consumer_group(broker).state is ConsumerState.RECONCILING
    one.heartbeat()
    assert (one.epoch, one.assigned) == (2, {broker.partition().topic.topic_id: {0, 1}})
    two.heartbeat()
    assert two.partitions == {}, "member one has not confirmed the revocation"
    one.heartbeat()
    assert (one.epoch, one.partitions) == (3, {"t": {0, 1}})
    two.heartbeat()
    assert (two.epoch, two.partitions) == (3, {"t": {2, 3}})
    assert consumer_group(broker).state is ConsumerState.STABLE


def test_partitions_of_a_leaving_member_are_reassigned(broker: VirtualBroker) -> None:
    one, two = two_members(broker)
    one.leave()
    assert consumer_group(broker).state is ConsumerState.ASSIGNING
    two.heartbeat()
    assert two.partitions == {"t": {0, 1, 2, 3}}
    two.leave()
    assert consumer_group(broker).state is ConsumerState.EMPTY


def test_new_assignment_waits_for_the_minimum_assignment_interval() -> None:
    broker = broker_with_topic(partitions=4)
    one, two = joined(ConsumerMember(broker, "one")), ConsumerMember(broker, "two")
    broker.advance(999)
    two.join()
    assert two.epoch == 2, "epoch of the existing assignment"
    assert consumer_group(broker).state is ConsumerState.ASSIGNING
    one.heartbeat()
    assert one.assigned == {broker.partition().topic.topic_id: {0, 1, 2, 3}}
    broker.advance(1)
    converge(one, two)
    assert (one.partitions, two.partitions) == ({"t": {0, 1}}, {"t": {2, 3}})


def test_empty_group_assigns_again_at_once() -> None:
    broker = broker_with_topic(partitions=4)
    for name in ("one", "two"):
        member = joined(ConsumerMember(broker, name))
        assert member.partitions == {"t": {0, 1, 2, 3}}
        member.leave()
        group = consumer_group(broker)
        assert (group.assignment_epoch, group.assignment_timestamp_ms) == (group.group_epoch, 0)


# -- group epoch -------------------------------------------------------------------------------------------------------


def test_added_partitions_are_assigned_with_the_next_heartbeat(broker: VirtualBroker) -> None:
    one, two = two_members(broker)
    more = CreatePartitionsTopic(name="t", count=6, assignments=None)
    broker.client().call(CreatePartitionsRequest(topics=[more], timeout_ms=1000), 3)
    converge(one, two)
    assert (one.partitions, two.partitions) == ({"t": {0, 1, 4}}, {"t": {2, 3, 5}})


def test_deleted_topic_is_revoked_and_a_recreated_one_is_assigned(broker: VirtualBroker) -> None:
    one, two = two_members(broker)
    broker.broker.delete_topic(broker.partition().topic)
    converge(one, two)
    assert one.owned == two.owned == {}
    assert consumer_group(broker).state is ConsumerState.STABLE
    broker.topic("t", 2)
    converge(one, two)
    assert (one.partitions, two.partitions) == ({"t": {0}}, {"t": {1}})


def test_unrelated_topic_keeps_the_group_epoch(broker: VirtualBroker) -> None:
    one, two = two_members(broker)
    epoch = consumer_group(broker).group_epoch
    broker.topic("other")
    converge(one, two)
    assert consumer_group(broker).group_epoch == epoch


def test_changed_subscription_revokes_old_and_assigns_new_partitions(broker: VirtualBroker) -> None:
    broker.topic("u", 2)
    one, two = two_members(broker)
    one.heartbeat(subscribed_topic_names=["u"])
    assert one.assigned == {}, "partitions of unsubscribed topics are revoked immediately"
    converge(one, two)
    assert (one.partitions, two.partitions) == ({"u": {0, 1}}, {"t": {0, 1, 2, 3}})


def test_most_requested_assignor_is_used(broker: VirtualBroker) -> None:
    broker.topic("u", 1)
    members = settled(*(ConsumerMember(broker, name, topics=["t", "u"], assignor="range") for name in "ab"))
    assert [member.partitions for member in members] == [{"t": {0, 1}, "u": {0}}, {"t": {2, 3}}]
    epoch = consumer_group(broker).group_epoch
    members[0].heartbeat(server_assignor="uniform")
    assert consumer_group(broker).group_epoch == epoch + 1, "a tie goes to uniform"
    members[1].heartbeat(server_assignor="uniform")
    assert consumer_group(broker).group_epoch == epoch + 1


# -- removed members ---------------------------------------------------------------------------------------------------


def test_member_without_heartbeats_is_removed_when_its_session_ends(broker: VirtualBroker) -> None:
    one, two = two_members(broker)
    broker.advance(SESSION_MS - 1)
    two.heartbeat()
    assert two.partitions == {"t": {2, 3}}
    broker.advance(1)
    two.heartbeat()
    assert two.partitions == {"t": {0, 1, 2, 3}}
    assert one.heartbeat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_does_not_revoke_within_the_rebalance_timeout_is_removed(broker: VirtualBroker) -> None:
    one, two = joined(ConsumerMember(broker, "one")), joined(ConsumerMember(broker, "two"))
    one.clings = True
    one.heartbeat()
    for _ in range(REBALANCE_MS // 10_000 - 1):
        broker.advance(10_000)
        assert one.heartbeat().error_code == two.heartbeat().error_code == 0
    broker.advance(9_999)
    assert two.heartbeat().error_code == 0
    assert two.partitions == {}
    broker.advance(1)
    two.heartbeat()
    assert two.partitions == {"t": {0, 1, 2, 3}}
    assert one.heartbeat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_revokes_within_the_rebalance_timeout_stays(broker: VirtualBroker) -> None:
    one, two = two_members(broker)
    for _ in range(10):
        broker.advance(10_000)
        assert one.heartbeat().error_code == two.heartbeat().error_code == 0


# -- configs -----------------------------------------------------------------------------------------------------------


GROUP_CONFIGS = {"broker configs": False, "group configs": True}


@pytest.mark.parametrize("group_config", GROUP_CONFIGS.values(), ids=GROUP_CONFIGS)
def test_session_timeout_and_heartbeat_interval_follow_the_configs(group_config: bool) -> None:
    configs = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "7000"}
    broker = make_broker(*(f"group.{name}={value}" for name, value in configs.items() if not group_config))
    if group_config:
        response = broker.client().call(config_changes(_GROUP, "group", configs), 1)
        assert response.responses[0].error_code == 0
    member = ConsumerMember(broker, "m")
    assert member.join().heartbeat_interval_ms == 7_000
    broker.advance(49_999)
    assert not consumer_group(broker).is_empty
    broker.advance(1)
    assert consumer_group(broker).is_empty
