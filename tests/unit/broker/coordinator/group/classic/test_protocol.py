"""The rounds of classic groups in virtual time: who waits for whom, for how long, and what becomes of the others."""

from typing import Any

import pytest

from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.errors import ErrorCode
from tests.support.groups import (
    REBALANCE_MS,
    SESSION_MS,
    Member,
    classic_group,
    protocol,
    settle_round,
    settled_group,
    subscription,
)
from tests.support.virtual_broker import VirtualBroker

# -- the first rebalance of an empty group -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("joins_at_ms", "overrides", "rebalance_ms", "ends_at_ms"),
    [
        pytest.param([0], [], 60_000, 3_000, id="one member waits for the delay"),
        pytest.param([0, 2_999], [], 60_000, 6_000, id="another one makes it wait once more"),
        pytest.param([0, 100, 200], [], 60_000, 6_000, id="several in one delay count as one"),
        pytest.param([0, 1_000, 4_000, 7_000], [], 60_000, 12_000, id="again and again"),
        pytest.param([0, 1_000, 4_000, 6_500], [], 7_000, 7_000, id="until the rebalance timeout is used up"),
        pytest.param([0, 1_000], [], 2_000, 3_000, id="a rebalance timeout below the delay gives no more time"),
        pytest.param([0], ["group.initial.rebalance.delay.ms=0"], 60_000, 0, id="no delay"),
        pytest.param([0, 50], ["group.initial.rebalance.delay.ms=100"], 60_000, 200, id="a delay of ours"),
    ],
)
def test_the_first_rebalance_waits_for_more_members(
    joins_at_ms: list[int], overrides: list[str], rebalance_ms: int, ends_at_ms: int
) -> None:
    broker = VirtualBroker(*overrides)
    members = []
    for at_ms in joins_at_ms:
        broker.advance(at_ms - broker.now_ms)
        members.append(Member(broker, version=3))
        members[-1].send_join(rebalance_timeout_ms=rebalance_ms)
    broker.advance(60_000)
    answers = [member.client.answer() for member in members]
    assert {answer.message.generation_id for answer in answers} == {1}
    assert {answer.at_ms for answer in answers} == {ends_at_ms}


# -- later rounds ------------------------------------------------------------------------------------------------------


def test_a_later_round_is_over_when_all_have_joined() -> None:
    broker = VirtualBroker()
    members = settled_group(broker, 3)
    newcomer = Member(broker)
    newcomer.send_join()
    begun_ms = broker.now_ms
    for member in members:
        broker.advance(10)
        assert newcomer.client.answers == []
        member.send_join()
    assert newcomer.client.answers[0].at_ms == begun_ms + 30
    settle_round([*members, newcomer])
    assert {member.generation_id for member in (*members, newcomer)} == {2}


def test_members_that_do_not_join_in_time_are_out() -> None:
    broker = VirtualBroker()
    members = settled_group(broker, 3)
    newcomer = Member(broker)
    newcomer.send_join()
    begun_ms = broker.now_ms
    members[2].send_join()
    while broker.now_ms < begun_ms + REBALANCE_MS - SESSION_MS:
        broker.advance(SESSION_MS / 2)
        assert members[0].heartbeat() == members[1].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    broker.advance(SESSION_MS - 1)
    assert members[0].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert newcomer.client.answers == []
    broker.advance(1)
    assert members[0].heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert newcomer.client.answers[0].at_ms == begun_ms + REBALANCE_MS
    settle_round([newcomer, members[2]])
    # The leader was among those who are out: whoever joined and had been there longest leads.
    assert members[2].leads


def test_a_round_waits_for_an_id_that_was_given_out() -> None:
    broker = VirtualBroker()
    (member,) = settled_group(broker, 1)
    begun_ms = broker.now_ms
    pending = Member(broker)
    pending.client.ask(pending.join_request(), 9)
    member.send_join()
    broker.advance(SESSION_MS - 1)
    assert member.client.answers == []
    broker.advance(1)
    assert member.client.answers[0].at_ms == begun_ms + SESSION_MS
    assert member.joined().generation_id == 2


def test_members_that_do_not_sync_in_time_are_out_and_the_others_join_again() -> None:
    broker = VirtualBroker()
    members = [Member(broker) for _ in range(3)]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    begun_ms = members[0].client.answers[0].at_ms
    for member in members:
        member.joined()
    members[0].send_sync({})
    members[1].send_sync()
    for member in members[:2]:
        assert member.client.answer().message.error_code == 0
    while broker.now_ms < begun_ms + REBALANCE_MS - 1:
        broker.advance(min(SESSION_MS / 2, begun_ms + REBALANCE_MS - 1 - broker.now_ms))
        assert [member.heartbeat() for member in members] == [0, 0, 0]
    broker.advance(1)
    codes = [member.heartbeat() for member in members]
    assert codes == [ErrorCode.REBALANCE_IN_PROGRESS] * 2 + [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_group_whose_members_all_left_is_empty_and_begins_like_a_new_one() -> None:
    broker = VirtualBroker()
    members = settled_group(broker, 2)
    for member in members:
        assert member.leave().members[0].error_code == 0
    group = classic_group(broker)
    assert (group.state_name, group.generation_id, group.leader_id, group.protocol_name) == ("Empty", 2, None, None)
    newcomer = Member(broker, version=3)
    newcomer.send_join()
    begun_ms = broker.now_ms
    broker.advance(3_000)
    assert newcomer.client.answers[0].at_ms == begun_ms + 3_000
    assert newcomer.joined().generation_id == 3


# -- joining again -----------------------------------------------------------------------------------------------------


def other() -> list[Any]:
    return [protocol("range", subscription("t", "u"))]


@pytest.mark.parametrize(
    ("who", "protocols", "rebalances"),
    [
        pytest.param(0, [], True, id="the leader"),
        pytest.param(0, other(), True, id="the leader with other topics"),
        pytest.param(1, [], False, id="another with nothing new"),
        pytest.param(1, other(), True, id="another with other topics"),
    ],
)
def test_who_joins_a_stable_group_again_starts_a_rebalance(who: int, protocols: list[Any], rebalances: bool) -> None:
    members = settled_group(VirtualBroker(), 2)
    members[who].client.send(members[who].join_request(*protocols), 9)
    if rebalances:
        assert members[who].client.answers == []
        assert members[1 - who].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    else:
        answer = members[who].joined()
        assert (answer.generation_id, answer.leader, answer.members) == (1, members[0].member_id, [])
        assert members[1 - who].heartbeat() == ErrorCode.NONE


@pytest.mark.parametrize("who", [0, 1])
def test_who_lost_the_answer_to_its_join_may_ask_again(who: int) -> None:
    broker = VirtualBroker()
    members = [Member(broker) for _ in range(2)]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    first = [member.joined() for member in members][who]
    members[who].client.send(members[who].join_request(), 9)
    assert members[who].joined() == first


@pytest.mark.parametrize("who", [0, 1])
def test_who_changes_its_topics_before_everyone_has_its_assignment_starts_anew(who: int) -> None:
    broker = VirtualBroker()
    members = [Member(broker) for _ in range(2)]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    for member in members:
        member.joined()
    members[who].client.send(members[who].join_request(*other()), 9)
    assert members[who].client.answers == []
    assert members[1 - who].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_second_join_of_a_member_takes_the_place_of_its_first() -> None:
    # As a client does that gave up its connection: nobody answers the first one, in Kafka either.
    broker = VirtualBroker()
    members = settled_group(broker, 2)
    members[0].send_join()
    again = broker.client()
    again.send(members[0].join_request(), 9)
    members[1].send_join()
    assert again.answer().message.generation_id == 2
    assert members[0].client.answers == []


# -- protocols ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preferences", "chosen"),
    [
        pytest.param(["range"], "range", id="one member"),
        pytest.param(["range sticky", "sticky range", "sticky range"], "sticky", id="most votes"),
        pytest.param(["range sticky", "sticky range"], "range", id="as many votes: the one voted for first"),
        pytest.param(["range sticky", "cooperative sticky"], "sticky", id="only what all can do"),
        pytest.param(
            ["cooperative sticky range", "sticky cooperative", "range cooperative sticky"],
            "cooperative",
            id="a vote goes to the first that all can do",
        ),
    ],
)
def test_members_vote_for_the_protocol(preferences: list[str], chosen: str) -> None:
    broker = VirtualBroker()
    members = [Member(broker) for _ in preferences]
    for member, names in zip(members, preferences, strict=True):
        member.send_join(*(protocol(name) for name in names.split()))
    broker.advance(10_000)
    assert {member.joined().protocol_name for member in members} == {chosen}


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_silent_member_is_out_when_its_session_ends() -> None:
    broker = VirtualBroker()
    members = settled_group(broker, 2)
    broker.advance(SESSION_MS - 1)
    assert members[0].heartbeat() == ErrorCode.NONE
    broker.advance(1)
    assert members[1].heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert members[0].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("sign", ["heartbeat", "commit"])
def test_what_a_member_does_keeps_its_session(sign: str) -> None:
    broker = VirtualBroker()
    broker.topic()
    (member,) = settled_group(broker, 1)
    for _ in range(3):
        broker.advance(SESSION_MS - 1)
        assert (member.heartbeat if sign == "heartbeat" else member.commit)() == ErrorCode.NONE


def test_who_waits_for_others_need_not_heartbeat() -> None:
    broker = VirtualBroker()
    members = settled_group(broker, 3)
    members[0].send_join()  # rebalance
    joined_ms = broker.now_ms
    while broker.now_ms < joined_ms + REBALANCE_MS - SESSION_MS:
        broker.advance(SESSION_MS / 2)
        assert members[1].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    members[1].send_join()
    # The third fell silent, so that the round is over: the first had waited longer than its session by then.
    assert [member.joined().generation_id for member in members[:2]] == [2, 2]
    members[1].send_sync()
    broker.advance(SESSION_MS - 1)
    assert members[0].heartbeat() == ErrorCode.NONE
    broker.advance(SESSION_MS - 1)
    assert members[0].heartbeat() == ErrorCode.NONE
    assert members[1].client.answers == []
    members[0].send_sync({})
    assert members[1].client.answer().message.error_code == 0
    broker.advance(SESSION_MS - 1)  # its session began again with the answer
    assert members[1].heartbeat() == ErrorCode.NONE


def test_a_new_member_does_not_wait_for_ever() -> None:
    broker = VirtualBroker()
    (member,) = settled_group(broker, 1, version=3)
    newcomer = Member(broker, version=3)
    newcomer.send_join(rebalance_timeout_ms=900_000)
    begun_ms = broker.now_ms
    while broker.now_ms < begun_ms + 300_000:
        broker.advance(SESSION_MS / 2)
        assert member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    answer = newcomer.client.answer()
    assert (answer.message.error_code, answer.message.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    assert answer.at_ms == begun_ms + 300_000


def test_a_client_that_goes_while_it_waits_stays_a_member_until_its_session_ends() -> None:
    broker = VirtualBroker()
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


def test_nothing_waits_when_the_last_member_has_left() -> None:
    broker = VirtualBroker()
    members = settled_group(broker, 3)
    groups = broker.broker.groups
    assert (len(groups.rebalances), len(groups.heartbeats)) == (0, 3)
    for member in members:
        member.leave()
    assert (len(groups.rebalances), len(groups.heartbeats)) == (0, 0)


# -- static members ----------------------------------------------------------------------------------------------------


def static_group(broker: VirtualBroker, size: int = 2) -> list[Member]:
    """A stable group of static members, the leader first."""
    members = [Member(broker, instance_id=f"i{number}") for number in range(size)]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    settle_round(members)
    return members


@pytest.mark.parametrize("version", range(5, 10))
@pytest.mark.parametrize("who", [0, 1])
def test_a_static_member_that_comes_back_has_its_place_and_nobody_rebalances(version: int, who: int) -> None:
    broker = VirtualBroker()
    members = static_group(broker)
    old_id = members[who].member_id
    back = Member(broker, version=version, instance_id=f"i{who}")
    back.client.send(back.join_request(), version)
    answer = back.joined()
    assert answer.generation_id == 1
    assert members[1 - who].heartbeat() == ErrorCode.NONE
    assert members[who].heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    if version >= 9:
        # A leader is told so, and that the assignment is not its to make (KIP-814).
        assert answer.leader == (back.member_id if who == 0 else members[0].member_id)
        assert answer.skip_assignment == (who == 0)
        assert len(answer.members) == (2 if who == 0 else 0)
    else:
        assert answer.leader == (old_id if who == 0 else members[0].member_id)
        assert answer.members == []
    back.send_sync()
    assert back.client.answer().message.assignment == old_id.encode()


def test_a_static_member_that_comes_back_with_other_protocols_starts_a_rebalance() -> None:
    broker = VirtualBroker()
    members = [Member(broker, instance_id=f"i{number}") for number in range(2)]
    for member in members:
        member.send_join(protocol("range"), protocol("sticky"))
    broker.advance(10_000)
    settle_round(members)
    back = Member(broker, instance_id="i1")
    back.client.send(back.join_request(protocol("sticky")), 9)
    assert back.client.answers == []
    assert members[0].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    members[0].send_join(protocol("range"), protocol("sticky"))
    assert back.joined().protocol_name == "sticky"


def test_a_static_member_that_comes_back_in_the_sync_round_starts_a_rebalance() -> None:
    broker = VirtualBroker()
    members = [Member(broker, instance_id=f"i{number}") for number in range(2)]
    for member in members:
        member.send_join()
    broker.advance(10_000)
    for member in members:
        member.joined()
    members[1].send_sync()
    back = Member(broker, instance_id="i1")
    back.client.send(back.join_request(), 9)
    assert members[1].client.answer().message.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert back.client.answers == []
    assert members[0].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_that_joins_twice_fences_its_first_request() -> None:
    broker = VirtualBroker()
    members = static_group(broker)
    members[0].send_join()  # leads: a rebalance
    back = Member(broker, instance_id="i0")
    back.client.send(back.join_request(), 9)
    refusal = members[0].client.answer().message
    assert (refusal.error_code, refusal.member_id) == (ErrorCode.FENCED_INSTANCE_ID, members[0].member_id)
    members[1].send_join()
    answers = [back.joined(), members[1].joined()]
    assert [answer.generation_id for answer in answers] == [2, 2]
    assert back.leads


def test_a_static_member_that_is_late_keeps_its_place() -> None:
    broker = VirtualBroker()
    members = [Member(broker, instance_id=f"i{number}") for number in range(2)]
    for member in members:
        member.send_join(session_timeout_ms=600_000)
    broker.advance(10_000)
    settle_round(members)
    members[0].send_join(session_timeout_ms=600_000)
    broker.advance(REBALANCE_MS)
    answer = members[0].joined()
    assert (answer.generation_id, len(answer.members)) == (2, 2)
    assert members[1].heartbeat() == ErrorCode.ILLEGAL_GENERATION


def test_when_no_static_member_joins_the_round_goes_on_until_their_sessions_end() -> None:
    broker = VirtualBroker()
    members = [Member(broker, instance_id=f"i{number}") for number in range(2)]
    for member in members:
        member.send_join(session_timeout_ms=100_000)
    broker.advance(10_000)
    settle_round(members)
    dynamic = Member(broker)
    dynamic.send_join()
    leaving = [MemberIdentity(member_id=dynamic.member_id)]
    broker.client().ask(LeaveGroupRequest(group_id="group", members=leaving), 5)
    assert dynamic.joined().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    broker.advance(REBALANCE_MS)
    group = classic_group(broker)
    assert (group.state_name, group.generation_id) == ("PreparingRebalance", 1)
    broker.advance(REBALANCE_MS)
    assert (group.state_name, group.generation_id) == ("Empty", 2)


# -- one thing at a time -----------------------------------------------------------------------------------------------


def test_a_request_that_came_behind_a_parked_one_finds_a_group_that_is_whole() -> None:
    broker = VirtualBroker()
    first, second = settled_group(broker, 2, version=3)
    # It joins and leaves in one breath: it may leave only when everyone has been told the generation.
    first.client.send_together(
        (first.join_request(), 3), (LeaveGroupRequest(group_id="group", member_id=first.member_id), 1)
    )
    assert first.client.answers == []
    second.send_join()
    joined, left = first.client.take_answers()
    assert (joined.message.generation_id, left.message.error_code) == (2, 0)
    assert second.joined().generation_id == 2
    assert second.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
