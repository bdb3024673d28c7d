"""JoinGroup: validation, member ids and the responses to members."""

from typing import Any

import pytest

from sluice.protocol.errors import ErrorCode
from tests.support.groups import SESSION_MS, Member, protocol, settle_round, settled_group, stable_group, subscription
from tests.support.virtual_broker import VirtualBroker

VERSIONS = range(10)
INCONSISTENT, UNKNOWN = ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.UNKNOWN_MEMBER_ID
BAD_TIMEOUT = ErrorCode.INVALID_SESSION_TIMEOUT


INVALID_JOINS = {
    "empty group id": ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    "session timeout too short": ({"session_timeout_ms": 5_999}, BAD_TIMEOUT),
    "session timeout too long": ({"session_timeout_ms": 1_800_001}, BAD_TIMEOUT),
    "empty protocol type": ({"protocol_type": ""}, INCONSISTENT),
    "no protocols": ({"protocols": []}, INCONSISTENT),
    "member id in an unknown group": ({"member_id": "unknown"}, UNKNOWN),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("fields", "code"), INVALID_JOINS.values(), ids=INVALID_JOINS)
def test_invalid_join_is_rejected_in_every_version(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    member = Member(VirtualBroker(), version=version)
    response = member.client.call(member.join_request(**fields), version)
    assert response.error_code == code
    assert response.member_id == fields.get("member_id", "")
    assert (response.generation_id, response.protocol_name) == (-1, None if version >= 7 else "")


INCONSISTENT_JOINS = {
    "other protocol type": ({"protocol_type": "connect"}, INCONSISTENT),
    "no common protocol": ({"protocols": [protocol("sticky")]}, INCONSISTENT),
    "unknown member id": ({"member_id": "unknown"}, UNKNOWN),
    "unknown instance id": ({"member_id": "member", "group_instance_id": "i"}, UNKNOWN),
}


@pytest.mark.parametrize(("fields", "code"), INCONSISTENT_JOINS.values(), ids=INCONSISTENT_JOINS)
def test_join_that_is_inconsistent_with_the_group_is_rejected(fields: dict[str, Any], code: ErrorCode) -> None:
    broker = VirtualBroker()
    group = stable_group(broker)
    member = Member(broker)
    assert member.client.call(member.join_request(**fields), 9).error_code == code
    assert group.state_name == "Stable"


@pytest.mark.parametrize("version", VERSIONS)
def test_new_member_must_rejoin_with_its_member_id_from_version_4(broker: VirtualBroker, version: int) -> None:
    member = Member(broker, version=version, client_id="client")
    member.client.send(member.join_request(), version)
    if version >= 4:
        rejected = member.client.response().message
        assert rejected.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert rejected.member_id.startswith("client-")
        assert len(rejected.member_id) == len("client-") + 36
        member.client.send(member.join_request(member_id=rejected.member_id), version)
    assert member.client.responses == []
    broker.advance(3_000)
    assert member.joined().error_code == 0
    assert member.leads


@pytest.mark.parametrize("version", range(5, 10))
def test_static_member_joins_at_once_and_its_member_id_starts_with_its_instance_id(version: int) -> None:
    broker = VirtualBroker()
    member = Member(broker, version=version, instance_id="one")
    member.client.send(member.join_request(), version)
    assert member.client.responses == []
    broker.advance(3_000)
    assert member.joined().member_id.startswith("one-")


@pytest.mark.parametrize("version", VERSIONS)
def test_only_the_leader_receives_the_member_list(broker: VirtualBroker, version: int) -> None:
    members = [Member(broker, version=version) for _ in range(3)]
    for number, member in enumerate(members):
        member.send_join(protocol("range", subscription(f"t{number}")))
    broker.advance(10_000)
    responses = [member.joined() for member in members]
    assert [member.leads for member in members] == [True, False, False]
    assert [(listed.member_id, listed.metadata) for listed in responses[0].members] == [
        (member.member_id, subscription(f"t{number}")) for number, member in enumerate(members)
    ]
    assert [response.members for response in responses[1:]] == [[], []]
    for response in responses:
        assert (response.generation_id, response.protocol_name, response.leader) == (1, "range", members[0].member_id)
        assert response.protocol_type == ("consumer" if version >= 7 else None)


def test_version_0_uses_the_session_timeout_for_rebalances() -> None:
    broker = VirtualBroker("group.initial.rebalance.delay.ms=0")
    first, second = Member(broker, version=0), Member(broker, version=0)
    first.send_join(rebalance_timeout_ms=-1, session_timeout_ms=20_000)
    broker.advance(1)
    settle_round([first])
    second.send_join(rebalance_timeout_ms=-1, session_timeout_ms=7_000)
    first.client.leave()
    broker.advance(19_999)
    assert second.client.responses == []
    broker.advance(1)
    assert second.joined().generation_id == 2


def test_group_size_is_limited() -> None:
    broker = VirtualBroker("group.max.size=2")
    settled_group(broker, 2)
    third = Member(broker)
    rejected = third.client.call(third.join_request(), 9)
    assert (rejected.error_code, rejected.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")


def test_group_size_limit_applies_during_the_initial_rebalance() -> None:
    broker = VirtualBroker("group.max.size=2")
    members = [Member(broker, version=3) for _ in range(3)]
    for member in members:
        member.send_join()
    assert members[2].joined().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    broker.advance(10_000)
    settle_round(members[:2])


def test_pending_member_id_cannot_join_as_a_static_member() -> None:
    member = Member(VirtualBroker())
    pending_id = member.client.call(member.join_request(), 9).member_id
    response = member.client.call(member.join_request(member_id=pending_id, group_instance_id="i"), 9)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_pending_member_id_expires_after_the_session_timeout(broker: VirtualBroker) -> None:
    member = Member(broker)
    pending_id = member.client.call(member.join_request(), 9).member_id
    broker.advance(SESSION_MS)
    assert member.client.call(member.join_request(member_id=pending_id), 9).error_code == UNKNOWN
