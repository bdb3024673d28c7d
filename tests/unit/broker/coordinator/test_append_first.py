"""What is not written has not happened: every change of a group whose records the log does not take."""

from collections.abc import Callable

import pytest

from sluice.broker.coordinator.group.classic.group import EMPTY, STABLE
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, ConsumerMember, consumer_group, converge
from tests.support.groups import Member, classic_group, commit_code, commit_request, settled_group
from tests.support.transactions import NEW, begun
from tests.support.virtual_broker import VirtualBroker

FAILED = ErrorCode.UNKNOWN_SERVER_ERROR


class Shut:
    """While it is entered, __consumer_offsets takes no record."""

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


def test_a_classic_group_does_not_begin() -> None:
    broker = VirtualBroker()
    member = Member(broker, instance_id="i")
    with Shut(broker):
        member.send_join()
        assert member.joined().error_code == FAILED
    assert broker.broker.groups.groups == {}
    member.send_join()
    broker.advance(3_000)
    assert member.joined().error_code == ErrorCode.NONE


def test_an_empty_consumer_group_keeps_its_place() -> None:
    broker = VirtualBroker(AT_ONCE)
    broker.topic()
    gone = ConsumerMember(broker)
    gone.join()
    gone.leave()
    group = consumer_group(broker)
    member = Member(broker, instance_id="i")
    with Shut(broker):
        member.send_join()
        assert member.joined().error_code == FAILED
    assert broker.broker.groups.groups == {"group": group}


def test_a_static_member_does_not_come_back_and_who_had_its_place_keeps_it() -> None:
    broker = VirtualBroker()
    (member,) = settled_group(broker, 1, instance_id="i")
    again = Member(broker, instance_id="i")
    with Shut(broker):
        again.send_join(session_timeout_ms=20_000)
        answer = again.joined()
    assert (answer.error_code, answer.member_id, answer.generation_id) == (FAILED, "", 1)
    [known] = classic_group(broker).members.values()
    assert (known.member_id, known.session_timeout_ms) == (member.member_id, 10_000)
    assert member.heartbeat() == ErrorCode.NONE
    broker.advance(10_000)
    assert classic_group(broker).state is EMPTY


def test_a_generation_without_its_assignment_is_over() -> None:
    broker = VirtualBroker()
    member = Member(broker, instance_id="i")
    member.send_join()
    broker.advance(3_000)
    member.joined()
    with Shut(broker):
        member.send_sync({member.member_id: b"mine"})
        assert member.client.answer().message.error_code == FAILED
    assert member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_an_offset_is_not_committed_and_no_simple_group_begins() -> None:
    broker = VirtualBroker()
    broker.topic()
    with Shut(broker):
        assert commit_code(broker.client().ask(commit_request(), 9)) == FAILED
    groups = broker.broker.groups
    assert (groups.groups, dict(groups.offsets.of_group("group"))) == ({}, {})


def test_nothing_is_pending_in_a_transaction() -> None:
    broker = VirtualBroker()
    broker.topic()
    producer = begun(broker, NEW)
    with Shut(broker):
        assert producer.commit_offset("group", 3) == FAILED
    groups = broker.broker.groups
    assert (groups.groups, list(groups.offsets.unstable("group"))) == ({}, [])


def _delete_group(broker: VirtualBroker) -> int:
    code: int = broker.client().ask(DeleteGroupsRequest(groups_names=["group"]), 2).results[0].error_code
    return code


def _delete_offset(broker: VirtualBroker) -> int:
    topics = [OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])]
    code: int = broker.client().ask(OffsetDeleteRequest(group_id="group", topics=topics), 0).error_code
    return code


@pytest.mark.parametrize("delete", [_delete_group, _delete_offset], ids=["the group", "the offset"])
def test_what_is_deleted_stays(delete: Callable[[VirtualBroker], int]) -> None:
    broker = VirtualBroker()
    broker.topic()
    broker.client().ask(commit_request(), 9)
    with Shut(broker):
        assert delete(broker) == FAILED
    groups = broker.broker.groups
    assert (list(groups.groups), list(groups.offsets.of_group("group"))) == (["group"], [("t", 0)])
    assert delete(broker) == ErrorCode.NONE
    assert list(groups.offsets.of_group("group")) == []


def test_what_is_expired_goes_when_that_can_be_written() -> None:
    broker = VirtualBroker("offsets.retention.minutes=1", "offsets.retention.check.interval.ms=60000")
    broker.topic()
    broker.client().ask(commit_request(), 9)
    groups = broker.broker.groups
    with Shut(broker):
        broker.advance(60_000)
        assert list(groups.offsets.of_group("group")) == [("t", 0)]
    broker.advance(60_000)
    assert groups.groups == {}


def test_a_member_does_not_join_a_consumer_group() -> None:
    broker = VirtualBroker(AT_ONCE)
    broker.topic("t", partitions=2)
    first, second = ConsumerMember(broker, "a"), ConsumerMember(broker, "b")
    with Shut(broker):
        assert first.join().error_code == FAILED
    assert broker.broker.groups.groups == {}
    first.join()
    epoch = consumer_group(broker).group_epoch
    with Shut(broker):
        assert second.join().error_code == FAILED
    group = consumer_group(broker)
    assert (list(group.members), group.group_epoch) == (["a"], epoch)
    second.join()
    converge(first, second)
    assert (first.partitions, second.partitions) == ({"t": {0}}, {"t": {1}})


@pytest.mark.parametrize("epoch", [-1, -2], ids=["for good", "for a while"])
def test_a_member_does_not_leave_a_consumer_group(epoch: int) -> None:
    broker = VirtualBroker(AT_ONCE)
    broker.topic()
    member = ConsumerMember(broker, "a", instance_id="i")
    member.join()
    known = consumer_group(broker).members["a"]
    with Shut(broker):
        assert member.send(member_epoch=epoch).error_code == FAILED
    assert consumer_group(broker).members["a"] == known
    assert member.heartbeat().error_code == ErrorCode.NONE


def test_members_that_are_removed_stay_and_all_are_told_so() -> None:
    broker = VirtualBroker(AT_ONCE)
    broker.topic()
    member = ConsumerMember(broker, "a", instance_id="i")
    member.join()
    classic = Member(broker)
    classic.member_id = "a"
    with Shut(broker):
        answer = classic.leave()
    assert (answer.error_code, answer.members) == (FAILED, [])
    assert list(consumer_group(broker).members) == ["a"]


def test_a_classic_group_does_not_become_a_consumer_group() -> None:
    broker = VirtualBroker("group.initial.rebalance.delay.ms=0")
    broker.topic()
    member = Member(broker)
    member.send_join()
    broker.advance(10)
    member.joined()
    member.send_sync({member.member_id: b"\0\0\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\xff\xff\xff\xff"})
    member.client.take_answers()
    with Shut(broker):
        assert ConsumerMember(broker, "a").join().error_code == FAILED
    assert classic_group(broker).state is STABLE
    assert member.heartbeat() == ErrorCode.NONE
