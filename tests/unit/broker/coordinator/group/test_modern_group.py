"""What consumer, share and Streams groups have in common: unknown groups and members, full groups, and commits."""

from collections.abc import Callable
from typing import Any

import pytest

from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.consumer.member import ClassicMetadata
from sluice.broker.coordinator.group.consumer.member import ConsumerMember as KnownConsumer
from sluice.broker.coordinator.group.group import Commit, NewOffset
from sluice.broker.coordinator.group.streams.group import StreamsGroup
from sluice.broker.coordinator.group.streams.member import AssignedTasks
from sluice.broker.coordinator.group.streams.member import StreamsMember as KnownStreams
from sluice.broker.coordinator.group.streams.topology import Topology
from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.describe_groups import DescribeGroupsRequest
from sluice.protocol.apis.streams_group_heartbeat import Subtopology
from sluice.protocol.errors import ErrorCode
from tests.support import consumer_groups, share_groups, streams_groups
from tests.support.coordinators import reload_groups
from tests.support.groups import commit_code, commit_request, fetch_request, fetched, stable_group
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

STALE, UNKNOWN, ILLEGAL = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION
NewMember = Callable[[VirtualBroker, str], Any]


def streams_member(broker: VirtualBroker, member_id: str) -> streams_groups.StreamsMember:
    return streams_groups.StreamsMember(broker, member_id, topology=streams_groups.stateless())


MEMBERS: dict[str, NewMember] = {
    "consumer": consumer_groups.ConsumerMember,
    "share": share_groups.ShareMember,
    "streams": streams_member,
}

STATIC = ["consumer", "streams"]  # group types with static members


def make_broker(*overrides: str) -> VirtualBroker:
    at_once = (consumer_groups.AT_ONCE, share_groups.AT_ONCE, *streams_groups.AT_ONCE)
    broker = broker_with_topic(*at_once, *overrides, partitions=4)
    vars(broker.broker)["share_persister"] = share_groups.MemoryPersister()
    return broker


def send(member: Any, epoch: int) -> tuple[int, str]:
    """Send a heartbeat in this epoch, and return the error."""
    response = getattr(member, "send", member.heartbeat)(member_epoch=epoch) if epoch else member.join()
    return response.error_code, response.error_message


@pytest.mark.parametrize("group_type", MEMBERS)
@pytest.mark.parametrize(("epoch", "found"), [(1, "{} group group not found."), (-1, "Group group not found.")])
def test_unknown_group_is_rejected(group_type: str, epoch: int, found: str) -> None:
    error = send(MEMBERS[group_type](make_broker(), "m"), epoch)
    assert error == (ErrorCode.GROUP_ID_NOT_FOUND, found.format(group_type.capitalize()))


@pytest.mark.parametrize(
    ("group_type", "epochs"), [("consumer", (1, -1)), ("share", (0, 1, -1)), ("streams", (0, 1, -1))]
)
def test_group_of_another_type_is_rejected(group_type: str, epochs: tuple[int, ...]) -> None:
    broker = make_broker()
    stable_group(broker)
    error = (ErrorCode.GROUP_ID_NOT_FOUND, f"Group group is not a {group_type} group.")
    assert [send(MEMBERS[group_type](broker, "m"), epoch) for epoch in epochs] == [error] * len(epochs)


@pytest.mark.parametrize("group_type", MEMBERS)
def test_full_group_rejects_new_members_only(group_type: str) -> None:
    broker = make_broker(f"group.{group_type}.max.size=1")
    one, two = (MEMBERS[group_type](broker, name) for name in ("one", "two"))
    assert one.join().error_code == 0
    full = f"The {group_type} group has reached its maximum capacity of 1 members."
    assert send(two, 0) == (ErrorCode.GROUP_MAX_SIZE_REACHED, full)
    assert one.heartbeat().error_code == one.join().error_code == 0


@pytest.mark.parametrize("group_type", MEMBERS)
@pytest.mark.parametrize("epoch", [1, -1], ids=["stays", "leaves"])
def test_unknown_member_is_rejected(group_type: str, epoch: int) -> None:
    broker = make_broker()
    MEMBERS[group_type](broker, "one").join()
    assert send(MEMBERS[group_type](broker, "two"), epoch) == (UNKNOWN, "Member two is not a member of group group.")


# -- static members ----------------------------------------------------------------------------------------------------


def static(group_type: str, broker: VirtualBroker, member_id: str) -> Any:
    member = MEMBERS[group_type](broker, member_id)
    member.instance_id = "i"
    return member


@pytest.mark.parametrize("group_type", STATIC)
def test_instance_id_has_one_member(group_type: str) -> None:
    broker = make_broker()
    one, two = (static(group_type, broker, name) for name in ("one", "two"))
    one.join()
    in_use = "cannot join the group because the instance id is owned by one member."
    assert send(two, 0) == (ErrorCode.UNRELEASED_INSTANCE_ID, f"Static member two with instance id i {in_use}")
    one.leave(-2)
    assert send(two, 0)[0] == 0
    fenced = (ErrorCode.FENCED_INSTANCE_ID, "Static member one with instance id i was fenced by member two.")
    assert [send(one, epoch) for epoch in (2, -1, -2)] == [fenced] * 3


@pytest.mark.parametrize("group_type", STATIC)
def test_unknown_instance_id_is_rejected(group_type: str) -> None:
    broker = make_broker()
    MEMBERS[group_type](broker, "one").join()
    errors = [send(static(group_type, broker, "one"), epoch) for epoch in (1, 2, -1, -2)]
    assert errors == [(UNKNOWN, "Instance id i is unknown.")] * 4


@pytest.mark.parametrize("group_type", STATIC)
@pytest.mark.parametrize(("epoch", "after_ms"), [(-1, 0), (-2, 45_000)], ids=["permanently", "until its session ends"])
def test_static_member_leaves(group_type: str, epoch: int, after_ms: int) -> None:
    broker = make_broker()
    member = static(group_type, broker, "m")
    member.join()
    assert member.leave(epoch).member_epoch == epoch
    group = broker.broker.groups.groups["group"]
    if after_ms:
        broker.advance(after_ms - 1)
        assert not group.is_empty
        broker.advance(1)
    assert isinstance(group, ConsumerGroup | StreamsGroup)
    assert (group.state_name, group.static_members) == ("Empty", {})


# -- offset commits ----------------------------------------------------------------------------------------------------


def groups(topic: Topic) -> list[ConsumerGroup | StreamsGroup]:
    """Return groups whose member "m" is in epoch 9; it owns t-0 since epoch 5 and must give up t-1, owned since 7.

    The member of the last one has the classic protocol.
    """
    consumer, streams, classic = ConsumerGroup("group"), StreamsGroup("group"), ConsumerGroup("group")
    owned: dict[str, Any] = {"assigned": {topic.topic_id: {0: 5}}, "pending_revocation": {topic.topic_id: {1: 7}}}
    consumer.put(KnownConsumer("m", 9, 8, **owned))
    classic.put(KnownConsumer("m", 9, 8, **owned, classic=ClassicMetadata(1, ())))
    tasks, lost = AssignedTasks({("0", 0): 5}), AssignedTasks({("0", 1): 7})
    streams.put(KnownStreams("m", 9, 8, assigned=tasks, pending_revocation=lost))
    streams.topology = Topology(1, {"0": Subtopology(subtopology_id="0", source_topics=["t"])})
    return [consumer, streams, classic]


def commit(topic: Topic, partition: int = 0, **fields: Any) -> Commit:
    known: dict[str, Any] = {
        "group_id": "group",
        "member_id": "m",
        "group_instance_id": None,
        "generation_id": 9,
        "version": 9,
        "offsets": [NewOffset(topic, partition, 1, -1, "")],
    }
    return Commit(**(known | fields))


COMMITS = {
    "current epoch": ({}, 0, 0),
    "current epoch, other partition": ({"partition": 3}, 0, 0),
    "future epoch": ({"generation_id": 10}, STALE, ILLEGAL),
    "first epoch of the partition": ({"generation_id": 5}, 0, 0),
    "epoch before the partition": ({"generation_id": 4}, STALE, ILLEGAL),
    "first epoch of a partition to revoke": ({"generation_id": 7, "partition": 1}, 0, 0),
    "epoch before a partition to revoke": ({"generation_id": 6, "partition": 1}, STALE, ILLEGAL),
    "earlier epoch, other partition": ({"generation_id": 8, "partition": 3}, STALE, ILLEGAL),
    "unknown member": ({"member_id": "x"}, UNKNOWN, UNKNOWN),
    "no member": ({"member_id": "", "generation_id": -1}, UNKNOWN, UNKNOWN),
    "transaction without member": ({"member_id": "", "generation_id": -1, "transactional": True}, 0, 0),
    "transaction, future epoch": ({"generation_id": 10, "transactional": True}, STALE, ILLEGAL),
    "version without member epochs": ({"version": 8}, ErrorCode.UNSUPPORTED_VERSION, 0),
    "transaction, version 0": ({"version": 0, "transactional": True}, 0, 0),
}


@pytest.mark.parametrize(("fields", "code", "classic_code"), COMMITS.values(), ids=COMMITS)
def test_commit_requires_valid_member_and_epoch(fields: dict[str, Any], code: int, classic_code: int) -> None:
    topic = make_broker().partition().topic
    codes = [group.commit_error(commit(topic, **fields)) for group in groups(topic)]
    assert codes == [code, code, classic_code]


def test_one_invalid_partition_rejects_the_whole_commit() -> None:
    topic = make_broker().partition().topic
    offsets = [NewOffset(topic, index, 1, -1, "") for index in (0, 2)]
    codes = [group.commit_error(commit(topic, generation_id=5, offsets=offsets)) for group in groups(topic)]
    assert codes == [STALE, STALE, ILLEGAL]


@pytest.mark.parametrize("group", [ConsumerGroup("group"), StreamsGroup("group")], ids=["consumer", "streams"])
def test_commit_without_member_id_is_accepted_for_an_empty_group(group: ConsumerGroup | StreamsGroup) -> None:
    topic = make_broker().partition().topic
    assert group.commit_error(commit(topic, member_id="", generation_id=-1)) == 0
    assert group.commit_error(commit(topic)) == UNKNOWN


def test_earlier_epochs_of_a_streams_group_need_its_topology_and_topics() -> None:
    broker = make_broker()
    topic = broker.partition().topic
    group = groups(topic)[1]
    assert isinstance(group, StreamsGroup)
    assert group.commit_error(commit(broker.topic("u"), generation_id=5)) == STALE
    group.topology = None
    assert group.commit_error(commit(topic, generation_id=5)) == STALE


OFFSET_FETCHES = {
    "no member": (None, -1, 0, 0),
    "current epoch": ("m", 9, 0, 0),
    "earlier epoch": ("m", 8, STALE, ILLEGAL),
    "unknown member": ("x", 9, UNKNOWN, UNKNOWN),
    "epoch without member id": (None, 9, UNKNOWN, UNKNOWN),
}


@pytest.mark.parametrize(("member_id", "epoch", "code", "classic_code"), OFFSET_FETCHES.values(), ids=OFFSET_FETCHES)
def test_offset_fetch_requires_valid_member_and_epoch(
    member_id: str | None, epoch: int, code: int, classic_code: int
) -> None:
    found = groups(make_broker().partition().topic)
    assert [group.offset_fetch_error(member_id, epoch) for group in found] == [code, code, classic_code]


@pytest.mark.parametrize("group_type", STATIC)
def test_member_commits_and_fetches_in_its_epoch(group_type: str) -> None:
    broker = make_broker()
    member = MEMBERS[group_type](broker, "m")
    member.join()
    client = broker.client()
    for epoch, code in ((member.epoch, 0), (member.epoch + 1, STALE)):
        request = commit_request(42, member_id="m", generation_id_or_member_epoch=epoch)
        assert commit_code(client.call(request, 9)) == code
    response = client.call(fetch_request(0, member_id="m", member_epoch=member.epoch), 9)
    assert fetched(response) == {("t", 0): (42, 0)}
    [group] = client.call(fetch_request(0, member_id="m", member_epoch=1), 9).groups
    assert group.error_code == STALE


# -- describe and delete -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group_type", MEMBERS)
@pytest.mark.parametrize(("version", "code"), [(5, 0), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_describe_groups_reports_the_group_as_dead(group_type: str, version: int, code: int) -> None:
    broker = make_broker()
    MEMBERS[group_type](broker, "m").join()
    [group] = broker.client().call(DescribeGroupsRequest(groups=["group"]), version).groups
    assert (group.group_state, group.error_code) == ("Dead", code)
    if code:
        assert group.error_message == "Group group is not a classic group."


@pytest.mark.parametrize("group_type", MEMBERS)
def test_group_is_deleted_only_without_members(group_type: str) -> None:
    broker = make_broker()
    member = MEMBERS[group_type](broker, "m")
    member.join()

    def delete() -> int:
        [result] = broker.client().call(DeleteGroupsRequest(groups_names=["group"]), 2).results
        code: int = result.error_code
        return code

    assert delete() == ErrorCode.NON_EMPTY_GROUP
    member.leave()
    assert delete() == 0
    reload_groups(broker)
    assert broker.broker.groups.groups == {}, "the tombstones of the group"
    assert delete() == ErrorCode.GROUP_ID_NOT_FOUND
