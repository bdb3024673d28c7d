"""Heartbeat of classic members: validation and rebalances."""

from typing import Any

import pytest

from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.errors import ErrorCode
from tests.support.groups import Member, settled_group, stable_group
from tests.support.virtual_broker import VirtualBroker

HEARTBEATS = {
    "member": ({}, ErrorCode.NONE),
    "empty group id": ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    "unknown group": ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
    "group without members": ({"group_id": "empty"}, ErrorCode.UNKNOWN_MEMBER_ID),
    "unknown member id": ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    "previous generation": ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
    "future generation": ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
}


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize(("fields", "code"), HEARTBEATS.values(), ids=HEARTBEATS)
def test_heartbeat_validates_its_fields(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    broker = VirtualBroker()
    stable_group(broker)
    broker.broker.groups.create_classic("empty")
    known: dict[str, Any] = {"group_id": "group", "member_id": "member", "generation_id": 1}
    assert broker.client().call(HeartbeatRequest(**(known | fields)), version).error_code == code


def test_replaced_static_member_is_fenced(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1, instance_id="i")
    assert member.heartbeat(member_id="i-another") == ErrorCode.FENCED_INSTANCE_ID
    assert member.heartbeat(group_instance_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.heartbeat() == ErrorCode.NONE


def test_heartbeat_returns_rebalance_in_progress_until_the_member_rejoins(broker: VirtualBroker) -> None:
    members = settled_group(broker, 2)
    newcomer = Member(broker)
    newcomer.send_join()
    assert [member.heartbeat() for member in members] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    for member in members:
        member.send_join()
    for member in (*members, newcomer):
        member.joined()
    assert [member.heartbeat() for member in (*members, newcomer)] == [ErrorCode.NONE] * 3
