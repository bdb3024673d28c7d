"""Group changes whose records cannot be appended: the state does not change."""

from collections.abc import Callable

import pytest

from sluice.broker.coordinator.group.classic.group import EMPTY, STABLE
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, Topic
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, ConsumerMember, consumer_group
from tests.support.group_members import converge, joined
from tests.support.groups import (
    Member,
    classic_group,
    commit_code,
    commit_request,
    delete_offsets_request,
    joined_group,
    settled_group,
)
from tests.support.transactions import NEW, begun
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

FAILED = ErrorCode.UNKNOWN_SERVER_ERROR


class FailingAppends:
    """A context manager that makes each append to __consumer_offsets fail."""

    def __init__(self, broker: VirtualBroker) -> None:
        self._cluster = broker.broker.cluster
        self._topic = self._cluster.internal_topic(GROUP_METADATA_TOPIC)
        self._end = self._size()

    def __enter__(self) -> None:
        self._cluster.configure(self._topic, {"cleanup.policy": "compact", "max.message.bytes": "1"})

    def __exit__(self, *_: object) -> None:
        self._cluster.configure(self._topic, {"cleanup.policy": "compact"})
        assert self._size() == self._end

    def _size(self) -> int:
        return sum(partition.log.log_end_offset for partition in self._topic.partitions)


def test_failed_append_creates_no_classic_group(broker: VirtualBroker) -> None:
    member = Member(broker, instance_id="i")
    with FailingAppends(broker):
        member.send_join()
        assert member.joined().error_code == FAILED
    assert broker.broker.groups.groups == {}
    member.send_join()
    broker.advance(3_000)
    assert member.joined().error_code == ErrorCode.NONE


def test_failed_append_keeps_an_empty_consumer_group() -> None:
    broker = broker_with_topic(AT_ONCE)
    joined(ConsumerMember(broker)).leave()
    group = consumer_group(broker)
    member = Member(broker, instance_id="i")
    with FailingAppends(broker):
        member.send_join()
        assert member.joined().error_code == FAILED
    assert broker.broker.groups.groups == {"group": group}


def test_failed_append_keeps_a_static_member_and_its_member_id(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1, instance_id="i")
    again = Member(broker, instance_id="i")
    with FailingAppends(broker):
        again.send_join(session_timeout_ms=20_000)
        response = again.joined()
    assert (response.error_code, response.member_id, response.generation_id) == (FAILED, "", 1)
    [known] = classic_group(broker).members.values()
    assert (known.member_id, known.session_timeout_ms) == (member.member_id, 10_000)
    assert member.heartbeat() == ErrorCode.NONE
    broker.advance(10_000)
    assert classic_group(broker).state is EMPTY


def test_failed_append_of_an_assignment_starts_a_rebalance(broker: VirtualBroker) -> None:
    (member,) = joined_group(broker, 1, instance_id="i")
    with FailingAppends(broker):
        member.send_sync({member.member_id: b"mine"})
        assert member.client.response().message.error_code == FAILED
    assert member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_failed_append_commits_no_offset_and_creates_no_group(topic: Topic, broker: VirtualBroker) -> None:
    with FailingAppends(broker):
        assert commit_code(broker.client().call(commit_request(), 9)) == FAILED
    groups = broker.broker.groups
    assert (groups.groups, dict(groups.offsets.of_group("group"))) == ({}, {})


def test_failed_append_leaves_no_pending_transactional_offset(topic: Topic, broker: VirtualBroker) -> None:
    producer = begun(broker, NEW)
    with FailingAppends(broker):
        assert producer.commit_offset("group", 3) == FAILED
    groups = broker.broker.groups
    assert (groups.groups, list(groups.offsets.unstable("group"))) == ({}, [])


def _delete_group(broker: VirtualBroker) -> int:
    code: int = broker.client().call(DeleteGroupsRequest(groups_names=["group"]), 2).results[0].error_code
    return code


def _delete_offset(broker: VirtualBroker) -> int:
    code: int = broker.client().call(delete_offsets_request(), 0).error_code
    return code


@pytest.mark.parametrize("delete", [_delete_group, _delete_offset], ids=["group", "offset"])
def test_failed_append_deletes_nothing(broker: VirtualBroker, delete: Callable[[VirtualBroker], int]) -> None:
    broker.topic()
    broker.client().call(commit_request(), 9)
    with FailingAppends(broker):
        assert delete(broker) == FAILED
    groups = broker.broker.groups
    assert (list(groups.groups), list(groups.offsets.of_group("group"))) == (["group"], [("t", 0)])
    assert delete(broker) == ErrorCode.NONE
    assert list(groups.offsets.of_group("group")) == []


def test_expired_offset_is_removed_once_its_tombstone_can_be_appended() -> None:
    broker = broker_with_topic("offsets.retention.minutes=1", "offsets.retention.check.interval.ms=60000")
    broker.client().call(commit_request(), 9)
    groups = broker.broker.groups
    with FailingAppends(broker):
        broker.advance(60_000)
        assert list(groups.offsets.of_group("group")) == [("t", 0)]
    broker.advance(60_000)
    assert groups.groups == {}


def test_failed_append_adds_no_member_to_a_consumer_group() -> None:
    broker = broker_with_topic(AT_ONCE, partitions=2)
    first, second = ConsumerMember(broker, "a"), ConsumerMember(broker, "b")
    with FailingAppends(broker):
        assert first.join().error_code == FAILED
    assert broker.broker.groups.groups == {}
    first.join()
    epoch = consumer_group(broker).group_epoch
    with FailingAppends(broker):
        assert second.join().error_code == FAILED
    group = consumer_group(broker)
    assert (list(group.members), group.group_epoch) == (["a"], epoch)
    second.join()
    converge(first, second)
    assert (first.partitions, second.partitions) == ({"t": {0}}, {"t": {1}})


@pytest.mark.parametrize("epoch", [-1, -2], ids=["permanently", "temporarily"])
def test_failed_append_removes_no_leaving_member(epoch: int) -> None:
    broker = broker_with_topic(AT_ONCE)
    member = joined(ConsumerMember(broker, "a", instance_id="i"))
    known = consumer_group(broker).members["a"]
    with FailingAppends(broker):
        assert member.send(member_epoch=epoch).error_code == FAILED
    assert consumer_group(broker).members["a"] == known
    assert member.heartbeat().error_code == ErrorCode.NONE


def test_failed_append_fails_leave_group_of_a_consumer_group() -> None:
    broker = broker_with_topic(AT_ONCE)
    joined(ConsumerMember(broker, "a", instance_id="i"))
    classic = Member(broker)
    classic.member_id = "a"
    with FailingAppends(broker):
        response = classic.leave()
    assert (response.error_code, response.members) == (FAILED, [])
    assert list(consumer_group(broker).members) == ["a"]


def test_failed_append_does_not_upgrade_a_classic_group() -> None:
    broker = broker_with_topic()
    (member,) = joined_group(broker, 1)
    member.send_sync({member.member_id: b"\0\0\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\xff\xff\xff\xff"})
    member.client.take_responses()
    with FailingAppends(broker):
        assert ConsumerMember(broker, "a").join().error_code == FAILED
    assert classic_group(broker).state is STABLE
    assert member.heartbeat() == ErrorCode.NONE
