"""JoinGroup: who is taken in, who is not and why, and what a member is told."""

from typing import Any

import pytest

from sluice.protocol.errors import ErrorCode
from tests.support.groups import SESSION_MS, Member, protocol, settle_round, settled_group, stable_group, subscription
from tests.support.virtual_broker import VirtualBroker

VERSIONS = range(10)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"group_id": ""}, ErrorCode.INVALID_GROUP_ID, id="a group without a name"),
        pytest.param({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT, id="too short a session"),
        pytest.param({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT, id="too long a session"),
        pytest.param({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, id="no type of protocol"),
        pytest.param({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, id="no protocol"),
        pytest.param({"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID, id="an id in a group that is not there"),
    ],
)
def test_who_asks_wrongly_is_told_so_in_every_version(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    member = Member(VirtualBroker(), version=version)
    response = member.client.ask(member.join_request(**fields), version)
    assert response.error_code == code
    assert response.member_id == fields.get("member_id", "")
    assert (response.generation_id, response.protocol_name) == (-1, None if version >= 7 else "")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, id="another type"),
        pytest.param({"protocols": [protocol("sticky")]}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, id="none in common"),
        pytest.param({"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID, id="an id nobody has"),
        pytest.param(
            {"member_id": "member", "group_instance_id": "i"},
            ErrorCode.UNKNOWN_MEMBER_ID,
            id="an instance id nobody has",
        ),
    ],
)
def test_who_does_not_fit_into_a_group_is_told_so(fields: dict[str, Any], code: ErrorCode) -> None:
    broker = VirtualBroker()
    group = stable_group(broker)
    member = Member(broker)
    assert member.client.ask(member.join_request(**fields), 9).error_code == code
    assert group.state_name == "Stable"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_member_must_come_back_with_its_id_from_version_4_on(version: int) -> None:
    broker = VirtualBroker()
    member = Member(broker, version=version, client_id="me")
    member.client.send(member.join_request(), version)
    if version >= 4:
        refusal = member.client.answer().message
        assert refusal.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert refusal.member_id.startswith("me-")
        assert len(refusal.member_id) == len("me-") + 36
        member.client.send(member.join_request(member_id=refusal.member_id), version)
    assert member.client.answers == []
    broker.advance(3_000)
    assert member.joined().error_code == 0
    assert member.leads


@pytest.mark.parametrize("version", range(5, 10))
def test_a_static_member_is_taken_in_at_once_and_its_id_begins_with_its_instance_id(version: int) -> None:
    broker = VirtualBroker()
    member = Member(broker, version=version, instance_id="one")
    member.client.send(member.join_request(), version)
    assert member.client.answers == []
    broker.advance(3_000)
    assert member.joined().member_id.startswith("one-")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_leader_alone_is_told_who_is_in_the_group(version: int) -> None:
    broker = VirtualBroker()
    members = [Member(broker, version=version) for _ in range(3)]
    for number, member in enumerate(members):
        member.send_join(protocol("range", subscription(f"t{number}")))
    broker.advance(10_000)
    answers = [member.joined() for member in members]
    assert [member.leads for member in members] == [True, False, False]
    assert [(one.member_id, one.metadata) for one in answers[0].members] == [
        (member.member_id, subscription(f"t{number}")) for number, member in enumerate(members)
    ]
    assert [one.members for one in answers[1:]] == [[], []]
    for one in answers:
        assert (one.generation_id, one.protocol_name, one.leader) == (1, "range", members[0].member_id)
        assert one.protocol_type == ("consumer" if version >= 7 else None)


def test_version_0_has_one_timeout_for_both() -> None:
    broker = VirtualBroker("group.initial.rebalance.delay.ms=0")
    first, second = Member(broker, version=0), Member(broker, version=0)
    first.send_join(rebalance_timeout_ms=-1, session_timeout_ms=20_000)
    broker.advance(1)
    settle_round([first])
    second.send_join(rebalance_timeout_ms=-1, session_timeout_ms=7_000)
    first.client.leave()
    broker.advance(19_999)
    assert second.client.answers == []
    broker.advance(1)
    assert second.joined().generation_id == 2


def test_the_size_of_a_group_is_limited() -> None:
    broker = VirtualBroker("group.max.size=2")
    settled_group(broker, 2)
    third = Member(broker)
    refused = third.client.ask(third.join_request(), 9)
    assert (refused.error_code, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")


def test_the_limit_holds_while_members_join() -> None:
    broker = VirtualBroker("group.max.size=2")
    members = [Member(broker, version=3) for _ in range(3)]
    for member in members:
        member.send_join()
    assert members[2].joined().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    broker.advance(10_000)
    settle_round(members[:2])


def test_an_id_that_is_waited_for_cannot_become_that_of_a_static_member() -> None:
    member = Member(VirtualBroker())
    pending_id = member.client.ask(member.join_request(), 9).member_id
    response = member.client.ask(member.join_request(member_id=pending_id, group_instance_id="i"), 9)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_id_that_is_not_used_within_the_session_timeout_is_forgotten() -> None:
    broker = VirtualBroker()
    member = Member(broker)
    pending_id = member.client.ask(member.join_request(), 9).member_id
    broker.advance(SESSION_MS)
    response = member.client.ask(member.join_request(member_id=pending_id), 9)
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
