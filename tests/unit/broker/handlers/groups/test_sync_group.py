"""SyncGroup: everyone gets its assignment when the leader has sent it, and who is refused."""

from typing import Any

import pytest

from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.errors import ErrorCode
from tests.support.groups import Member, settled_group, stable_group
from tests.support.virtual_broker import VirtualBroker

VERSIONS = range(6)
OLD = {"protocol_type": None, "protocol_name": None}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"group_id": ""}, ErrorCode.INVALID_GROUP_ID, id="group without a name"),
        pytest.param({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID, id="group that is not there"),
        pytest.param({"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID, id="id nobody has"),
        pytest.param({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION, id="generation before"),
        pytest.param({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION, id="generation to come"),
    ],
)
def test_who_is_no_member_of_this_generation_is_told_so(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    broker = VirtualBroker()
    stable_group(broker)
    member = Member(broker)
    member.member_id, member.generation_id = "member", 1
    assert member.client.ask(member.sync_request(**fields), version).error_code == code


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"protocol_type": "connect"}, id="another type"),
        pytest.param({"protocol_name": "sticky"}, id="another protocol"),
        pytest.param({"protocol_type": None}, id="no type"),
        pytest.param({"protocol_name": None}, id="no protocol"),
    ],
)
def test_from_version_5_on_the_protocol_must_be_named_and_right(fields: dict[str, Any]) -> None:
    broker = VirtualBroker()
    stable_group(broker)
    member = Member(broker)
    member.member_id, member.generation_id = "member", 1
    response = member.client.ask(member.sync_request(**fields), 5)
    assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert member.client.ask(member.sync_request(**OLD), 4).error_code == 0


def test_the_others_wait_for_the_leader() -> None:
    broker = VirtualBroker()
    members = [Member(broker) for _ in range(3)]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    for member in members:
        member.joined()
    members[1].send_sync()
    broker.advance(1_000)
    assert members[1].client.answers == []
    members[0].send_sync({members[0].member_id: b"zero", members[1].member_id: b"one"})
    for member, assignment in zip(members[:2], (b"zero", b"one"), strict=True):
        answer = member.client.answer()
        assert (answer.message.error_code, answer.message.assignment) == (0, assignment)
        assert (answer.message.protocol_type, answer.message.protocol_name) == ("consumer", "range")
        assert answer.at_ms == 10_000 + 1_000
    # Who comes later gets it at once; what the leader said nothing of is empty.
    members[2].send_sync()
    assert members[2].client.answer().message.assignment == b""


def test_a_member_that_asks_again_gets_its_assignment_again() -> None:
    member, _ = settled_group(VirtualBroker(), 2)
    for _ in range(2):
        member.send_sync()
        assert member.client.answer().message.assignment == member.member_id.encode()


def test_while_others_join_there_is_no_assignment() -> None:
    broker = VirtualBroker()
    members = settled_group(broker, 2)
    newcomer = Member(broker)
    newcomer.send_join()
    members[0].send_sync()
    assert members[0].client.answer().message.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_whoever_waits_when_another_joins_must_join_again() -> None:
    broker = VirtualBroker()
    members = [Member(broker) for _ in range(2)]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    for member in members:
        member.joined()
    members[1].send_sync()
    newcomer = Member(broker, version=3)
    newcomer.send_join()
    assert members[1].client.answer().message.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_whoever_is_removed_while_it_waits_is_told_so() -> None:
    broker = VirtualBroker()
    members = [Member(broker) for _ in range(2)]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    for member in members:
        member.joined()
    members[1].send_sync()
    leaving = [MemberIdentity(member_id=members[1].member_id)]
    broker.client().ask(LeaveGroupRequest(group_id="group", members=leaving), 5)
    assert members[1].client.answer().message.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_assignment_too_large_to_be_written_down_is_an_error_for_all_and_they_join_again() -> None:
    broker = VirtualBroker()
    members = [Member(broker) for _ in range(2)]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    for member in members:
        member.joined()
    members[1].send_sync()
    members[0].send_sync({members[0].member_id: bytes(2**20)})
    for member in members:
        assert member.client.answer().message.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
