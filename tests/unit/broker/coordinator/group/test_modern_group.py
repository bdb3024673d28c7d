"""What consumer, share and Streams groups have in common: unknown groups and members, full groups, and commits."""

from collections.abc import Callable
from typing import Any

import pytest

from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.consumer.member import ClassicMetadata
from sluice.broker.coordinator.group.consumer.member import ConsumerMember as KnownConsumer
from sluice.broker.coordinator.group.group import Commit, NewOffset
from sluice.broker.coordinator.group.streams.group import StreamsGroup
from sluice.broker.coordinator.group.streams.member import StreamsMember as KnownStreams
from sluice.broker.coordinator.group.streams.tasks import AssignedTasks
from sluice.broker.coordinator.group.streams.topology import Subtopology, Topology
from sluice.broker.metadata.topic import Topic
from sluice.protocol.errors import ErrorCode
from tests.support import consumer_groups, share_groups, streams_groups
from tests.support.groups import stable_group
from tests.support.virtual_broker import VirtualBroker

STALE, UNKNOWN, ILLEGAL = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION
NewMember = Callable[[VirtualBroker, str], Any]


def streams_member(broker: VirtualBroker, member_id: str) -> streams_groups.StreamsMember:
    return streams_groups.StreamsMember(broker, member_id, topology=streams_groups.stateless())


MEMBERS: dict[str, NewMember] = {
    "consumer": consumer_groups.ConsumerMember,
    "share": share_groups.ShareMember,
    "streams": streams_member,
}


def make_broker(*overrides: str) -> VirtualBroker:
    broker = VirtualBroker(consumer_groups.AT_ONCE, share_groups.AT_ONCE, *streams_groups.AT_ONCE, *overrides)
    broker.topic("t", 4)
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


# -- offset commits ----------------------------------------------------------------------------------------------------


def groups(topic: Topic) -> list[ConsumerGroup | StreamsGroup]:
    """Return groups whose member "m" is in epoch 9; it owns t-0 since epoch 5 and must give up t-1, owned since 7.

    The member of the last one has the classic protocol.
    """
    consumer, streams, classic = ConsumerGroup("group"), StreamsGroup("group"), ConsumerGroup("group")
    owned: dict[str, Any] = {"assigned": {topic.topic_id: {0: 5}}, "pending_revocation": {topic.topic_id: {1: 7}}}
    consumer.put(KnownConsumer("m", 9, 8, **owned))
    classic.put(KnownConsumer("m", 9, 8, **owned, classic=ClassicMetadata(1, ())))
    tasks: dict[str, Any] = {
        "assigned": AssignedTasks({("0", 0): 5}),
        "pending_revocation": AssignedTasks({("0", 1): 7}),
    }
    streams.put(KnownStreams("m", 9, 8, **tasks))
    streams.topology = Topology(1, {"0": Subtopology("0", ("t",))})
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


@pytest.mark.parametrize(
    ("fields", "code", "classic_code"),
    [
        pytest.param({}, 0, 0, id="current epoch"),
        pytest.param({"partition": 3}, 0, 0, id="current epoch, other partition"),
        pytest.param({"generation_id": 10}, STALE, ILLEGAL, id="future epoch"),
        pytest.param({"generation_id": 5}, 0, 0, id="first epoch of the partition"),
        pytest.param({"generation_id": 4}, STALE, ILLEGAL, id="epoch before the partition"),
        pytest.param({"generation_id": 7, "partition": 1}, 0, 0, id="first epoch of a partition to revoke"),
        pytest.param({"generation_id": 6, "partition": 1}, STALE, ILLEGAL, id="epoch before a partition to revoke"),
        pytest.param({"generation_id": 8, "partition": 3}, STALE, ILLEGAL, id="earlier epoch, other partition"),
        pytest.param({"member_id": "x"}, UNKNOWN, UNKNOWN, id="unknown member"),
        pytest.param({"member_id": "", "generation_id": -1}, UNKNOWN, UNKNOWN, id="no member"),
        pytest.param(
            {"member_id": "", "generation_id": -1, "transactional": True}, 0, 0, id="transaction without member"
        ),
        pytest.param({"generation_id": 10, "transactional": True}, STALE, ILLEGAL, id="transaction, future epoch"),
        pytest.param({"version": 8}, ErrorCode.UNSUPPORTED_VERSION, 0, id="version without member epochs"),
        pytest.param({"version": 0, "transactional": True}, 0, 0, id="transaction, version 0"),
    ],
)
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


@pytest.mark.parametrize(
    ("member_id", "epoch", "code", "classic_code"),
    [
        pytest.param(None, -1, 0, 0, id="no member"),
        pytest.param("m", 9, 0, 0, id="current epoch"),
        pytest.param("m", 8, STALE, ILLEGAL, id="earlier epoch"),
        pytest.param("x", 9, UNKNOWN, UNKNOWN, id="unknown member"),
        pytest.param(None, 9, UNKNOWN, UNKNOWN, id="epoch without member id"),
    ],
)
def test_offset_fetch_requires_valid_member_and_epoch(
    member_id: str | None, epoch: int, code: int, classic_code: int
) -> None:
    found = groups(make_broker().partition().topic)
    assert [group.offset_fetch_error(member_id, epoch) for group in found] == [code, code, classic_code]
