"""Online migration of groups between the classic and the consumer protocol."""

from typing import Any

import pytest

from sluice.broker.coordinator.group.classic.group import ClassicGroup, ClassicState
from sluice.broker.coordinator.group.consumer.group import ConsumerState
from sluice.broker.coordinator.group.consumer_protocol import write_assignment
from sluice.protocol.apis.join_group import JoinGroupRequestProtocol
from sluice.protocol.codec.compile import encoder
from sluice.protocol.consumer_protocol import Assignment, Subscription, TopicPartitions, read_embedded
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, ConsumerMember, consumer_group
from tests.support.group_members import joined
from tests.support.groups import SESSION_MS, Member, protocol, subscription
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

OFF = "group.consumer.migration.policy=disabled"


def make_broker(*overrides: str) -> VirtualBroker:
    return broker_with_topic(AT_ONCE, "group.initial.rebalance.delay.ms=0", *overrides, partitions=4)


@pytest.fixture
def broker() -> VirtualBroker:
    return make_broker()


def assignment(*partitions: int, topic: str = "t", user_data: bytes | None = None) -> bytes:
    """Encode an assignment in version 1, as a group leader does."""
    parts: list[bytes | memoryview] = [b"\0\1"]
    topics = [TopicPartitions(topic=topic, partitions=list(partitions))]
    encoder(Assignment, 1)(Assignment(assigned_partitions=topics, user_data=user_data), parts)
    return b"".join(parts)


def classic_group(broker: VirtualBroker, assigned: bytes | None = None, **fields: Any) -> Member:
    """Return the member of a stable one-member group in generation 1; by default it is assigned all of t."""
    member = Member(broker, **fields)
    member.send_join()
    assert member.joined().error_code == 0
    member.send_sync({member.member_id: assignment(0, 1, 2, 3) if assigned is None else assigned})
    assert member.client.response().message.error_code == 0
    return member


def downgraded(broker: VirtualBroker) -> ClassicGroup:
    group = broker.broker.groups.groups["group"]
    assert isinstance(group, ClassicGroup)
    return group


def partitions_of(member: Member) -> list[int]:
    """Return the partitions that SyncGroup assigns to a classic member."""
    member.send_sync()
    response = member.client.response().message
    assert response.error_code == 0
    read = read_embedded(Assignment, response.assignment)
    assert read is not None
    return [partition for topic in read.assigned_partitions for partition in topic.partitions]


def rejoin(member: Member, *owned: int) -> None:
    """Rejoin with owned partitions; the response is immediate."""
    data = b"\0\1" + subscription("t")[2:] + (1).to_bytes(4) + b"\0\1t" + len(owned).to_bytes(4)
    data += b"".join(partition.to_bytes(4) for partition in owned)
    member.client.send(member.join_request(JoinGroupRequestProtocol(name="range", metadata=data)), member.version)
    assert member.joined().error_code == 0


# -- upgrade -----------------------------------------------------------------------------------------------------------


def test_first_consumer_protocol_member_upgrades_a_classic_group(broker: VirtualBroker) -> None:
    old = classic_group(broker)
    new = ConsumerMember(broker, "new")
    assert new.join().error_code == 0
    group = consumer_group(broker)
    assert (new.epoch, new.partitions, set(group.members)) == (2, {}, {old.member_id, "new"})
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    rejoin(old, 0, 1, 2, 3)
    assert old.generation_id == 1, "it must revoke partitions before its next generation"
    assert partitions_of(old) == [0, 1]
    new.heartbeat()
    assert new.partitions == {}
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    rejoin(old, 0, 1)
    assert old.generation_id == 2
    assert partitions_of(old) == [0, 1]
    new.heartbeat()
    assert new.partitions == {"t": {2, 3}}
    assert old.heartbeat() == 0
    assert group.state is ConsumerState.STABLE
    assert old.commit() == 0


def test_upgrade_makes_a_member_with_a_pending_join_rejoin(broker: VirtualBroker) -> None:
    old = classic_group(broker)
    late = Member(broker)
    late.send_join()
    assert ConsumerMember(broker, "new").join().error_code == 0
    assert late.client.response().message.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert set(consumer_group(broker).members) == {old.member_id, late.member_id, "new"}


def test_upgrade_makes_a_member_with_a_pending_sync_rejoin(broker: VirtualBroker) -> None:
    one = classic_group(broker)
    two = Member(broker)
    two.send_join()
    one.send_join()
    one.joined()
    two.joined()
    follower = two if one.leads else one
    follower.send_sync()
    assert ConsumerMember(broker, "new").join().error_code == 0
    assert follower.client.response().message.error_code == ErrorCode.REBALANCE_IN_PROGRESS


NOT_UPGRADED = {
    "policy disabled": ([OFF], None, "online upgrade is disabled"),
    "policy downgrade": (["group.consumer.migration.policy=downgrade"], None, "online upgrade is disabled"),
    "malformed assignment": ([], b"\0", "the embedded consumer protocol is malformed"),
    "custom assignor": ([], assignment(0, user_data=b"x"), "an unsupported custom assignor is in use"),
    "partition assigned twice": ([], assignment(0, 0), "members share partitions"),
}


@pytest.mark.parametrize(("overrides", "assigned", "problem"), NOT_UPGRADED.values(), ids=NOT_UPGRADED)
def test_classic_group_that_cannot_be_upgraded_stays_classic(
    overrides: list[str], assigned: bytes | None, problem: str
) -> None:
    broker = make_broker(*overrides)
    old = classic_group(broker, assigned)
    response = ConsumerMember(broker, "new").join()
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert response.error_message.startswith(f"Cannot upgrade classic group group to consumer group because {problem}")
    assert old.heartbeat() == 0


def test_classic_group_of_another_protocol_type_is_not_upgraded(broker: VirtualBroker) -> None:
    connect = Member(broker)
    connect.send_join(protocol(metadata=b""), protocol_type="connect")
    connect.joined()
    response = ConsumerMember(broker, "new").join()
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "does not use the consumer embedded protocol" in response.error_message


def test_classic_group_above_the_maximum_size_is_not_upgraded() -> None:
    broker = make_broker("group.consumer.max.size=1")
    classic_group(broker)
    assert ConsumerMember(broker, "new").join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert isinstance(broker.broker.groups.groups["group"], ClassicGroup)


@pytest.mark.parametrize("policy", [[], [OFF]], ids=["default policy", "policy disabled"])
def test_empty_group_changes_its_type_under_any_policy(policy: list[str]) -> None:
    broker = make_broker(*policy)
    old = classic_group(broker)
    assert old.commit(5) == 0
    old.leave()
    new = ConsumerMember(broker, "new")
    assert new.join().error_code == 0
    assert broker.broker.groups.offsets.of_group("group")["t", 0].offset == 5
    new.leave()
    again = classic_group(broker)
    assert isinstance(broker.broker.groups.groups["group"], ClassicGroup)
    assert broker.broker.groups.offsets.of_group("group")["t", 0].offset == 5
    assert again.heartbeat() == 0


def test_classic_join_with_a_member_id_is_rejected_by_an_empty_consumer_group(broker: VirtualBroker) -> None:
    joined(ConsumerMember(broker, "new")).leave()
    old = Member(broker)
    old.member_id = "old"
    old.send_join()
    assert old.joined().error_code == ErrorCode.UNKNOWN_MEMBER_ID


# -- downgrade ---------------------------------------------------------------------------------------------------------


def mixed_group(broker: VirtualBroker) -> tuple[Member, ConsumerMember]:
    """Return one member of each protocol, with two partitions each."""
    old, new = classic_group(broker, assignment(0, 1)), joined(ConsumerMember(broker, "new"))
    rejoin(old, 0, 1)
    assert partitions_of(old) == [0, 1]
    new.heartbeat()
    assert new.partitions == {"t": {2, 3}}
    return old, new


def test_group_is_downgraded_when_its_last_consumer_protocol_member_leaves(broker: VirtualBroker) -> None:
    old, new = mixed_group(broker)
    assert new.leave().error_code == 0
    group = downgraded(broker)
    assert (group.state, group.generation_id) == (ClassicState.PREPARING_REBALANCE, 2)
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    old.send_join()
    assert old.joined().generation_id == 3
    assert old.leads


def test_group_is_downgraded_when_its_last_consumer_protocol_member_times_out(broker: VirtualBroker) -> None:
    old, _ = mixed_group(broker)
    for _ in range(9):
        broker.advance(5_000)
        old.heartbeat()
    downgraded(broker)
    for _ in range(2):
        broker.advance(SESSION_MS - 1)
        assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "its session continues"


def test_group_is_downgraded_when_a_static_member_returns_with_the_classic_protocol(broker: VirtualBroker) -> None:
    new = joined(ConsumerMember(broker, "new", instance_id="i"))
    old = Member(broker, instance_id="i")
    old.send_join()
    response = old.joined()
    assert (response.error_code, response.generation_id) == (0, 2)
    group = downgraded(broker)
    assert (group.state, group.static_members) == (ClassicState.STABLE, {"i": old.member_id})
    assert partitions_of(old) == [0, 1, 2, 3]
    assert new.heartbeat().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_downgrade_starts_a_rebalance_if_the_returning_member_changes_its_topics(broker: VirtualBroker) -> None:
    broker.topic("u")
    joined(ConsumerMember(broker, "new", instance_id="i"))
    old = Member(broker, instance_id="i")
    old.send_join(protocol(metadata=subscription("u")))
    assert old.joined().error_code == 0
    group = downgraded(broker)
    assert (group.state, group.generation_id) == (ClassicState.PREPARING_REBALANCE, 2)


def test_policy_upgrade_disables_the_downgrade() -> None:
    broker = make_broker("group.consumer.migration.policy=upgrade")
    old, new = mixed_group(broker)
    new.leave()
    assert set(consumer_group(broker).members) == {old.member_id}


def test_consumer_group_above_the_classic_maximum_size_is_not_downgraded() -> None:
    broker = make_broker("group.max.size=1")
    old, new = mixed_group(broker)
    another = Member(broker)
    another.send_join()
    assert another.joined().error_code == 0
    new.leave()
    assert set(consumer_group(broker).members) == {old.member_id, another.member_id}


# -- encoded assignments -----------------------------------------------------------------------------------------------


def test_assignment_is_encoded_in_the_version_of_the_members_metadata(broker: VirtualBroker) -> None:
    assigned = {broker.partition().topic.topic_id: [1, 0], b"x" * 16: [0]}
    for version, written in ((0, b"\0\0"), (3, b"\0\3"), (9, b"\0\3")):
        data = write_assignment(assigned, broker.broker.cluster, version.to_bytes(2))
        assert data[:2] == written
        read = read_embedded(Assignment, data)
        assert read is not None
        assert [(topic.topic, topic.partitions) for topic in read.assigned_partitions] == [("t", [0, 1])]


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\xff\xff", b"\0\1\0\0\0\1"])
def test_malformed_subscription_or_assignment_is_read_as_none(data: bytes) -> None:
    assert read_embedded(Subscription, data) is None
    assert read_embedded(Assignment, data) is None
