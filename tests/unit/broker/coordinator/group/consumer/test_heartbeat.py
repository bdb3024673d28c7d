"""What members of consumer groups are answered: every refusal, and joining, staying and leaving."""

from typing import Any

import pytest

from sluice.broker.coordinator.group.consumer.group import ConsumerState
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import (
    AT_ONCE,
    REBALANCE_MS,
    ConsumerMember,
    consumer_group,
    converge,
    topic_partitions,
)
from tests.support.groups import stable_group
from tests.support.virtual_broker import VirtualBroker

SESSION_MS = 45_000


def a_broker(*overrides: str, partitions: int = 4) -> VirtualBroker:
    broker = VirtualBroker(AT_ONCE, *overrides)
    broker.topic("t", partitions)
    return broker


# -- requests that no group would accept -------------------------------------------------------------------------------

JOINS: dict[str, Any] = {
    "member_epoch": 0,
    "rebalance_timeout_ms": REBALANCE_MS,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}


@pytest.mark.parametrize(
    ("version", "fields", "message"),
    [
        pytest.param(1, {"member_id": ""}, "MemberId can't be empty.", id="no member id in version 1"),
        pytest.param(0, {"member_id": " ", "member_epoch": 3}, "MemberId can't be empty.", id="no member id to stay"),
        pytest.param(0, {"member_id": "", "member_epoch": -1}, "MemberId can't be empty.", id="no member id to leave"),
        pytest.param(1, {"group_id": " "}, "GroupId can't be empty.", id="no group id"),
        pytest.param(1, {"instance_id": ""}, "InstanceId can't be empty.", id="an empty instance id"),
        pytest.param(1, {"rack_id": "\t"}, "RackId can't be empty.", id="an empty rack"),
        pytest.param(
            1,
            {"rebalance_timeout_ms": -1},
            "RebalanceTimeoutMs must be provided in first request.",
            id="no rebalance timeout to join",
        ),
        pytest.param(
            1,
            {"topic_partitions": None},
            "TopicPartitions must be empty when (re-)joining.",
            id="not saying what it has to join",
        ),
        pytest.param(
            1,
            {"topic_partitions": topic_partitions({b"t" * 16: {0}})},
            "TopicPartitions must be empty when (re-)joining.",
            id="partitions to join",
        ),
        pytest.param(
            1,
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
            id="no topics to join",
        ),
        pytest.param(1, {"member_epoch": -2}, "InstanceId can't be null.", id="a while away without instance id"),
        pytest.param(1, {"member_epoch": -3}, "MemberEpoch is invalid.", id="an epoch below all"),
    ],
)
def test_an_invalid_request_is_refused(version: int, fields: dict[str, Any], message: str) -> None:
    member = ConsumerMember(a_broker(), "m")
    response = member.send(version, **(JOINS | fields))
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, message)


def test_an_assignor_that_nobody_knows_is_refused() -> None:
    response = ConsumerMember(a_broker(), assignor="sticky").join()
    assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert response.error_message == "ServerAssignor sticky is not supported. Supported assignors: uniform, range."


def test_an_assignor_that_is_not_configured_is_refused() -> None:
    response = ConsumerMember(a_broker("group.consumer.assignors=uniform"), assignor="range").join()
    assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR


def test_a_regular_expression_that_is_none_is_refused_and_changes_nothing() -> None:
    broker = a_broker()
    response = ConsumerMember(broker, regex="(").join()
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert response.error_message.startswith("SubscribedTopicRegex `(` is not a valid regular expression: ")
    assert "group" not in broker.broker.groups.groups


# -- groups and members ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [pytest.param(1, id="stays"), pytest.param(-1, id="leaves")])
def test_there_is_no_such_group(epoch: int) -> None:
    response = ConsumerMember(a_broker()).send(member_epoch=epoch)
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [pytest.param(1, id="stays"), pytest.param(-1, id="leaves")])
def test_a_classic_group_is_none_for_its_members(epoch: int) -> None:
    broker = a_broker()
    stable_group(broker)
    response = ConsumerMember(broker).send(member_epoch=epoch)
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert response.error_message == "Group group is not a consumer group."


def test_a_group_that_is_full_takes_its_own_members_only() -> None:
    broker = a_broker("group.consumer.max.size=1")
    one, two = ConsumerMember(broker, "one"), ConsumerMember(broker, "two")
    assert one.join().error_code == 0
    response = two.join()
    assert response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert response.error_message == "The consumer group has reached its maximum capacity of 1 members."
    assert one.heartbeat().error_code == one.join().error_code == 0


def test_a_full_group_takes_a_static_member_back() -> None:
    broker = a_broker("group.consumer.max.size=1")
    one = ConsumerMember(broker, "one", instance_id="i")
    one.join()
    one.leave(-2)
    assert ConsumerMember(broker, "two", instance_id="i").join().error_code == 0


def test_the_broker_names_a_member_of_version_0() -> None:
    broker = a_broker()
    one, two = ConsumerMember(broker, ""), ConsumerMember(broker, "")
    for member in (one, two):
        response = member.join(0)
        assert (response.error_code, len(response.member_id)) == (0, 22)
    assert one.member_id != two.member_id


@pytest.mark.parametrize("epoch", [pytest.param(1, id="stays"), pytest.param(-1, id="leaves")])
def test_a_member_that_is_not_known(epoch: int) -> None:
    broker = a_broker()
    ConsumerMember(broker, "one").join()
    response = ConsumerMember(broker, "two").send(member_epoch=epoch)
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert response.error_message == "Member two is not a member of group group."


def test_records_that_are_too_large_are_told_of() -> None:
    broker = VirtualBroker(AT_ONCE, "message.max.bytes=200")
    response = ConsumerMember(broker, "m", topics=["t" * 200]).join()
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert response.error_message == "The group's records could not be written."


# -- epochs ------------------------------------------------------------------------------------------------------------


def test_an_epoch_that_the_member_cannot_have_is_fenced() -> None:
    member = ConsumerMember(a_broker(), "m")
    assert member.join().member_epoch == 2
    response = member.send(member_epoch=3)
    assert response.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert response.error_message == (
        "The consumer group member has a greater member epoch (3) than the one known by the group coordinator (2). "
        "The member must abandon all its partitions and rejoin."
    )


def in_its_second_epoch() -> tuple[VirtualBroker, ConsumerMember]:
    """A member in epoch 3, which was in epoch 2, and has t-0 and t-1; t-2 and t-3 are another's."""
    broker = a_broker()
    one, two = ConsumerMember(broker, "one"), ConsumerMember(broker, "two")
    one.join()
    two.join()
    converge(one, two)
    assert one.epoch == 3
    assert one.partitions == {"t": {0, 1}}
    group = consumer_group(broker)
    group.put(group.members["one"]._replace(previous_member_epoch=2))
    return broker, one


@pytest.mark.parametrize(
    ("epoch", "partitions", "code"),
    [
        pytest.param(2, {0}, 0, id="the one before, with some of what it has"),
        pytest.param(2, set(), 0, id="the one before, with nothing"),
        pytest.param(2, {0, 2}, ErrorCode.FENCED_MEMBER_EPOCH, id="the one before, with another's partition"),
        pytest.param(2, None, ErrorCode.FENCED_MEMBER_EPOCH, id="the one before, not saying what it has"),
        pytest.param(1, {0}, ErrorCode.FENCED_MEMBER_EPOCH, id="an earlier one"),
    ],
)
def test_a_member_may_not_have_heard_of_its_epoch(epoch: int, partitions: set[int] | None, code: int) -> None:
    broker, member = in_its_second_epoch()
    topic_id = broker.partition("t").topic.topic_id
    owned = None if partitions is None else topic_partitions({topic_id: partitions})
    assert member.send(member_epoch=epoch, topic_partitions=owned).error_code == code


def test_a_member_may_begin_anew_and_has_what_it_had() -> None:
    _, member = in_its_second_epoch()
    response = member.join()
    assert (response.error_code, response.member_epoch) == (0, 3)
    assert member.partitions == {"t": {0, 1}}


# -- static members ----------------------------------------------------------------------------------------------------


def test_an_instance_id_that_is_in_use_is_not_released() -> None:
    broker = a_broker()
    ConsumerMember(broker, "one", instance_id="i").join()
    response = ConsumerMember(broker, "two", instance_id="i").join()
    assert response.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert "because the instance id is owned by one member." in response.error_message


@pytest.mark.parametrize(
    "epoch", [pytest.param(2, id="stays"), pytest.param(-1, id="leaves"), pytest.param(-2, id="goes")]
)
def test_an_instance_id_that_another_has_now_is_fenced(epoch: int) -> None:
    broker = a_broker()
    one, two = ConsumerMember(broker, "one", instance_id="i"), ConsumerMember(broker, "two", instance_id="i")
    one.join()
    one.leave(-2)
    two.join()
    response = one.send(member_epoch=epoch)
    assert response.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert response.error_message == "Static member one with instance id i was fenced by member two."


@pytest.mark.parametrize("epoch", [pytest.param(2, id="stays"), pytest.param(-2, id="leaves")])
def test_an_instance_id_that_nobody_has_is_unknown(epoch: int) -> None:
    broker = a_broker()
    ConsumerMember(broker, "one").join()
    response = ConsumerMember(broker, "one", instance_id="i").send(member_epoch=epoch)
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert response.error_message == "Instance id i is unknown."


def test_a_static_member_that_comes_back_has_what_it_had_and_nobody_rebalances() -> None:
    broker = a_broker()
    one, other = ConsumerMember(broker, "one", instance_id="i"), ConsumerMember(broker, "other")
    one.join()
    other.join()
    converge(one, other)
    had, epoch = one.partitions, consumer_group(broker).group_epoch
    assert one.leave(-2).member_epoch == -2
    again = ConsumerMember(broker, "again", instance_id="i")
    response = again.join()
    assert (response.error_code, response.member_epoch, again.partitions) == (0, epoch, had)
    assert consumer_group(broker).group_epoch == epoch
    assert set(consumer_group(broker).members) == {"other", "again"}


def test_a_static_member_that_does_not_come_back_in_time_is_out() -> None:
    broker = a_broker()
    one, other = ConsumerMember(broker, "one", instance_id="i"), ConsumerMember(broker, "other")
    one.join()
    other.join()
    converge(one, other)
    one.leave(-2)
    broker.advance(SESSION_MS - 1)
    other.heartbeat()
    assert other.partitions == {"t": {2, 3}}
    broker.advance(1)
    other.heartbeat()
    assert other.partitions == {"t": {0, 1, 2, 3}}


def test_a_static_member_that_goes_lets_go_of_what_it_had_to_give_up() -> None:
    broker = a_broker()
    one, two = ConsumerMember(broker, "one", instance_id="i"), ConsumerMember(broker, "two")
    one.join()
    two.join()
    one.heartbeat()
    one.leave(-2)
    two.heartbeat()
    assert two.partitions == {"t": {2, 3}}


def test_a_static_member_that_leaves_for_good_is_out_at_once() -> None:
    broker = a_broker()
    one = ConsumerMember(broker, "one", instance_id="i")
    one.join()
    assert one.leave(-1).member_epoch == -1
    group = consumer_group(broker)
    assert (group.state, group.static_members) == (ConsumerState.EMPTY, {})


def test_a_dynamic_member_leaves_for_good_whatever_it_says() -> None:
    broker = a_broker()
    one = ConsumerMember(broker, "one", instance_id="i")
    one.join()
    one.instance_id = None
    assert one.leave().error_code == 0
    assert consumer_group(broker).is_empty


# -- answers -----------------------------------------------------------------------------------------------------------


def test_an_assignment_is_told_when_it_changes_and_when_the_member_says_all_of_itself() -> None:
    member = ConsumerMember(a_broker(), "m")
    response = member.join()
    assert response.heartbeat_interval_ms == 5_000
    [told] = response.assignment.topic_partitions
    assert told.partitions == [0, 1, 2, 3]
    assert member.heartbeat().assignment is None
    assert member.heartbeat(rebalance_timeout_ms=REBALANCE_MS).assignment is None
    assert member.heartbeat(rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=["t"]).assignment is not None


def test_a_heartbeat_says_what_changed_and_leaves_the_rest_as_it_was() -> None:
    broker = a_broker()
    member = ConsumerMember(broker, "m", assignor="range", instance_id="i")
    member.join(rack_id="r")
    member.heartbeat()
    known = consumer_group(broker).members["m"]
    assert (known.rack_id, known.server_assignor, known.instance_id) == ("r", "range", "i")
    assert known.rebalance_timeout_ms == REBALANCE_MS
    assert known.subscribed_topic_names == {"t"}
    assert (known.client_id, known.client_host) == ("client", "/127.0.0.1")
    member.heartbeat(rack_id="s", server_assignor="uniform", rebalance_timeout_ms=1)
    known = consumer_group(broker).members["m"]
    assert (known.rack_id, known.server_assignor, known.rebalance_timeout_ms) == ("s", "uniform", 1)


def test_a_topic_that_is_not_there_may_be_subscribed_to() -> None:
    broker = a_broker()
    member = ConsumerMember(broker, "m", topics=["later"])
    assert member.join().assignment.topic_partitions == []
    broker.topic("later", 2)
    member.heartbeat()
    assert member.partitions == {"later": {0, 1}}


def test_no_topics_may_be_subscribed_to() -> None:
    member = ConsumerMember(a_broker(), "m", topics=[])
    assert (member.join().error_code, member.partitions) == (0, {})
    member = ConsumerMember(a_broker(), "m", regex="")
    assert (member.join().error_code, member.partitions) == (0, {})
