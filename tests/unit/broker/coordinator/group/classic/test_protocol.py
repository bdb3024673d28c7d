"""Rebalances, sessions and timeouts of classic groups in virtual time."""

from typing import Any

import pytest

from sluice.broker.coordinator.group.classic.group import EMPTY, PREPARING_REBALANCE, STABLE
from sluice.broker.coordinator.group.classic.protocol import NEW_MEMBER_JOIN_TIMEOUT_MS
from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.errors import ErrorCode
from tests.support.groups import (
    REBALANCE_MS,
    SESSION_MS,
    Member,
    classic_group,
    joined_group,
    joining_group,
    protocol,
    settle_round,
    settled_group,
    subscription,
)
from tests.support.virtual_broker import VirtualBroker

# -- initial rebalance of an empty group -------------------------------------------------------------------------------


INITIAL = {
    "one member waits for the delay": ([0], [], 60_000, 3_000),
    "a second member extends the wait": ([0, 2_999], [], 60_000, 6_000),
    "several joins within one delay extend it once": ([0, 100, 200], [], 60_000, 6_000),
    "repeated joins": ([0, 1_000, 4_000, 7_000], [], 60_000, 12_000),
    "the rebalance timeout limits the wait": ([0, 1_000, 4_000, 6_500], [], 7_000, 7_000),
    "a rebalance timeout below the delay does not extend the wait": ([0, 1_000], [], 2_000, 3_000),
    "no delay": ([0], ["group.initial.rebalance.delay.ms=0"], 60_000, 0),
    "configured delay": ([0, 50], ["group.initial.rebalance.delay.ms=100"], 60_000, 200),
}


@pytest.mark.parametrize(("joins_at_ms", "overrides", "rebalance_ms", "ends_at_ms"), INITIAL.values(), ids=INITIAL)
def test_initial_rebalance_waits_for_more_members(
    joins_at_ms: list[int], overrides: list[str], rebalance_ms: int, ends_at_ms: int
) -> None:
    broker = VirtualBroker(*overrides)
    members = []
    for at_ms in joins_at_ms:
        broker.advance(at_ms - broker.now_ms)
        members.append(Member(broker, version=3))
        members[-1].send_join(rebalance_timeout_ms=rebalance_ms)
    broker.advance(60_000)
    responses = [member.client.response() for member in members]
    assert {response.message.generation_id for response in responses} == {1}
    assert {response.at_ms for response in responses} == {ends_at_ms}


# -- later rebalances --------------------------------------------------------------------------------------------------


def test_rebalance_completes_when_all_members_have_joined(broker: VirtualBroker) -> None:
    members = settled_group(broker, 3)
    newcomer = Member(broker)
    newcomer.send_join()
    started_ms = broker.now_ms
    for member in members:
        broker.advance(10)
        assert newcomer.client.responses == []
        member.send_join()
    assert newcomer.client.responses[0].at_ms == started_ms + 30
    settle_round([*members, newcomer])
    assert {member.generation_id for member in (*members, newcomer)} == {2}


def test_rebalance_after_a_leave_completes_when_the_remaining_members_have_rejoined(broker: VirtualBroker) -> None:
    leaving, *remaining = settled_group(broker, 3)
    leaving.leave()
    started_ms = broker.now_ms
    for member in remaining:
        member.send_join()
    settle_round(remaining)
    assert broker.now_ms == started_ms
    assert {member.generation_id for member in remaining} == {2}


def test_members_that_miss_the_rebalance_timeout_are_removed(broker: VirtualBroker) -> None:
    members = settled_group(broker, 3)
    newcomer = Member(broker)
    newcomer.send_join()
    started_ms = broker.now_ms
    members[2].send_join()
    while broker.now_ms < started_ms + REBALANCE_MS - SESSION_MS:
        broker.advance(SESSION_MS / 2)
        assert members[0].heartbeat() == members[1].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    broker.advance(SESSION_MS - 1)
    assert members[0].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert newcomer.client.responses == []
    broker.advance(1)
    assert members[0].heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert newcomer.client.responses[0].at_ms == started_ms + REBALANCE_MS
    settle_round([newcomer, members[2]])
    # The leader was removed. The remaining member that joined first becomes the leader.
    assert members[2].leads


def test_rebalance_waits_for_a_pending_member_id(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1)
    started_ms = broker.now_ms
    pending = Member(broker)
    pending.client.call(pending.join_request(), 9)
    member.send_join()
    broker.advance(SESSION_MS - 1)
    assert member.client.responses == []
    broker.advance(1)
    assert member.client.responses[0].at_ms == started_ms + SESSION_MS
    assert member.joined().generation_id == 2


def test_members_that_do_not_sync_in_time_are_removed_and_the_others_rejoin(broker: VirtualBroker) -> None:
    members = joining_group(broker, 3)
    started_ms = members[0].client.responses[0].at_ms
    for member in members:
        member.joined()
    members[0].send_sync({})
    members[1].send_sync()
    for member in members[:2]:
        assert member.client.response().message.error_code == 0
    while broker.now_ms < started_ms + REBALANCE_MS - 1:
        broker.advance(min(SESSION_MS / 2, started_ms + REBALANCE_MS - 1 - broker.now_ms))
        assert [member.heartbeat() for member in members] == [0, 0, 0]
    broker.advance(1)
    codes = [member.heartbeat() for member in members]
    assert codes == [ErrorCode.REBALANCE_IN_PROGRESS] * 2 + [ErrorCode.UNKNOWN_MEMBER_ID]


def test_group_that_all_members_left_is_empty_and_delays_its_next_rebalance(broker: VirtualBroker) -> None:
    members = settled_group(broker, 2)
    for member in members:
        assert member.leave().members[0].error_code == 0
    group = classic_group(broker)
    assert (group.state_name, group.generation_id, group.leader_id, group.protocol_name) == ("Empty", 2, None, None)
    newcomer = Member(broker, version=3)
    newcomer.send_join()
    started_ms = broker.now_ms
    broker.advance(3_000)
    assert newcomer.client.responses[0].at_ms == started_ms + 3_000
    assert newcomer.joined().generation_id == 3


# -- rejoining ---------------------------------------------------------------------------------------------------------


def changed_protocols() -> list[Any]:
    return [protocol("range", subscription("t", "u"))]


REJOINS = {
    "leader": (0, [], True),
    "leader with other topics": (0, changed_protocols(), True),
    "follower without changes": (1, [], False),
    "follower with other topics": (1, changed_protocols(), True),
}


@pytest.mark.parametrize(("index", "protocols", "rebalances"), REJOINS.values(), ids=REJOINS)
def test_rejoin_of_a_stable_group_starts_a_rebalance_for_the_leader_or_new_topics(
    index: int, protocols: list[Any], rebalances: bool
) -> None:
    members = settled_group(VirtualBroker(), 2)
    members[index].client.send(members[index].join_request(*protocols), 9)
    if rebalances:
        assert members[index].client.responses == []
        assert members[1 - index].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    else:
        response = members[index].joined()
        assert (response.generation_id, response.leader, response.members) == (1, members[0].member_id, [])
        assert members[1 - index].heartbeat() == ErrorCode.NONE


@pytest.mark.parametrize("index", [0, 1])
def test_repeated_join_request_returns_the_same_response(broker: VirtualBroker, index: int) -> None:
    members = joining_group(broker, 2)
    first = [member.joined() for member in members][index]
    members[index].client.send(members[index].join_request(), 9)
    assert members[index].joined() == first


@pytest.mark.parametrize("index", [0, 1])
def test_new_topics_before_the_sync_phase_ends_start_another_rebalance(broker: VirtualBroker, index: int) -> None:
    members = joined_group(broker, 2)
    members[index].client.send(members[index].join_request(*changed_protocols()), 9)
    assert members[index].client.responses == []
    assert members[1 - index].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_second_join_of_a_member_replaces_its_pending_join(broker: VirtualBroker) -> None:
    # A client does this after it dropped its connection. As in Kafka, the first join gets no response.
    members = settled_group(broker, 2)
    members[0].send_join()
    again = broker.client()
    again.send(members[0].join_request(), 9)
    members[1].send_join()
    assert again.response().message.generation_id == 2
    assert members[0].client.responses == []


# -- protocols ---------------------------------------------------------------------------------------------------------


VOTES = {
    "one member": (["range"], "range"),
    "most votes": (["range sticky", "sticky range", "sticky range"], "sticky"),
    "a tie goes to the first protocol that got a vote": (["range sticky", "sticky range"], "range"),
    "only protocols that all members support": (["range sticky", "cooperative sticky"], "sticky"),
    "each vote counts for its first protocol that all members support": (
        ["cooperative sticky range", "sticky cooperative", "range cooperative sticky"],
        "cooperative",
    ),
}


@pytest.mark.parametrize(("preferences", "chosen"), VOTES.values(), ids=VOTES)
def test_protocol_is_chosen_by_the_members_votes(broker: VirtualBroker, preferences: list[str], chosen: str) -> None:
    members = [Member(broker) for _ in preferences]
    for member, names in zip(members, preferences, strict=True):
        member.send_join(*(protocol(name) for name in names.split()))
    broker.advance(10_000)
    assert {member.joined().protocol_name for member in members} == {chosen}


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_member_without_heartbeats_is_removed_when_its_session_ends(broker: VirtualBroker) -> None:
    members = settled_group(broker, 2)
    broker.advance(SESSION_MS - 1)
    assert members[0].heartbeat() == ErrorCode.NONE
    broker.advance(1)
    assert members[1].heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert members[0].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("api", ["heartbeat", "commit"])
def test_heartbeat_or_commit_extends_the_session(topic: Topic, broker: VirtualBroker, api: str) -> None:
    (member,) = settled_group(broker, 1)
    for _ in range(3):
        broker.advance(SESSION_MS - 1)
        assert (member.heartbeat if api == "heartbeat" else member.commit)() == ErrorCode.NONE


def test_members_in_a_pending_join_or_sync_need_no_heartbeats(broker: VirtualBroker) -> None:
    members = settled_group(broker, 3)
    members[0].send_join()  # rebalance
    joined_ms = broker.now_ms
    while broker.now_ms < joined_ms + REBALANCE_MS - SESSION_MS:
        broker.advance(SESSION_MS / 2)
        assert members[1].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    members[1].send_join()
    # The third member's session expired and completed the rebalance. By then, the first had waited longer than its
    # session.
    assert [member.joined().generation_id for member in members[:2]] == [2, 2]
    members[1].send_sync()
    broker.advance(SESSION_MS - 1)
    assert members[0].heartbeat() == ErrorCode.NONE
    broker.advance(SESSION_MS - 1)
    assert members[0].heartbeat() == ErrorCode.NONE
    assert members[1].client.responses == []
    members[0].send_sync({})
    assert members[1].client.response().message.error_code == 0
    broker.advance(SESSION_MS - 1)  # the response restarts its session
    assert members[1].heartbeat() == ErrorCode.NONE


def test_join_of_a_new_member_fails_after_five_minutes(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1, version=3)
    newcomer = Member(broker, version=3)
    newcomer.send_join(rebalance_timeout_ms=900_000)
    started_ms = broker.now_ms
    while broker.now_ms < started_ms + 300_000:
        broker.advance(SESSION_MS / 2)
        assert member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    response = newcomer.client.response()
    assert (response.message.error_code, response.message.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    assert response.at_ms == started_ms + 300_000


def test_member_that_disconnects_during_a_join_stays_until_its_session_ends(broker: VirtualBroker) -> None:
    members = settled_group(broker, 2)
    members[0].send_join()
    members[0].client.leave()
    broker.advance(SESSION_MS * 0.9)
    members[1].send_join()
    assert members[1].joined().generation_id == 2
    assert list(classic_group(broker).members) == [members[0].member_id, members[1].member_id]
    broker.advance(SESSION_MS - 1)
    assert members[1].heartbeat() == ErrorCode.NONE
    broker.advance(1)
    assert members[1].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_timers_are_removed_when_the_last_member_leaves(broker: VirtualBroker) -> None:
    members = settled_group(broker, 3)
    groups = broker.broker.groups
    assert (len(groups.rebalances), len(groups.heartbeats)) == (0, 3)
    for member in members:
        member.leave()
    assert (len(groups.rebalances), len(groups.heartbeats)) == (0, 0)


# -- a member that lists a protocol twice: no protocol has as many supporters as there are members ---------------------

TWICE = (protocol(), protocol())


def newcomer(broker: VirtualBroker) -> Member:
    """Return a new member of an empty group, whose initial rebalance is over."""
    member = Member(broker, version=3)
    member.send_join()
    broker.advance(3_000)
    return member


def test_initial_rebalance_without_a_common_protocol_ends_with_the_join_timeout(broker: VirtualBroker) -> None:
    member = Member(broker, version=3)
    member.send_join(*TWICE)
    broker.advance(NEW_MEMBER_JOIN_TIMEOUT_MS - 1)
    assert (member.client.responses, classic_group(broker).state) == ([], PREPARING_REBALANCE)
    broker.advance(1)
    assert member.joined().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert classic_group(broker).state is EMPTY
    settle_round([newcomer(broker)])


def test_rejoin_without_a_common_protocol_fails(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1)
    member.send_join(*TWICE)
    assert member.joined().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (classic_group(broker).state, classic_group(broker).generation_id) == (PREPARING_REBALANCE, 2)
    other = Member(broker, version=3)
    other.send_join()
    assert other.joined().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    broker.advance(SESSION_MS)
    settle_round([newcomer(broker)])


def test_leave_that_ends_a_round_without_a_common_protocol_fails(broker: VirtualBroker) -> None:
    member, leaving = settled_group(broker, 2)
    member.send_join(*TWICE)
    identity = MemberIdentity(member_id=leaving.member_id)
    response = leaving.client.call(LeaveGroupRequest(group_id="group", members=[identity]), 5)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert member.client.responses == []
    assert [*classic_group(broker).members] == [member.member_id]


def test_returning_static_member_without_a_common_protocol_fails(broker: VirtualBroker) -> None:
    static_group(broker)
    returning = Member(broker, instance_id="i0")
    returning.send_join(*TWICE)
    assert returning.joined().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert classic_group(broker).state is STABLE


# -- static members ----------------------------------------------------------------------------------------------------


def static_group(broker: VirtualBroker, *protocols: Any, **fields: Any) -> list[Member]:
    """Return a stable group of two static members, the leader first; they join with these protocols and fields."""
    members = [Member(broker, instance_id=f"i{number}") for number in range(2)]
    for member in members:
        member.send_join(*protocols, **fields)
    broker.advance(10_000)
    settle_round(members)
    return members


@pytest.mark.parametrize("version", range(5, 10))
@pytest.mark.parametrize("index", [0, 1])
def test_returning_static_member_keeps_its_assignment_without_a_rebalance(version: int, index: int) -> None:
    broker = VirtualBroker()
    members = static_group(broker)
    old_id = members[index].member_id
    returned = Member(broker, version=version, instance_id=f"i{index}")
    returned.client.send(returned.join_request(), version)
    response = returned.joined()
    assert response.generation_id == 1
    assert members[1 - index].heartbeat() == ErrorCode.NONE
    assert members[index].heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    if version >= 9:
        # The leader is named, with skip_assignment set (KIP-814).
        assert response.leader == (returned.member_id if index == 0 else members[0].member_id)
        assert response.skip_assignment == (index == 0)
        assert len(response.members) == (2 if index == 0 else 0)
    else:
        assert response.leader == (old_id if index == 0 else members[0].member_id)
        assert response.members == []
    returned.send_sync()
    assert returned.client.response().message.assignment == old_id.encode()


def test_returning_static_member_with_other_protocols_starts_a_rebalance(broker: VirtualBroker) -> None:
    members = static_group(broker, protocol("range"), protocol("sticky"))
    returned = Member(broker, instance_id="i1")
    returned.client.send(returned.join_request(protocol("sticky")), 9)
    assert returned.client.responses == []
    assert members[0].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    members[0].send_join(protocol("range"), protocol("sticky"))
    assert returned.joined().protocol_name == "sticky"


def test_returning_static_member_in_the_sync_phase_starts_a_rebalance(broker: VirtualBroker) -> None:
    members = [Member(broker, instance_id=f"i{number}") for number in range(2)]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    for member in members:
        member.joined()
    members[1].send_sync()
    returned = Member(broker, instance_id="i1")
    returned.client.send(returned.join_request(), 9)
    assert members[1].client.response().message.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert returned.client.responses == []
    assert members[0].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_second_join_of_a_static_member_fences_its_first(broker: VirtualBroker) -> None:
    members = static_group(broker)
    members[0].send_join()  # the leader's join starts a rebalance
    returned = Member(broker, instance_id="i0")
    returned.client.send(returned.join_request(), 9)
    fenced = members[0].client.response().message
    assert (fenced.error_code, fenced.member_id) == (ErrorCode.FENCED_INSTANCE_ID, members[0].member_id)
    members[1].send_join()
    responses = [returned.joined(), members[1].joined()]
    assert [response.generation_id for response in responses] == [2, 2]
    assert returned.leads


def test_static_member_that_misses_the_rebalance_timeout_stays_a_member(broker: VirtualBroker) -> None:
    members = static_group(broker, session_timeout_ms=600_000)
    members[0].send_join(session_timeout_ms=600_000)
    broker.advance(REBALANCE_MS)
    response = members[0].joined()
    assert (response.generation_id, len(response.members)) == (2, 2)
    assert members[1].heartbeat() == ErrorCode.ILLEGAL_GENERATION


def test_rebalance_without_joined_static_members_lasts_until_their_sessions_end(broker: VirtualBroker) -> None:
    static_group(broker, session_timeout_ms=100_000)
    dynamic = Member(broker)
    dynamic.send_join()
    leaving = [MemberIdentity(member_id=dynamic.member_id)]
    broker.client().call(LeaveGroupRequest(group_id="group", members=leaving), 5)
    assert dynamic.joined().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    broker.advance(REBALANCE_MS)
    group = classic_group(broker)
    assert (group.state_name, group.generation_id) == ("PreparingRebalance", 1)
    broker.advance(REBALANCE_MS)
    assert (group.state_name, group.generation_id) == ("Empty", 2)


# -- pipelined requests ------------------------------------------------------------------------------------------------


def test_pipelined_leave_is_handled_after_the_pending_join_completes(broker: VirtualBroker) -> None:
    first, second = settled_group(broker, 2, version=3)
    # It pipelines a join and a leave: the leave is handled after all members have received the generation.
    first.client.send_together(
        (first.join_request(), 3), (LeaveGroupRequest(group_id="group", member_id=first.member_id), 1)
    )
    assert first.client.responses == []
    second.send_join()
    joined, left = first.client.take_responses()
    assert (joined.message.generation_id, left.message.error_code) == (2, 0)
    assert second.joined().generation_id == 2
    assert second.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
