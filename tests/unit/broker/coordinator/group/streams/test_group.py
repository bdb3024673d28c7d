"""Streams groups in other APIs: offset commit and fetch, list, describe and delete, and other protocols."""

from sluice.broker.coordinator.group.classic.group import ClassicGroup
from sluice.protocol.apis.list_groups import ListGroupsRequest
from sluice.protocol.apis.offset_commit import OffsetCommitRequest
from sluice.protocol.errors import ErrorCode
from tests.support.coordinators import reload_groups
from tests.support.groups import Member, commit_request, delete_offsets_request
from tests.support.streams_groups import AT_ONCE, StreamsMember, stateless, streams_group
from tests.support.virtual_broker import VirtualBroker

STALE, UNKNOWN = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID


def make_broker(*overrides: str) -> VirtualBroker:
    broker = VirtualBroker(*AT_ONCE, *overrides)
    broker.topic("t", 4)
    return broker


def joined(broker: VirtualBroker) -> StreamsMember:
    member = StreamsMember(broker, "m", topology=stateless())
    assert not member.join().error_code
    return member


def committed(epoch: int) -> OffsetCommitRequest:
    return commit_request(member_id="m", generation_id_or_member_epoch=epoch)


def delete_offset(broker: VirtualBroker) -> int:
    response = broker.client().call(delete_offsets_request(), 0)
    assert not response.error_code
    code: int = response.topics[0].partitions[0].error_code
    return code


def test_offsets_are_deleted_without_members() -> None:
    broker = make_broker()
    member = joined(broker)
    client = broker.client()
    client.call(committed(member.epoch), 9)
    assert delete_offset(broker) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    member.leave()
    assert delete_offset(broker) == 0


def test_offsets_of_input_topics_do_not_expire() -> None:
    broker = make_broker("offsets.retention.minutes=1", "offsets.retention.check.interval.ms=1000",
                         "group.streams.max.session.timeout.ms=600000", "group.streams.session.timeout.ms=600000",
                         "connections.max.idle.ms=-1")  # fmt: skip
    member = joined(broker)
    broker.client().call(committed(member.epoch), 9)
    broker.advance(70_000)
    assert broker.broker.groups.offsets.of_group("group")
    member.leave()
    broker.advance(2_000)
    assert "group" not in broker.broker.groups.groups


def test_groups_are_listed_by_state_and_type() -> None:
    broker = make_broker()
    joined(broker)
    for types, states, count in ((["streams"], ["Stable"], 1), (["consumer"], [], 0), ([], ["Empty"], 0)):
        groups = broker.client().call(ListGroupsRequest(types_filter=types, states_filter=states), 5).groups
        assert len(groups) == count
    [group] = broker.client().call(ListGroupsRequest(), 5).groups
    assert (group.protocol_type, group.group_state, group.group_type) == ("streams", "Stable", "streams")


def test_classic_members_join_only_an_empty_group() -> None:
    broker = make_broker()
    member = joined(broker)
    classic = Member(broker, version=3)
    classic.send_join()
    assert classic.joined().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    member.leave()
    classic.send_join()
    broker.advance(3_000)
    assert not classic.joined().error_code
    reload_groups(broker)
    assert isinstance(broker.broker.groups.groups["group"], ClassicGroup)


def test_an_empty_classic_group_becomes_a_streams_group() -> None:
    broker = make_broker()
    broker.broker.groups.create_classic("group")
    joined(broker)
    assert streams_group(broker).members.keys() == {"m"}
