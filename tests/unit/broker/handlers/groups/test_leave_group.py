"""LeaveGroup: members leave, one by one or together, and are told each for itself."""

import pytest

from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.errors import ErrorCode
from tests.support.groups import Member, classic_group, settled_group, stable_group
from tests.support.virtual_broker import VirtualBroker


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(
    ("group_id", "member_id", "code"),
    [
        pytest.param("group", "member", ErrorCode.NONE, id="a member"),
        pytest.param("group", "who", ErrorCode.UNKNOWN_MEMBER_ID, id="an id nobody has"),
        pytest.param("group", "", ErrorCode.UNKNOWN_MEMBER_ID, id="no id"),
        pytest.param("other", "member", ErrorCode.UNKNOWN_MEMBER_ID, id="a group that is not there"),
    ],
)
def test_a_member_is_told_whether_it_left(version: int, group_id: str, member_id: str, code: ErrorCode) -> None:
    broker = VirtualBroker()
    stable_group(broker)
    request = LeaveGroupRequest(
        group_id=group_id, member_id=member_id, members=[MemberIdentity(member_id=member_id, reason="because")]
    )
    response = broker.client().ask(request, version)
    if version < 3:
        assert response.error_code == code
    else:
        assert response.error_code == 0
        assert [(one.member_id, one.error_code) for one in response.members] == [(member_id, code)]


@pytest.mark.parametrize("version", range(6))
def test_a_group_without_a_name_is_refused_as_a_whole(version: int) -> None:
    request = LeaveGroupRequest(group_id="", members=[MemberIdentity(member_id="a")])
    response = VirtualBroker().client().ask(request, version)
    assert (response.error_code, response.members) == (ErrorCode.INVALID_GROUP_ID, [])


def test_many_may_be_removed_at_once_and_static_ones_by_their_instance_id() -> None:
    broker = VirtualBroker()
    stays, dynamic = Member(broker), Member(broker)
    static, fenced = Member(broker, instance_id="s"), Member(broker, instance_id="f")
    members = [stays, dynamic, static, fenced]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    for member in members:
        member.joined()
    leaving = [
        MemberIdentity(member_id=dynamic.member_id),
        MemberIdentity(member_id="", group_instance_id="s"),
        MemberIdentity(member_id="another", group_instance_id="f"),
        MemberIdentity(member_id="", group_instance_id="nobody"),
    ]
    response = broker.client().ask(LeaveGroupRequest(group_id="group", members=leaving), 5)
    assert [(one.member_id, one.group_instance_id, one.error_code) for one in response.members] == [
        (dynamic.member_id, None, ErrorCode.NONE),
        ("", "s", ErrorCode.NONE),
        ("another", "f", ErrorCode.FENCED_INSTANCE_ID),
        ("", "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert list(classic_group(broker).members) == [stays.member_id, fenced.member_id]


def test_nobody_rebalances_where_nobody_left() -> None:
    broker = VirtualBroker()
    (member,) = settled_group(broker, 1)
    broker.client().ask(LeaveGroupRequest(group_id="group", members=[MemberIdentity(member_id="who")]), 5)
    broker.client().ask(LeaveGroupRequest(group_id="group", members=[]), 5)
    assert member.heartbeat() == ErrorCode.NONE


def test_an_id_that_was_given_out_may_be_given_back() -> None:
    broker = VirtualBroker()
    (member,) = settled_group(broker, 1)
    pending = Member(broker)
    pending.member_id = pending.client.ask(pending.join_request(), 9).member_id
    member.client.send(member.join_request(), 9)  # leads, and so begins a round that waits for the other
    assert member.client.answers == []
    assert pending.leave().members[0].error_code == ErrorCode.NONE
    assert member.joined().generation_id == 2
