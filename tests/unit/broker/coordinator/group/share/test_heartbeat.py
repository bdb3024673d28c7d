"""ShareGroupHeartbeat: joining, assignment, epochs, sessions, initialization of partitions, and every error."""

from typing import Any

import pytest

from sluice.broker.coordinator.group.share.state_partitions import StatePartitions
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sluice.protocol.errors import ErrorCode
from tests.support.configs import config_changes
from tests.support.consumer_groups import ConsumerMember
from tests.support.group_members import converge, joined, settled
from tests.support.groups import Member, protocol
from tests.support.share_groups import AT_ONCE, MemoryPersister, ShareMember, share_group
from tests.support.virtual_broker import VirtualBroker, broker_with_topic


def make_broker(*overrides: str, partitions: int = 4) -> tuple[VirtualBroker, MemoryPersister]:
    broker = broker_with_topic(AT_ONCE, *overrides, partitions=partitions)
    persister = MemoryPersister()
    vars(broker.broker)["share_persister"] = persister
    return broker, persister


@pytest.fixture
def broker() -> VirtualBroker:
    return make_broker()[0]


# -- errors ------------------------------------------------------------------------------------------------------------


INVALID_REQUESTS = {
    "no member id": ({"member_id": ""}, None),
    "a member id longer than a UUID": ({"member_id": "m" * 37}, None),
    "blank member id": ({"member_id": " "}, "MemberId can't be empty."),
    "blank group id": ({"group_id": " "}, "GroupId can't be empty."),
    "empty rack id": ({"rack_id": ""}, "RackId can't be empty."),
    "no topics": ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
    "epoch below -1": ({"member_epoch": -2}, "MemberEpoch is invalid."),
}


@pytest.mark.parametrize(("fields", "message"), INVALID_REQUESTS.values(), ids=INVALID_REQUESTS)
def test_invalid_request_is_rejected(broker: VirtualBroker, fields: dict[str, Any], message: str | None) -> None:
    response = ShareMember(broker).join(**fields)
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, message)


def test_share_group_rejects_members_of_other_protocols_even_if_empty(broker: VirtualBroker) -> None:
    joined(ShareMember(broker)).leave()
    assert ConsumerMember(broker).join().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    classic = Member(broker, version=2)
    classic.send_join(protocol(metadata=b""), rebalance_timeout_ms=10_000)
    assert classic.joined().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


OTHER_EPOCHS = {
    "later": (
        9,
        "The share group member has a greater member epoch (9) than the one known by the group coordinator (3). "
        "The member must abandon all its partitions and rejoin.",
    ),
    "too early": (
        1,
        "The share group member has a smaller member epoch (1) than the one known by the group coordinator (3), "
        "and it does not match the previous member epoch (2). "
        "The member must abandon all its partitions and rejoin.",
    ),
}


@pytest.mark.parametrize(("epoch", "message"), OTHER_EPOCHS.values(), ids=OTHER_EPOCHS)
def test_member_with_another_epoch_is_fenced(broker: VirtualBroker, epoch: int, message: str) -> None:
    (member,) = settled(ShareMember(broker))
    assert member.epoch == 3
    response = member.heartbeat(member_epoch=epoch)
    assert (response.error_code, response.error_message) == (ErrorCode.FENCED_MEMBER_EPOCH, message)
    assert member.heartbeat(member_epoch=2).error_code == 0  # its last response may be lost
    assert member.heartbeat(member_epoch=0, subscribed_topic_names=["t"]).error_code == 0


def test_broker_without_the_feature_does_not_support_share_groups() -> None:
    broker = VirtualBroker("sluice.kafka.release=kafka-3.9")
    assert not broker.broker.features.level("share.version")
    assert not {76, 77, 78, 79, 90, 91, 92} & broker.broker.advertised.keys()


# -- assignment --------------------------------------------------------------------------------------------------------


def test_partitions_are_assigned_after_they_are_initialized() -> None:
    broker, persister = make_broker(partitions=2)
    persister.holds = True
    member = ShareMember(broker)
    joined = member.join()
    assert (joined.member_id, joined.member_epoch, joined.heartbeat_interval_ms) == ("member", 2, 5_000)
    assert member.partitions == {}
    assert persister.requests == [("initialize", "group", 2, [{0: -1, 1: -1}])]
    waiting = member.heartbeat()
    assert (waiting.member_epoch, waiting.assignment) == (2, None)
    persister.release()
    assert member.heartbeat().member_epoch == 3
    assert member.partitions == {"t": [0, 1]}
    assert member.heartbeat().assignment is None
    assert member.heartbeat(subscribed_topic_names=["t"]).assignment is not None


def test_members_share_partitions_and_take_over_those_of_a_leaver(broker: VirtualBroker) -> None:
    members = [*settled(*(ShareMember(broker, name) for name in ("one", "two", "three")))]
    assert sorted(index for member in members for index in member.partitions["t"]) == [0, 1, 2, 3]
    left = members.pop().leave()
    assert (left.member_id, left.member_epoch) == ("three", -1)
    converge(*members)
    assert [len(member.partitions["t"]) for member in members] == [2, 2]


def test_next_assignment_waits_for_the_interval_but_not_after_the_group_was_empty() -> None:
    broker, _ = make_broker("group.share.assignment.interval.ms=1000")
    one, two = joined(ShareMember(broker, "one")), joined(ShareMember(broker, "two"))
    assert (one.epoch, two.epoch) == (2, 2)
    broker.advance(1_000)
    converge(one, two, rounds=1)
    assert (one.epoch, two.epoch) == (3, 3)
    one.leave()
    two.leave()
    one.join()
    assert one.partitions == {"t": [0, 1, 2, 3]}


def test_changed_subscription_takes_effect_with_the_next_target(broker: VirtualBroker) -> None:
    broker.topic("u", 1)
    (member,) = settled(ShareMember(broker))
    member.heartbeat(subscribed_topic_names=["u"])
    assert member.partitions == {}
    member.heartbeat()
    assert member.partitions == {"u": [0]}
    assert share_group(broker).partitions is not None


def test_added_partitions_start_at_the_earliest_offset() -> None:
    broker, persister = make_broker(partitions=1)
    (member,) = settled(ShareMember(broker))
    broker.broker.cluster.add_partitions(broker.broker.cluster.topics["t"], 2)
    converge(member)
    assert persister.requests[1:] == [("initialize", "group", 4, [{1: 0}])]
    assert member.partitions == {"t": [0, 1]}


def test_deleted_topic_is_removed_from_the_group(broker: VirtualBroker) -> None:
    (member,) = settled(ShareMember(broker, topics=["t", "unknown"]))
    member.client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000), 6)
    assert share_group(broker).partitions == StatePartitions()
    converge(member)
    assert member.partitions == {}


@pytest.mark.parametrize("retry", [pytest.param(False, id="before the interval"), pytest.param(True, id="after it")])
def test_unanswered_initialization_is_requested_again(retry: bool) -> None:
    broker, persister = make_broker(partitions=1)
    persister.holds = True
    member = joined(ShareMember(broker))
    broker.advance(30_000 if retry else 29_999)
    member.heartbeat()
    assert len(persister.requests) == 1 + retry


def test_failed_initialization_is_requested_again_by_the_next_heartbeat() -> None:
    broker, persister = make_broker(partitions=2)
    persister.fails[1] = ErrorCode.COORDINATOR_NOT_AVAILABLE
    member = joined(ShareMember(broker))
    assert share_group(broker).partitions == StatePartitions()
    persister.fails.clear()
    converge(member)
    assert len(persister.requests) == 2
    assert member.partitions == {"t": [0, 1]}


# -- sessions and configs ----------------------------------------------------------------------------------------------


def set_config(member: ShareMember, key: str, value: str) -> None:
    [response] = member.client.call(config_changes(32, "group", {key: value}), 1).responses
    assert not response.error_code, response


@pytest.mark.parametrize("timeout_ms", [45_000, 50_000], ids=["default", "configured"])
def test_member_without_heartbeats_is_removed(broker: VirtualBroker, timeout_ms: int) -> None:
    member = ShareMember(broker)
    if timeout_ms != 45_000:
        set_config(member, "share.session.timeout.ms", str(timeout_ms))
    member.join()
    broker.advance(timeout_ms - 1)
    assert member.heartbeat().error_code == 0
    broker.advance(timeout_ms - 1)
    assert share_group(broker).state_name == "Stable"
    broker.advance(1)
    assert share_group(broker).state_name == "Empty"
    assert member.heartbeat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeat_interval_follows_the_group_config(broker: VirtualBroker) -> None:
    member = ShareMember(broker)
    set_config(member, "share.heartbeat.interval.ms", "7000")
    assert member.join().heartbeat_interval_ms == 7_000


def test_consumer_group_heartbeat_reports_a_share_group(broker: VirtualBroker) -> None:
    member = joined(ShareMember(broker))
    request = ConsumerGroupHeartbeatRequest(group_id="group", member_id="m", member_epoch=1)
    assert member.client.call(request, 1).error_message == "Group group is not a consumer group."
