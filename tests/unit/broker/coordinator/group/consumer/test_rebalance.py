"""How a consumer group gets from one assignment to the next, and who is put out on the way."""

import pytest

from sluice.broker.coordinator.group.consumer.group import ConsumerState
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, REBALANCE_MS, ConsumerMember, consumer_group, converge
from tests.support.virtual_broker import VirtualBroker

SESSION_MS = 45_000
_GROUP = 32  # ConfigResource.Type


def a_broker(*overrides: str) -> VirtualBroker:
    broker = VirtualBroker(AT_ONCE, *overrides)
    broker.topic("t", 4)
    return broker


def two_members(broker: VirtualBroker) -> tuple[ConsumerMember, ConsumerMember]:
    """Each with two partitions of four."""
    one, two = ConsumerMember(broker, "one"), ConsumerMember(broker, "two")
    one.join()
    two.join()
    converge(one, two)
    return one, two


def test_a_partition_goes_from_one_to_another_in_three_heartbeats() -> None:
    broker = a_broker()
    one, two = ConsumerMember(broker, "one"), ConsumerMember(broker, "two")
    one.join()
    assert (one.epoch, one.partitions) == (2, {"t": {0, 1, 2, 3}})
    assert consumer_group(broker).state is ConsumerState.STABLE
    two.join()
    assert (two.epoch, two.partitions) == (3, {})
    assert consumer_group(broker).state is ConsumerState.RECONCILING
    one.heartbeat()
    assert (one.epoch, one.told) == (2, {broker.partition().topic.topic_id: {0, 1}})
    two.heartbeat()
    assert two.partitions == {}, "the first has not said that it gave anything up"
    one.heartbeat()
    assert (one.epoch, one.partitions) == (3, {"t": {0, 1}})
    two.heartbeat()
    assert (two.epoch, two.partitions) == (3, {"t": {2, 3}})
    assert consumer_group(broker).state is ConsumerState.STABLE


def test_what_a_member_had_goes_to_others_when_it_leaves() -> None:
    broker = a_broker()
    one, two = two_members(broker)
    one.leave()
    assert consumer_group(broker).state is ConsumerState.ASSIGNING
    two.heartbeat()
    assert two.partitions == {"t": {0, 1, 2, 3}}
    two.leave()
    assert consumer_group(broker).state is ConsumerState.EMPTY


def test_a_new_assignment_waits_until_the_last_is_long_enough_ago() -> None:
    broker = VirtualBroker()
    broker.topic("t", 4)
    one, two = ConsumerMember(broker, "one"), ConsumerMember(broker, "two")
    one.join()
    broker.advance(999)
    two.join()
    assert two.epoch == 2, "the epoch of the assignment that there is"
    assert consumer_group(broker).state is ConsumerState.ASSIGNING
    one.heartbeat()
    assert one.told == {broker.partition().topic.topic_id: {0, 1, 2, 3}}
    broker.advance(1)
    converge(one, two)
    assert (one.partitions, two.partitions) == ({"t": {0, 1}}, {"t": {2, 3}})


# -- what makes the epoch grow -----------------------------------------------------------------------------------------


def test_more_partitions_are_assigned_with_the_next_heartbeat() -> None:
    broker = a_broker()
    one, two = two_members(broker)
    wanted = CreatePartitionsTopic(name="t", count=6, assignments=None)
    broker.client().ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=1000), 3)
    converge(one, two)
    assert (one.partitions, two.partitions) == ({"t": {0, 1, 4}}, {"t": {2, 3, 5}})


def test_a_topic_that_is_deleted_is_taken_away_and_one_that_comes_back_is_another() -> None:
    broker = a_broker()
    [one, two] = two_members(broker)
    broker.broker.delete_topic(broker.partition().topic)
    converge(one, two)
    assert one.owned == two.owned == {}
    assert consumer_group(broker).state is ConsumerState.STABLE
    broker.topic("t", 2)
    converge(one, two)
    assert (one.partitions, two.partitions) == ({"t": {0}}, {"t": {1}})


def test_nothing_grows_while_nothing_changes() -> None:
    broker = a_broker()
    one, two = two_members(broker)
    epoch = consumer_group(broker).group_epoch
    broker.topic("other")
    converge(one, two)
    assert consumer_group(broker).group_epoch == epoch


def test_a_member_that_wants_another_topic_gets_it_and_gives_up_what_it_had() -> None:
    broker = a_broker()
    broker.topic("u", 2)
    one, two = two_members(broker)
    one.heartbeat(subscribed_topic_names=["u"])
    assert one.told == {}, "what it does not want it has to give up at once"
    converge(one, two)
    assert (one.partitions, two.partitions) == ({"u": {0, 1}}, {"t": {0, 1, 2, 3}})


def test_the_assignor_is_the_one_that_most_members_ask_for() -> None:
    broker = a_broker()
    broker.topic("u", 1)
    members = [ConsumerMember(broker, name, topics=["t", "u"], assignor="range") for name in "ab"]
    for member in members:
        member.join()
    converge(*members)
    assert [member.partitions for member in members] == [{"t": {0, 1}, "u": {0}}, {"t": {2, 3}}]
    epoch = consumer_group(broker).group_epoch
    members[0].heartbeat(server_assignor="uniform")
    assert consumer_group(broker).group_epoch == epoch + 1, "of equals, uniform comes first"
    members[1].heartbeat(server_assignor="uniform")
    assert consumer_group(broker).group_epoch == epoch + 1


# -- who is put out ----------------------------------------------------------------------------------------------------


def test_a_member_that_is_silent_for_its_session_is_out() -> None:
    broker = a_broker()
    one, two = two_members(broker)
    broker.advance(SESSION_MS - 1)
    two.heartbeat()
    assert two.partitions == {"t": {2, 3}}
    broker.advance(1)
    two.heartbeat()
    assert two.partitions == {"t": {0, 1, 2, 3}}
    assert one.heartbeat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_in_time_is_out() -> None:
    broker = a_broker()
    one, two = ConsumerMember(broker, "one"), ConsumerMember(broker, "two")
    one.join()
    two.join()
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


def test_a_member_that_gave_up_in_time_stays() -> None:
    broker = a_broker()
    one, two = ConsumerMember(broker, "one"), ConsumerMember(broker, "two")
    one.join()
    two.join()
    converge(one, two)
    for _ in range(10):
        broker.advance(10_000)
        assert one.heartbeat().error_code == two.heartbeat().error_code == 0


# -- configs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_the_group", [pytest.param(False, id="the broker's"), pytest.param(True, id="the group's")])
def test_session_timeout_and_heartbeat_interval_are_as_configured(of_the_group: bool) -> None:
    own = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "7000"}
    broker = a_broker() if of_the_group else a_broker(*(f"group.{name}={value}" for name, value in own.items()))
    if of_the_group:
        configs = [AlterableConfig(name=name, value=value) for name, value in own.items()]
        resource = AlterConfigsResource(resource_type=_GROUP, resource_name="group", configs=configs)
        answer = broker.client().ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert answer.responses[0].error_code == 0
    member = ConsumerMember(broker, "m")
    assert member.join().heartbeat_interval_ms == 7_000
    broker.advance(49_999)
    assert not consumer_group(broker).is_empty
    broker.advance(1)
    assert consumer_group(broker).is_empty
