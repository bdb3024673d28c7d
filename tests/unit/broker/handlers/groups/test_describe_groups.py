"""DescribeGroups: state, members and assignments of classic groups."""

from typing import Any

import pytest

from sluice.protocol.apis.describe_groups import DescribeGroupsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.groups import Member, protocol, settle_round, settled_group, subscription
from tests.support.virtual_broker import VirtualBroker

# READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS, by their numbers in Kafka's AclOperation.
GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
NOT_REQUESTED = -0x8000_0000


def describe(broker: VirtualBroker, group_id: str = "group", version: int = 6, operations: bool = False) -> Any:
    request = DescribeGroupsRequest(groups=[group_id], include_authorized_operations=operations)
    [group] = broker.client().call(request, version).groups
    return group


@pytest.mark.parametrize("version", range(7))
def test_stable_group_is_fully_described(broker: VirtualBroker, version: int) -> None:
    member = Member(broker, instance_id="i", client_id="client")
    member.send_join(protocol("range", subscription("t")), protocol("sticky", b"other"))
    broker.advance(3_000)
    settle_round([member])
    group = describe(broker, version=version, operations=version >= 3)
    assert (group.error_code, group.group_id, group.group_state) == (0, "group", "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    assert group.authorized_operations == (GROUP_OPERATIONS if version >= 3 else NOT_REQUESTED)
    [item] = group.members
    assert (item.member_id, item.client_id, item.client_host) == (member.member_id, "client", "/127.0.0.1")
    assert item.group_instance_id == ("i" if version >= 4 else None)
    assert (item.member_metadata, item.member_assignment) == (subscription("t"), member.member_id.encode())


def test_rebalancing_group_is_described_without_protocol_and_metadata(broker: VirtualBroker) -> None:
    member = Member(broker)
    member.send_join()
    states = [describe(broker)]
    broker.advance(3_000)
    states.append(describe(broker))
    assert [group.group_state for group in states] == ["PreparingRebalance", "CompletingRebalance"]
    for group in states:
        assert (group.protocol_type, group.protocol_data) == ("consumer", "")
        assert [(item.member_id, item.member_metadata) for item in group.members] == [(member.member_id, b"")]


@pytest.mark.parametrize("version", range(7))
def test_unknown_group_is_dead(version: int) -> None:
    group = describe(VirtualBroker(), "other", version, operations=version >= 3)
    assert (group.group_state, group.members) == ("Dead", [])
    if version >= 6:
        assert (group.error_code, group.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group other not found.")
    else:
        assert group.error_code == ErrorCode.NONE
    assert group.authorized_operations == (GROUP_OPERATIONS if 3 <= version < 6 else NOT_REQUESTED)


def test_empty_group_keeps_its_protocol_type(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1)
    member.leave()
    group = describe(broker)
    assert (group.group_state, group.protocol_type, group.protocol_data, group.members) == ("Empty", "consumer", "", [])
