"""LeaveGroup: each member gets its own result."""

import pytest

from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.errors import ErrorCode
from tests.support.groups import Member, classic_group, settled_group, stable_group
from tests.support.virtual_broker import VirtualBroker

LEAVING = {
    "member": ("group", "member", ErrorCode.NONE),
    "unknown member id": ("group", "unknown", ErrorCode.UNKNOWN_MEMBER_ID),
    "empty member id": ("group", "", ErrorCode.UNKNOWN_MEMBER_ID),
    "unknown group": ("other", "member", ErrorCode.UNKNOWN_MEMBER_ID),
}


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(("group_id", "member_id", "code"), LEAVING.values(), ids=LEAVING)
def test_leave_returns_a_result_per_member(version: int, group_id: str, member_id: str, code: ErrorCode) -> None:
    broker = VirtualBroker()
    stable_group(broker)
    request = LeaveGroupRequest(
        group_id=group_id, member_id=member_id, members=[MemberIdentity(member_id=member_id, reason="because")]
    )
    response = broker.client().call(request, version)
    if version < 3:
        assert response.error_code == code
    else:
        assert response.error_code == 0
        assert [(member.member_id, member.error_code) for member in response.members] == [(member_id, code)]


@pytest.mark.parametrize("version", range(6))
def test_empty_group_id_rejects_the_whole_request(version: int) -> None:
    request = LeaveGroupRequest(group_id="", members=[MemberIdentity(member_id="a")])
    response = VirtualBroker().client().call(request, version)
    assert (response.error_code, response.members) == (ErrorCode.INVALID_GROUP_ID, [])


def test_members_leave_by_member_id_or_instance_id(broker: VirtualBroker) -> None:
    remaining, dynamic = Member(broker), Member(broker)
    static, fenced = Member(broker, instance_id="s"), Member(broker, instance_id="f")
    members = [remaining, dynamic, static, fenced]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    for member in members:
        member.joined()
    leaving = [
        MemberIdentity(member_id=dynamic.member_id),
        MemberIdentity(member_id="", group_instance_id="s"),
        MemberIdentity(member_id="another", group_instance_id="f"),
        MemberIdentity(member_id="", group_instance_id="unknown"),
    ]
    response = broker.client().call(LeaveGroupRequest(group_id="group", members=leaving), 5)
    assert [(member.member_id, member.group_instance_id, member.error_code) for member in response.members] == [
        (dynamic.member_id, None, ErrorCode.NONE),
        ("", "s", ErrorCode.NONE),
        ("another", "f", ErrorCode.FENCED_INSTANCE_ID),
        ("", "unknown", ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert list(classic_group(broker).members) == [remaining.member_id, fenced.member_id]


def test_leave_of_unknown_members_starts_no_rebalance(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1)
    broker.client().call(LeaveGroupRequest(group_id="group", members=[MemberIdentity(member_id="unknown")]), 5)
    broker.client().call(LeaveGroupRequest(group_id="group", members=[]), 5)
    assert member.heartbeat() == ErrorCode.NONE


def test_pending_member_id_may_leave(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1)
    pending = Member(broker)
    pending.member_id = pending.client.call(pending.join_request(), 9).member_id
    # The leader's join starts a rebalance that waits for the pending member.
    member.client.send(member.join_request(), 9)
    assert member.client.responses == []
    assert pending.leave().members[0].error_code == ErrorCode.NONE
    assert member.joined().generation_id == 2
