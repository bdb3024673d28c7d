"""ConsumerGroupHeartbeat: joining, staying, leaving, and every error."""

from typing import Any

import pytest

from sluice.protocol.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, REBALANCE_MS, ConsumerMember, consumer_group, topic_partitions
from tests.support.group_members import joined, settled
from tests.support.virtual_broker import VirtualBroker, broker_with_topic
from tests.support.wire import error_codes

SESSION_MS = 45_000


def make_broker(*overrides: str) -> VirtualBroker:
    return broker_with_topic(AT_ONCE, *overrides, partitions=4)


@pytest.fixture
def broker() -> VirtualBroker:
    return make_broker()


# -- invalid requests --------------------------------------------------------------------------------------------------

JOINS: dict[str, Any] = {
    "member_epoch": 0,
    "rebalance_timeout_ms": REBALANCE_MS,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
OWNED = topic_partitions({b"t" * 16: {0}})
NOT_EMPTY = "TopicPartitions must be empty when (re-)joining."


INVALID_REQUESTS = {
    "no member id in version 1": (1, {"member_id": ""}, "MemberId can't be empty."),
    "no member id to stay": (0, {"member_id": " ", "member_epoch": 3}, "MemberId can't be empty."),
    "no member id to leave": (0, {"member_id": "", "member_epoch": -1}, "MemberId can't be empty."),
    "no group id": (1, {"group_id": " "}, "GroupId can't be empty."),
    "empty instance id": (1, {"instance_id": ""}, "InstanceId can't be empty."),
    "blank rack id": (1, {"rack_id": "\t\0"}, "RackId can't be empty."),
    "join without rebalance timeout": (
        1,
        {"rebalance_timeout_ms": -1},
        "RebalanceTimeoutMs must be provided in first request.",
    ),
    "join without topic partitions": (1, {"topic_partitions": None}, NOT_EMPTY),
    "join with owned partitions": (1, {"topic_partitions": OWNED}, NOT_EMPTY),
    "join without subscription": (
        1,
        {"subscribed_topic_names": None},
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    ),
    "temporary leave without instance id": (1, {"member_epoch": -2}, "InstanceId can't be null."),
    "epoch below -2": (1, {"member_epoch": -3}, "MemberEpoch is invalid."),
}


@pytest.mark.parametrize(("version", "fields", "message"), INVALID_REQUESTS.values(), ids=INVALID_REQUESTS)
def test_invalid_request_is_rejected(version: int, fields: dict[str, Any], message: str) -> None:
    member = ConsumerMember(make_broker(), "m")
    response = member.send(version, **(JOINS | fields))
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, message)


def test_only_blanks_that_java_trims_are_empty() -> None:
    assert ConsumerMember(make_broker(), "\u2003").join().error_code == 0


def test_disabled_protocol_is_not_supported() -> None:
    broker = VirtualBroker("group.coordinator.rebalance.protocols=classic")
    responses = [
        broker.client().call(ConsumerGroupHeartbeatRequest(**JOINS), 1),
        broker.client().call(ConsumerGroupDescribeRequest(group_ids=["group"]), 1),
    ]
    assert [error_codes(response) for response in responses] == [[ErrorCode.UNSUPPORTED_VERSION]] * 2


def test_unknown_assignor_is_rejected() -> None:
    response = ConsumerMember(make_broker(), assignor="sticky").join()
    assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert response.error_message == "ServerAssignor sticky is not supported. Supported assignors: uniform, range."


def test_assignor_that_is_not_configured_is_rejected() -> None:
    response = ConsumerMember(make_broker("group.consumer.assignors=uniform"), assignor="range").join()
    assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR


@pytest.mark.parametrize("regex", ["(", "(" * 1500, f"(a{{{'9' * 4301}}}"], ids=["open", "many open", "4301 digits"])
def test_invalid_regular_expression_is_rejected_without_creating_the_group(broker: VirtualBroker, regex: str) -> None:
    response = ConsumerMember(broker, regex=regex).join()
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    problem = "is not a valid regular expression: missing closing )."
    assert response.error_message == f"SubscribedTopicRegex `{regex}` {problem}"
    assert "group" not in broker.broker.groups.groups


# -- groups and members ------------------------------------------------------------------------------------------------


def test_full_group_accepts_a_returning_static_member() -> None:
    broker = make_broker("group.consumer.max.size=1")
    one = joined(ConsumerMember(broker, "one", instance_id="i"))
    one.leave(-2)
    assert ConsumerMember(broker, "two", instance_id="i").join().error_code == 0


def test_broker_generates_the_member_id_in_version_0(broker: VirtualBroker) -> None:
    one, two = ConsumerMember(broker, ""), ConsumerMember(broker, "")
    for member in (one, two):
        response = member.join(0)
        assert (response.error_code, len(response.member_id)) == (0, 22)
    assert one.member_id != two.member_id


def test_group_record_above_the_message_size_limit_is_rejected() -> None:
    broker = VirtualBroker(AT_ONCE, "message.max.bytes=200")
    response = ConsumerMember(broker, "m", topics=["t" * 200]).join()
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert response.error_message is None


def test_subscription_above_the_message_size_limit_is_rejected_before_it_is_processed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = VirtualBroker(AT_ONCE, "message.max.bytes=200")
    monkeypatch.setattr(broker.broker.groups.consumer.rebalance, "advance", None)
    response = ConsumerMember(broker, "m", topics=["t" * 100, "u" * 101, "t" * 100]).join()
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert response.error_message is None


# -- epochs ------------------------------------------------------------------------------------------------------------


def test_member_epoch_above_the_current_epoch_is_fenced() -> None:
    member = ConsumerMember(make_broker(), "m")
    assert member.join().member_epoch == 2
    response = member.send(member_epoch=3)
    assert response.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert response.error_message == (
        "The consumer group member has a greater member epoch (3) than the one known by the group coordinator (2). "
        "The member must abandon all its partitions and rejoin."
    )


def member_with_previous_epoch() -> tuple[VirtualBroker, ConsumerMember]:
    """Return a member in epoch 3, after 2, that owns t-0 and t-1; another owns t-2 and t-3."""
    broker = make_broker()
    one, _ = settled(ConsumerMember(broker, "one"), ConsumerMember(broker, "two"))
    assert one.epoch == 3
    assert one.partitions == {"t": {0, 1}}
    group = consumer_group(broker)
    group.put(group.members["one"]._replace(previous_member_epoch=2))
    return broker, one


PREVIOUS_EPOCHS = {
    "previous epoch, some of its partitions": (2, {0}, 0),
    "previous epoch, no partitions": (2, set(), 0),
    "previous epoch, partition of another member": (2, {0, 2}, ErrorCode.FENCED_MEMBER_EPOCH),
    "previous epoch, owned partitions not sent": (2, None, ErrorCode.FENCED_MEMBER_EPOCH),
    "earlier epoch": (1, {0}, ErrorCode.FENCED_MEMBER_EPOCH),
}


@pytest.mark.parametrize(("epoch", "partitions", "code"), PREVIOUS_EPOCHS.values(), ids=PREVIOUS_EPOCHS)
def test_previous_epoch_is_accepted_if_owned_partitions_match(
    epoch: int, partitions: set[int] | None, code: int
) -> None:
    broker, member = member_with_previous_epoch()
    topic_id = broker.partition("t").topic.topic_id
    owned = None if partitions is None else topic_partitions({topic_id: partitions})
    assert member.send(member_epoch=epoch, topic_partitions=owned).error_code == code


def test_rejoining_member_keeps_its_assignment() -> None:
    _, member = member_with_previous_epoch()
    response = member.join()
    assert (response.error_code, response.member_epoch) == (0, 3)
    assert member.partitions == {"t": {0, 1}}


# -- static members ----------------------------------------------------------------------------------------------------


def test_returning_static_member_keeps_its_assignment_without_a_rebalance(broker: VirtualBroker) -> None:
    one, _ = settled(ConsumerMember(broker, "one", instance_id="i"), ConsumerMember(broker, "other"))
    partitions, epoch = one.partitions, consumer_group(broker).group_epoch
    assert one.leave(-2).member_epoch == -2
    again = ConsumerMember(broker, "again", instance_id="i")
    response = again.join()
    assert (response.error_code, response.member_epoch, again.partitions) == (0, epoch, partitions)
    assert consumer_group(broker).group_epoch == epoch
    assert set(consumer_group(broker).members) == {"other", "again"}


def test_static_member_that_does_not_return_before_its_session_ends_is_removed(broker: VirtualBroker) -> None:
    one, other = settled(ConsumerMember(broker, "one", instance_id="i"), ConsumerMember(broker, "other"))
    one.leave(-2)
    broker.advance(SESSION_MS - 1)
    other.heartbeat()
    assert other.partitions == {"t": {2, 3}}
    broker.advance(1)
    other.heartbeat()
    assert other.partitions == {"t": {0, 1, 2, 3}}


def test_static_member_that_leaves_temporarily_confirms_its_revocations(broker: VirtualBroker) -> None:
    one, two = joined(ConsumerMember(broker, "one", instance_id="i")), joined(ConsumerMember(broker, "two"))
    one.heartbeat()
    one.leave(-2)
    two.heartbeat()
    assert two.partitions == {"t": {2, 3}}


def test_leave_without_instance_id_removes_a_static_member(broker: VirtualBroker) -> None:
    one = joined(ConsumerMember(broker, "one", instance_id="i"))
    one.instance_id = None
    assert one.leave().error_code == 0
    assert consumer_group(broker).is_empty


# -- responses ---------------------------------------------------------------------------------------------------------


def test_assignment_is_sent_when_it_changes_and_after_a_full_heartbeat() -> None:
    member = ConsumerMember(make_broker(), "m")
    response = member.join()
    assert response.heartbeat_interval_ms == 5_000
    [sent] = response.assignment.topic_partitions
    assert sent.partitions == [0, 1, 2, 3]
    assert member.heartbeat().assignment is None
    assert member.heartbeat(rebalance_timeout_ms=REBALANCE_MS).assignment is None
    assert member.heartbeat(rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=["t"]).assignment is not None


def test_heartbeat_updates_only_the_fields_that_it_contains(broker: VirtualBroker) -> None:
    member = joined(ConsumerMember(broker, "m", assignor="range", instance_id="i"), rack_id="r")
    member.heartbeat()
    known = consumer_group(broker).members["m"]
    assert (known.rack_id, known.server_assignor, known.instance_id) == ("r", "range", "i")
    assert known.rebalance_timeout_ms == REBALANCE_MS
    assert known.subscribed_topic_names == {"t"}
    assert (known.client_id, known.client_host) == ("client", "/127.0.0.1")
    member.heartbeat(rack_id="s", server_assignor="uniform", rebalance_timeout_ms=1)
    known = consumer_group(broker).members["m"]
    assert (known.rack_id, known.server_assignor, known.rebalance_timeout_ms) == ("s", "uniform", 1)


def test_subscription_to_a_missing_topic_is_accepted(broker: VirtualBroker) -> None:
    member = ConsumerMember(broker, "m", topics=["later"])
    assert member.join().assignment.topic_partitions == []
    broker.topic("later", 2)
    member.heartbeat()
    assert member.partitions == {"later": {0, 1}}


def test_members_with_equal_subscriptions_share_one_set(broker: VirtualBroker) -> None:
    # A heartbeat takes time for each distinct set, of up to 1 MB.
    ConsumerMember(broker, "one", topics=["t", "u"]).join()
    ConsumerMember(broker, "two", topics=["u", "t"]).join()
    members = consumer_group(broker).members
    assert members["one"].subscribed_topic_names is members["two"].subscribed_topic_names


def test_empty_subscription_is_accepted() -> None:
    member = ConsumerMember(make_broker(), "m", topics=[])
    assert (member.join().error_code, member.partitions) == (0, {})
    member = ConsumerMember(make_broker(), "m", regex="")
    assert (member.join().error_code, member.partitions) == (0, {})
