"""Members of a consumer group that use the classic protocol: errors and timeouts."""

from typing import Any

import pytest

from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, ConsumerMember, consumer_group
from tests.support.group_members import joined
from tests.support.groups import REBALANCE_MS, SESSION_MS, Member, protocol
from tests.support.virtual_broker import broker_with_topic

UNKNOWN, FENCED = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
INCONSISTENT, ILLEGAL = ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.ILLEGAL_GENERATION


class Mixed:
    """A group with a member of each protocol; the classic one has joined and has not synced."""

    def __init__(self, *overrides: str, instance_id: str | None = None) -> None:
        self.broker = broker_with_topic(AT_ONCE, *overrides, partitions=4)
        self.new = joined(ConsumerMember(self.broker, "new", instance_id="new-instance"))
        self.old = Member(self.broker, instance_id=instance_id)
        self.old.send_join()
        assert self.old.joined().error_code == 0

    def synced(self, **fields: Any) -> Any:
        self.old.send_sync(**fields)
        return self.old.client.response().message

    def pass_time(self, ms: int) -> None:
        """Advance the time and send the heartbeats of the consumer-protocol member."""
        for _ in range(ms // 5_000):
            self.broker.advance(5_000)
            self.new.heartbeat()

    def pass_rebalance_timeout(self) -> None:
        """Advance the time and send the heartbeats of both members; the classic one stays until the timeout."""
        for _ in range(REBALANCE_MS // 5_000):
            assert self.has_old
            self.broker.advance(5_000)
            self.old.heartbeat()
            self.new.heartbeat()

    @property
    def has_old(self) -> bool:
        return self.old.member_id in self.broker.broker.groups.groups["group"].members


@pytest.fixture
def mixed() -> Mixed:
    return Mixed()


# -- JoinGroup ---------------------------------------------------------------------------------------------------------


def test_classic_member_joins_immediately_without_becoming_leader(mixed: Mixed) -> None:
    another = Member(mixed.broker)
    another.send_join()
    response = another.joined()
    assert (response.error_code, response.leader, response.members) == (0, "", [])
    assert (response.protocol_type, response.protocol_name) == ("consumer", "range")
    assert response.generation_id == consumer_group(mixed.broker).assignment_epoch


def test_first_join_without_member_id_returns_member_id_required(mixed: Mixed) -> None:
    client = mixed.broker.client()
    response = client.call(Member(mixed.broker).join_request(), 4)
    assert (response.error_code, len(response.member_id)) == (ErrorCode.MEMBER_ID_REQUIRED, 22)
    assert client.call(Member(mixed.broker).join_request(), 3).error_code == 0


@pytest.mark.parametrize(("version", "code"), [(3, INCONSISTENT), (4, ErrorCode.MEMBER_ID_REQUIRED)])
def test_member_id_is_required_before_the_subscription_is_validated(mixed: Mixed, version: int, code: int) -> None:
    request = Member(mixed.broker).join_request(protocol("range", b"\0"))
    assert mixed.broker.client().call(request, version).error_code == code


INVALID_JOINS = {
    "other protocol type": ({"protocol_type": "connect"}, INCONSISTENT),
    "protocol that the other members do not support": ({"protocols": [protocol("other")]}, INCONSISTENT),
    "no protocols": ({"protocols": []}, INCONSISTENT),
    "malformed metadata": ({"protocols": [protocol(metadata=b"\0")]}, INCONSISTENT),
    "instance id of another member": ({"group_instance_id": "new-instance"}, FENCED),
    "unknown instance id": ({"group_instance_id": "unknown"}, UNKNOWN),
}


@pytest.mark.parametrize(("fields", "code"), INVALID_JOINS.values(), ids=INVALID_JOINS)
def test_join_with_invalid_fields_is_rejected_without_a_member_id(
    mixed: Mixed, fields: dict[str, Any], code: int
) -> None:
    request = Member(mixed.broker).join_request(**({"member_id": "another"} | fields))
    response = mixed.broker.client().call(request, 9)
    assert (response.error_code, response.member_id) == (code, "")
    assert set(consumer_group(mixed.broker).members) == {"new", mixed.old.member_id}


def test_join_of_a_full_group_is_rejected() -> None:
    mixed = Mixed("group.consumer.max.size=2")
    request = Member(mixed.broker).join_request(member_id="another")
    assert mixed.broker.client().call(request, 9).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_disabled_migration_policy_rejects_classic_members() -> None:
    broker = broker_with_topic(AT_ONCE, "group.consumer.migration.policy=disabled", partitions=4)
    ConsumerMember(broker, "new").join()
    request = Member(broker).join_request(member_id="another")
    assert broker.client().call(request, 9).error_code == INCONSISTENT


def test_static_member_returns_with_the_consumer_protocol() -> None:
    mixed = Mixed(instance_id="i")
    new = ConsumerMember(mixed.broker, "again", instance_id="i")
    assert new.join().error_code == 0, "a classic static member is replaced without leaving first"
    assert set(consumer_group(mixed.broker).members) == {"new", "again"}
    assert mixed.old.heartbeat() == FENCED


# -- SyncGroup and Heartbeat -------------------------------------------------------------------------------------------


MEMBER_FIELDS = [
    pytest.param({}, 0, id="valid"),
    pytest.param({"member_id": "x"}, UNKNOWN, id="unknown member id"),
    pytest.param({"member_id": "new"}, UNKNOWN, id="member of the consumer protocol"),
    pytest.param({"group_instance_id": "new-instance"}, FENCED, id="instance id of another member"),
    pytest.param({"group_instance_id": "x"}, UNKNOWN, id="unknown instance id"),
    pytest.param({"generation_id": 99}, ILLEGAL, id="other generation"),
]
PROTOCOL_FIELDS = [
    pytest.param({"protocol_type": "connect"}, INCONSISTENT, id="other protocol type"),
    pytest.param({"protocol_name": "other"}, INCONSISTENT, id="other protocol name"),
]


@pytest.mark.parametrize(("fields", "code"), MEMBER_FIELDS + PROTOCOL_FIELDS)
def test_sync_group_validates_its_fields(fields: dict[str, Any], code: int) -> None:
    assert Mixed().synced(**fields).error_code == code


def test_sync_group_version_4_needs_no_protocol_name(mixed: Mixed) -> None:
    request = mixed.old.sync_request(protocol_type=None, protocol_name=None)
    assert mixed.old.client.call(request, 4).error_code == 0


def test_sync_group_with_an_outdated_assignment_returns_rebalance_in_progress(mixed: Mixed) -> None:
    mixed.new.heartbeat(subscribed_topic_names=[])
    assert mixed.synced().error_code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(("fields", "code"), MEMBER_FIELDS)
def test_heartbeat_validates_its_fields(fields: dict[str, Any], code: int) -> None:
    assert Mixed().old.heartbeat(**fields) == code


def test_heartbeat_requests_a_rejoin_when_an_awaited_partition_becomes_free(mixed: Mixed) -> None:
    assert mixed.old.heartbeat() == 0, "the other member has not revoked a partition yet"
    mixed.new.heartbeat()
    mixed.new.heartbeat()
    assert mixed.old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


# -- timeouts ----------------------------------------------------------------------------------------------------------


def test_member_without_heartbeats_is_removed_when_its_session_ends(mixed: Mixed) -> None:
    mixed.synced()
    mixed.pass_time(SESSION_MS - 5_000)
    assert mixed.has_old
    mixed.pass_time(5_000)
    assert not mixed.has_old


@pytest.mark.parametrize("syncs", [pytest.param(True, id="syncs"), pytest.param(False, id="does not sync")])
def test_member_that_does_not_sync_within_the_rebalance_timeout_is_removed(mixed: Mixed, syncs: bool) -> None:
    if syncs:
        mixed.synced()
    mixed.new.clings = True  # so that no heartbeat requests a rejoin
    mixed.pass_rebalance_timeout()
    assert mixed.has_old == syncs


@pytest.mark.parametrize("rejoins", [pytest.param(True, id="rejoins"), pytest.param(False, id="does not rejoin")])
def test_member_that_does_not_rejoin_within_the_rebalance_timeout_is_removed(mixed: Mixed, rejoins: bool) -> None:
    mixed.synced()
    mixed.new.heartbeat()
    mixed.new.heartbeat()
    assert mixed.old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    if rejoins:
        mixed.old.send_join()
        assert mixed.old.joined().error_code == 0
        mixed.synced()
    mixed.pass_rebalance_timeout()
    assert mixed.has_old == rejoins


# -- LeaveGroup --------------------------------------------------------------------------------------------------------


def test_leave_group_removes_members_of_both_protocols() -> None:
    mixed = Mixed(instance_id="i")
    leaving = [
        MemberIdentity(member_id="x"),
        MemberIdentity(member_id="x", group_instance_id="unknown"),
        MemberIdentity(member_id="x", group_instance_id="i"),
        MemberIdentity(member_id="", group_instance_id="i"),
        MemberIdentity(member_id="new"),
    ]
    response = mixed.broker.client().call(LeaveGroupRequest(group_id="group", members=leaving), 5)
    assert [member.error_code for member in response.members] == [UNKNOWN, UNKNOWN, FENCED, 0, 0]
    assert consumer_group(mixed.broker).is_empty


def test_leave_group_of_an_unknown_member_keeps_the_group_epoch(mixed: Mixed) -> None:
    epoch = consumer_group(mixed.broker).group_epoch
    leaving = [MemberIdentity(member_id="x")]
    mixed.broker.client().call(LeaveGroupRequest(group_id="group", members=leaving), 5)
    assert consumer_group(mixed.broker).group_epoch == epoch
