"""SyncGroup: distribution of the leader's assignment, and validation."""

from typing import Any

import pytest

from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.errors import ErrorCode
from tests.support.groups import Member, joined_group, settled_group, stable_group
from tests.support.virtual_broker import VirtualBroker

NO_PROTOCOL = {"protocol_type": None, "protocol_name": None}


def stable_member(broker: VirtualBroker) -> Member:
    """Return the member of a stable group in generation 1."""
    stable_group(broker)
    member = Member(broker)
    member.member_id, member.generation_id = "member", 1
    return member


INVALID_SYNCS = {
    "empty group id": ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    "unknown group": ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
    "unknown member id": ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    "previous generation": ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
    "future generation": ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
}


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(("fields", "code"), INVALID_SYNCS.values(), ids=INVALID_SYNCS)
def test_invalid_group_member_or_generation_is_rejected(
    broker: VirtualBroker, version: int, fields: dict[str, Any], code: ErrorCode
) -> None:
    member = stable_member(broker)
    assert member.client.call(member.sync_request(**fields), version).error_code == code


INCONSISTENT_SYNCS = {
    "other protocol type": {"protocol_type": "connect"},
    "other protocol": {"protocol_name": "sticky"},
    "no protocol type": {"protocol_type": None},
    "no protocol": {"protocol_name": None},
}


@pytest.mark.parametrize("fields", INCONSISTENT_SYNCS.values(), ids=INCONSISTENT_SYNCS)
def test_version_5_requires_the_groups_protocol_type_and_name(broker: VirtualBroker, fields: dict[str, Any]) -> None:
    member = stable_member(broker)
    response = member.client.call(member.sync_request(**fields), 5)
    assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert member.client.call(member.sync_request(**NO_PROTOCOL), 4).error_code == 0


def test_followers_wait_for_the_leaders_assignment(broker: VirtualBroker) -> None:
    members = joined_group(broker, 3)
    members[1].send_sync()
    broker.advance(1_000)
    assert members[1].client.responses == []
    members[0].send_sync({members[0].member_id: b"zero", members[1].member_id: b"one"})
    for member, assignment in zip(members[:2], (b"zero", b"one"), strict=True):
        response = member.client.response()
        assert (response.message.error_code, response.message.assignment) == (0, assignment)
        assert (response.message.protocol_type, response.message.protocol_name) == ("consumer", "range")
        assert response.at_ms == 10_000 + 1_000
    # A later sync completes immediately; a member without an assignment gets an empty one.
    members[2].send_sync()
    assert members[2].client.response().message.assignment == b""


def test_repeated_sync_returns_the_same_assignment() -> None:
    member, _ = settled_group(VirtualBroker(), 2)
    for _ in range(2):
        member.send_sync()
        assert member.client.response().message.assignment == member.member_id.encode()


def test_sync_during_a_rebalance_returns_rebalance_in_progress(broker: VirtualBroker) -> None:
    members = settled_group(broker, 2)
    newcomer = Member(broker)
    newcomer.send_join()
    members[0].send_sync()
    assert members[0].client.response().message.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_new_member_fails_a_pending_sync_with_rebalance_in_progress(broker: VirtualBroker) -> None:
    members = joined_group(broker, 2)
    members[1].send_sync()
    newcomer = Member(broker, version=3)
    newcomer.send_join()
    assert members[1].client.response().message.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_removal_of_a_member_fails_its_pending_sync(broker: VirtualBroker) -> None:
    members = joined_group(broker, 2)
    members[1].send_sync()
    leaving = [MemberIdentity(member_id=members[1].member_id)]
    broker.client().call(LeaveGroupRequest(group_id="group", members=leaving), 5)
    assert members[1].client.response().message.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_oversized_assignment_fails_every_sync_and_starts_a_rebalance(broker: VirtualBroker) -> None:
    members = joined_group(broker, 2)
    members[1].send_sync()
    members[0].send_sync({members[0].member_id: bytes(2**20)})
    for member in members:
        assert member.client.response().message.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
