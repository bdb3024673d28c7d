"""Members that speak the classic protocol in a consumer group: every refusal, and what they have to do in time."""

from typing import Any

import pytest

from sluice.protocol.apis.join_group import JoinGroupRequestProtocol
from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, ConsumerMember, consumer_group
from tests.support.groups import REBALANCE_MS, SESSION_MS, Member, protocol
from tests.support.virtual_broker import VirtualBroker

UNKNOWN, FENCED = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
INCONSISTENT, ILLEGAL = ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.ILLEGAL_GENERATION


class Mixed:
    """A group with a member of each protocol; the classic one has joined, and may ask for its assignment."""

    def __init__(self, *overrides: str, instance_id: str | None = None) -> None:
        self.broker = VirtualBroker(AT_ONCE, *overrides)
        self.broker.topic("t", 4)
        self.new = ConsumerMember(self.broker, "new", instance_id="new-instance")
        self.new.join()
        self.old = Member(self.broker, instance_id=instance_id)
        self.old.send_join()
        assert self.old.joined().error_code == 0

    def synced(self, **fields: Any) -> Any:
        self.old.send_sync(**fields)
        return self.old.client.answer().message

    def pass_time(self, ms: int, step_ms: int = 5_000) -> None:
        """Time passes, and the member of the new protocol does what it has to."""
        for _ in range(ms // step_ms):
            self.broker.advance(step_ms)
            self.new.heartbeat()

    @property
    def has_old(self) -> bool:
        return self.old.member_id in self.broker.broker.groups.groups["group"].members


# -- JoinGroup ---------------------------------------------------------------------------------------------------------


def test_a_member_joins_at_once_and_leads_nothing() -> None:
    mixed = Mixed()
    another = Member(mixed.broker)
    another.send_join()
    response = another.joined()
    assert (response.error_code, response.leader, response.members) == (0, "", [])
    assert (response.protocol_type, response.protocol_name) == ("consumer", "range")
    assert response.generation_id == consumer_group(mixed.broker).assignment_epoch


def test_a_member_without_id_is_given_one_first() -> None:
    mixed = Mixed()
    client = mixed.broker.client()
    response = client.ask(Member(mixed.broker).join_request(), 4)
    assert (response.error_code, len(response.member_id)) == (ErrorCode.MEMBER_ID_REQUIRED, 22)
    assert client.ask(Member(mixed.broker).join_request(), 3).error_code == 0


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"protocol_type": "connect"}, INCONSISTENT, id="of another type"),
        pytest.param({"protocols": [protocol("other")]}, INCONSISTENT, id="with another protocol than its fellows"),
        pytest.param({"protocols": []}, INCONSISTENT, id="without protocols"),
        pytest.param(
            {"protocols": [JoinGroupRequestProtocol(name="range", metadata=b"\0")]},
            INCONSISTENT,
            id="with metadata that nobody can read",
        ),
        pytest.param({"group_instance_id": "new-instance"}, FENCED, id="with another's instance id"),
        pytest.param({"group_instance_id": "unknown"}, UNKNOWN, id="with an instance id that nobody has"),
    ],
)
def test_a_member_with_an_id_does_not_fit(fields: dict[str, Any], code: int) -> None:
    mixed = Mixed()
    request = Member(mixed.broker).join_request(**({"member_id": "another"} | fields))
    assert mixed.broker.client().ask(request, 9).error_code == code
    assert set(consumer_group(mixed.broker).members) == {"new", mixed.old.member_id}


def test_a_group_that_is_full_takes_no_more() -> None:
    mixed = Mixed("group.consumer.max.size=2")
    request = Member(mixed.broker).join_request(member_id="another")
    assert mixed.broker.client().ask(request, 9).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_where_migration_is_off_no_classic_member_joins() -> None:
    broker = VirtualBroker(AT_ONCE, "group.consumer.migration.policy=disabled")
    broker.topic("t", 4)
    ConsumerMember(broker, "new").join()
    request = Member(broker).join_request(member_id="another")
    assert broker.client().ask(request, 9).error_code == INCONSISTENT


def test_a_static_member_comes_back_in_the_words_of_either_protocol() -> None:
    mixed = Mixed(instance_id="i")
    new = ConsumerMember(mixed.broker, "again", instance_id="i")
    assert new.join().error_code == 0, "classic members do not say that they go for a while"
    assert set(consumer_group(mixed.broker).members) == {"new", "again"}
    assert mixed.old.heartbeat() == FENCED


# -- SyncGroup and Heartbeat -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({}, 0, id="as told"),
        pytest.param({"member_id": "x"}, UNKNOWN, id="by nobody"),
        pytest.param({"member_id": "new"}, UNKNOWN, id="by a member of the new protocol"),
        pytest.param({"group_instance_id": "new-instance"}, FENCED, id="with another's instance id"),
        pytest.param({"group_instance_id": "x"}, UNKNOWN, id="with an instance id that nobody has"),
        pytest.param({"generation_id": 99}, ILLEGAL, id="of another generation"),
        pytest.param({"protocol_type": "connect"}, INCONSISTENT, id="of another type"),
        pytest.param({"protocol_name": "other"}, INCONSISTENT, id="of another protocol"),
    ],
)
def test_a_member_asks_for_its_assignment(fields: dict[str, Any], code: int) -> None:
    assert Mixed().synced(**fields).error_code == code


def test_a_member_of_an_older_version_does_not_name_the_protocol() -> None:
    mixed = Mixed()
    request = mixed.old.sync_request(protocol_type=None, protocol_name=None)
    assert mixed.old.client.ask(request, 4).error_code == 0


def test_a_member_asks_for_an_assignment_that_is_not_the_last() -> None:
    mixed = Mixed()
    mixed.new.heartbeat(subscribed_topic_names=[])
    assert mixed.synced().error_code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({}, 0, id="as told"),
        pytest.param({"member_id": "x"}, UNKNOWN, id="by nobody"),
        pytest.param({"member_id": "new"}, UNKNOWN, id="by a member of the new protocol"),
        pytest.param({"group_instance_id": "new-instance"}, FENCED, id="with another's instance id"),
        pytest.param({"generation_id": 99}, ILLEGAL, id="of another generation"),
    ],
)
def test_a_heartbeat_is_answered(fields: dict[str, Any], code: int) -> None:
    assert Mixed().old.heartbeat(**fields) == code


def test_a_member_joins_again_when_what_it_waited_for_is_free() -> None:
    mixed = Mixed()
    assert mixed.old.heartbeat() == 0, "the other has not given anything up"
    mixed.new.heartbeat()
    mixed.new.heartbeat()
    assert mixed.old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


# -- time --------------------------------------------------------------------------------------------------------------


def test_a_member_that_is_silent_for_its_session_is_out() -> None:
    mixed = Mixed()
    mixed.synced()
    mixed.pass_time(SESSION_MS - 5_000)
    assert mixed.has_old
    mixed.pass_time(5_000)
    assert not mixed.has_old


@pytest.mark.parametrize("asks", [pytest.param(True, id="asks"), pytest.param(False, id="does not ask")])
def test_a_member_has_its_rebalance_timeout_to_ask_for_its_assignment(asks: bool) -> None:
    mixed = Mixed()
    if asks:
        mixed.synced()
    mixed.new.clings = True  # so that there is nothing to join again for
    for _ in range(REBALANCE_MS // 5_000):
        assert mixed.has_old
        mixed.broker.advance(5_000)
        mixed.old.heartbeat()
        mixed.new.heartbeat()
    assert mixed.has_old == asks


@pytest.mark.parametrize("joins", [pytest.param(True, id="joins"), pytest.param(False, id="does not join")])
def test_a_member_has_its_rebalance_timeout_to_join_again(joins: bool) -> None:
    mixed = Mixed()
    mixed.synced()
    mixed.new.heartbeat()
    mixed.new.heartbeat()
    assert mixed.old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    if joins:
        mixed.old.send_join()
        assert mixed.old.joined().error_code == 0
        mixed.synced()
    for _ in range(REBALANCE_MS // 5_000):
        assert mixed.has_old
        mixed.broker.advance(5_000)
        mixed.old.heartbeat()
        mixed.new.heartbeat()
    assert mixed.has_old == joins


# -- LeaveGroup --------------------------------------------------------------------------------------------------------


def test_members_of_either_protocol_leave_together() -> None:
    mixed = Mixed(instance_id="i")
    leaving = [
        MemberIdentity(member_id="x"),
        MemberIdentity(member_id="x", group_instance_id="unknown"),
        MemberIdentity(member_id="x", group_instance_id="i"),
        MemberIdentity(member_id="", group_instance_id="i"),
        MemberIdentity(member_id="new"),
    ]
    response = mixed.broker.client().ask(LeaveGroupRequest(group_id="group", members=leaving), 5)
    assert [member.error_code for member in response.members] == [UNKNOWN, UNKNOWN, FENCED, 0, 0]
    assert consumer_group(mixed.broker).is_empty


def test_nobody_leaves() -> None:
    mixed = Mixed()
    epoch = consumer_group(mixed.broker).group_epoch
    leaving = [MemberIdentity(member_id="x")]
    mixed.broker.client().ask(LeaveGroupRequest(group_id="group", members=leaving), 5)
    assert consumer_group(mixed.broker).group_epoch == epoch
