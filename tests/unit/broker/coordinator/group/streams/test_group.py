"""Streams groups in other APIs: offset commit and fetch, list, describe and delete, and other protocols."""

from sluice.broker.coordinator.group.classic.group import ClassicGroup
from sluice.protocol.apis.list_groups import ListGroupsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.coordinators import reload_groups
from tests.support.group_members import joined
from tests.support.groups import Member, commit_code, commit_request, delete_offsets_request
from tests.support.streams_groups import AT_ONCE, StreamsMember, stateless, streams_group
from tests.support.virtual_broker import VirtualBroker, broker_with_topic


def make_broker(*overrides: str) -> VirtualBroker:
    return broker_with_topic(*AT_ONCE, *overrides, partitions=4)


def new_member(broker: VirtualBroker) -> StreamsMember:
    return joined(StreamsMember(broker, "m", topology=stateless()))


def commit(member: StreamsMember) -> None:
    member.client.call(commit_request(member_id="m", generation_id_or_member_epoch=member.epoch), 9)


def delete_offset(broker: VirtualBroker) -> int:
    response = broker.client().call(delete_offsets_request(), 0)
    assert not response.error_code
    return commit_code(response)


def test_offsets_are_deleted_without_members() -> None:
    broker = make_broker()
    member = new_member(broker)
    commit(member)
    assert delete_offset(broker) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    member.leave()
    assert delete_offset(broker) == 0


def test_offsets_of_input_topics_do_not_expire() -> None:
    broker = make_broker("offsets.retention.minutes=1", "offsets.retention.check.interval.ms=1000",
                         "group.streams.max.session.timeout.ms=600000", "group.streams.session.timeout.ms=600000",
                         "connections.max.idle.ms=-1")  # fmt: skip
    member = new_member(broker)
    commit(member)
    broker.advance(70_000)
    assert broker.broker.groups.offsets.of_group("group")
    member.leave()
    broker.advance(2_000)
    assert "group" not in broker.broker.groups.groups


def test_groups_are_listed_by_state_and_type() -> None:
    broker = make_broker()
    new_member(broker)
    for types, states, count in ((["streams"], ["Stable"], 1), (["consumer"], [], 0), ([], ["Empty"], 0)):
        groups = broker.client().call(ListGroupsRequest(types_filter=types, states_filter=states), 5).groups
        assert len(groups) == count
    [group] = broker.client().call(ListGroupsRequest(), 5).groups
    assert (group.protocol_type, group.group_state, group.group_type) == ("streams", "Stable", "streams")


def test_classic_members_join_only_an_empty_group() -> None:
    broker = make_broker()
    member = new_member(broker)
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
    new_member(broker)
    assert streams_group(broker).members.keys() == {"m"}
