"""Groups and offsets replayed from __consumer_offsets, with records of Kafka and of Sluice."""

import logging

import pytest

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.classic.group import EMPTY, STABLE
from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.consumer.member import ClassicMetadata, MemberState
from sluice.broker.coordinator.group.consumer.member import ConsumerMember as KnownMember
from sluice.broker.coordinator.group.modern_group import TimerKind
from sluice.broker.coordinator.group.offsets import CommittedOffset
from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID
from tests.support.consumer_groups import AT_ONCE, ConsumerMember, consumer_group
from tests.support.coordinators import broker_with_recorded, pictured, reload_groups
from tests.support.group_members import converge, joined
from tests.support.groups import (
    SESSION_MS,
    Member,
    classic_group,
    commit_request,
    fetch_request,
    fetched,
    settled_group,
    subscription,
)
from tests.support.transactions import begun
from tests.support.virtual_broker import WALL_START_MS, Client, VirtualBroker, broker_with_topic

T = bytes(range(16))
OFFSET_KEY = "0001 0001 67 0001 74 00000002"  # group "g", topic "t", partition 2
GROUP_KEY = "0002 0001 67"


def from_hex(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def loaded(*records: KeyValue) -> VirtualBroker:
    """Return a broker that has loaded these records of the group "g"."""
    broker = VirtualBroker()
    groups = broker.broker.groups
    assert groups.log.append("g", records, WALL_START_MS) == ErrorCode.NONE
    reload_groups(broker)
    return broker


def committed(broker: VirtualBroker) -> CommittedOffset:
    return broker.broker.groups.offsets.of_group("g")["t", 2]


# -- versions of Kafka's records ---------------------------------------------------------------------------------------


OFFSET_RECORDS = {
    "version 0": ("0000 0000000000000005 0001 6d 0000000000000007", CommittedOffset(5, -1, "m", 7, None, ZERO_UUID, 0)),
    "version 1 with expiry time": (
        "0001 0000000000000005 0001 6d 0000000000000007 0000000000000009",
        CommittedOffset(5, -1, "m", 7, 9, ZERO_UUID, 0),
    ),
    "version 1 without expiry time": (
        "0001 0000000000000005 0001 6d 0000000000000007 ffffffffffffffff",
        CommittedOffset(5, -1, "m", 7, None, ZERO_UUID, 0),
    ),
    "version 2": ("0002 0000000000000005 0001 6d 0000000000000007", CommittedOffset(5, -1, "m", 7, None, ZERO_UUID, 0)),
    "version 3 with leader epoch": (
        "0003 0000000000000005 00000003 0001 6d 0000000000000007",
        CommittedOffset(5, 3, "m", 7, None, ZERO_UUID, 0),
    ),
    "version 4 with topic id": (
        f"0004 0000000000000005 00000003 02 6d 0000000000000007 01 00 10 {T.hex()}",
        CommittedOffset(5, 3, "m", 7, None, T, 0),
    ),
    "version 4 with an unknown tag": (
        "0004 0000000000000005 00000003 02 6d 0000000000000007 01 05 01 ff",
        CommittedOffset(5, 3, "m", 7, None, ZERO_UUID, 0),
    ),
}


@pytest.mark.parametrize(("value", "expected"), OFFSET_RECORDS.values(), ids=OFFSET_RECORDS)
def test_offset_records_of_all_versions_are_read(value: str, expected: CommittedOffset) -> None:
    assert committed(loaded((from_hex(OFFSET_KEY), from_hex(value)))) == expected


def test_offset_records_before_kafka_0_9_are_read() -> None:
    key = from_hex("0000 0001 67 0001 74 00000002")
    assert committed(loaded((key, from_hex("0000 0000000000000005 0000 0000000000000007")))).offset == 5


HEAD = "0008 636f6e73756d6572 00000003 0005 72616e6765 0001 6d"  # type consumer, generation 3, protocol range, leader m
TIME = "0000000000000009"
# One member; versions from 1 on have a rebalance timeout, and versions from 3 on an instance id.
MEMBER_0 = "00000001 0001 6d 0001 63 0002 2f68 00002710 00000004 01020304 00000001 05"
MEMBER_1 = "00000001 0001 6d 0001 63 0002 2f68 00007530 00002710 00000004 01020304 00000001 05"
MEMBER_3 = "00000001 0001 6d 0001 69 0001 63 0002 2f68 00007530 00002710 00000004 01020304 00000001 05"
FLEXIBLE = (
    "09 636f6e73756d6572 00000003 06 72616e6765 02 6d 0000000000000009 02"
    "02 6d 02 69 02 63 03 2f68 00007530 00002710 05 01020304 02 05 00 00"
)


CLASSIC = {
    "version 0: the session timeout is also the rebalance timeout": (f"0000 {HEAD} {MEMBER_0}", 10_000, None, None),
    "version 1": (f"0001 {HEAD} {MEMBER_1}", 30_000, None, None),
    "version 2 with state timestamp": (f"0002 {HEAD} {TIME} {MEMBER_1}", 30_000, 9, None),
    "version 3 with static member": (f"0003 {HEAD} {TIME} {MEMBER_3}", 30_000, 9, "i"),
    "version 4 is flexible": (f"0004 {FLEXIBLE}", 30_000, 9, "i"),
}


@pytest.mark.parametrize(("value", "rebalance_ms", "state_since_ms", "instance_id"), CLASSIC.values(), ids=CLASSIC)
def test_classic_group_records_of_all_versions_are_read(
    value: str, rebalance_ms: int, state_since_ms: int | None, instance_id: str | None
) -> None:
    group = classic_group(loaded((from_hex(GROUP_KEY), from_hex(value))), "g")
    assert (group.state, group.generation_id, group.leader_id) == (STABLE, 3, "m")
    assert (group.protocol_type, group.protocol_name) == ("consumer", "range")
    [member] = group.members.values()
    assert (member.member_id, member.client_id, member.client_host) == ("m", "c", "/h")
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10_000, rebalance_ms)
    assert (member.metadata("range"), member.assignment) == (b"\1\2\3\4", b"\5")
    assert (group.state_since_ms, member.group_instance_id) == (state_since_ms, instance_id)
    assert group.static_members == ({} if instance_id is None else {"i": "m"})


def test_empty_group_without_state_timestamp_retains_offsets_from_their_commit() -> None:
    offset = from_hex(OFFSET_KEY), from_hex("0002 0000000000000005 0000 0000000000000007")
    group = from_hex(GROUP_KEY), from_hex("0001 0008 636f6e73756d6572 00000003 ffff ffff 00000000")
    broker = loaded(group, offset)
    loaded_group = classic_group(broker, "g")
    assert (loaded_group.state, loaded_group.retention_start_ms(committed(broker))) == (EMPTY, 7)


def test_records_written_by_apache_kafka_are_read() -> None:
    broker = broker_with_recorded()
    groups = broker.broker.groups
    assert {name: (group.type, group.state_name) for name, group in groups.groups.items()} == {
        "classic": ("classic", "Stable"),
        "tx": ("classic", "Stable"),
        "modern": ("consumer", "Stable"),
        "regex": ("consumer", "Stable"),
    }
    classic = classic_group(broker, "classic")
    assert (classic.generation_id, len(classic.members), list(classic.static_members)) == (2, 2, ["i1"])
    assert classic.subscribed_topics == frozenset({"t"})
    modern, regex = consumer_group(broker, "modern"), consumer_group(broker, "regex")
    assert (modern.group_epoch, modern.assignment_epoch, list(modern.static_members)) == (3, 3, ["j1"])
    assert sorted(set(indexes) for target in modern.target.values() for indexes in target.values()) == [{0}, {1}]
    assert [dict(epochs) for m in modern.members.values() for epochs in m.assigned.values()] == [{1: 3}, {0: 2}]
    assert {name: resolved.topics for name, resolved in regex.regexes.items()} == {"(^t.*)": {"t"}}
    offsets = {name: {at: one.offset for at, one in groups.offsets.of_group(name).items()} for name in groups.groups}
    assert offsets == {
        "classic": {("t", 0): 4, ("t", 1): 3},
        "modern": {("t", 0): 5, ("t", 1): 5},
        "regex": {("t", 0): 2, ("t", 1): 2},
        "tx": {("t", 0): 2},  # from a committed transaction; a second was aborted, a third is open
    }
    assert list(groups.offsets.unstable("tx")) == [("t", 0)]


def test_records_of_unsupported_group_types_are_skipped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    unknown = from_hex("007f 0001 67"), from_hex("0000 00000001 00")
    offset = from_hex(OFFSET_KEY), from_hex("0002 0000000000000005 0000 0000000000000007")
    with caplog.at_level(logging.WARNING, "sluice.broker"):
        broker = loaded(unknown, offset)
    assert committed(broker).offset == 5
    assert [vars(line)["type"] for line in caplog.records] == [127]


# -- records of Sluice -------------------------------------------------------------------------------------------------


def test_classic_group_is_unchanged_after_a_load(topic: Topic, broker: VirtualBroker) -> None:
    members = settled_group(broker, 3)
    members[0].commit(5)
    before = pictured(broker)
    reload_groups(broker)
    assert pictured(broker) == before
    assert [member.heartbeat() for member in members] == [0, 0, 0]
    members[1].send_sync()
    assert members[1].client.response().message.assignment == members[1].member_id.encode()
    assert members[2].commit(6) == ErrorCode.NONE


def test_load_restarts_member_sessions(broker: VirtualBroker) -> None:
    settled_group(broker, 1)
    broker.advance(SESSION_MS - 1)
    reload_groups(broker)
    broker.advance(SESSION_MS - 1)
    assert classic_group(broker).state is STABLE
    broker.advance(1)
    assert classic_group(broker).state is EMPTY


def test_static_member_keeps_its_new_member_id_after_a_load(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1, instance_id="i")
    again = Member(broker, instance_id="i")
    again.send_join()
    assert again.joined().error_code == ErrorCode.NONE
    reload_groups(broker)
    assert again.heartbeat() == ErrorCode.NONE
    assert member.heartbeat() == ErrorCode.FENCED_INSTANCE_ID


def test_group_above_the_maximum_size_rebalances_after_a_load() -> None:
    broker = VirtualBroker("group.max.size=2")
    members = settled_group(broker, 2)
    broker.broker.groups.classic._max_size = 1  # as after a restart with another setting
    reload_groups(broker)
    assert [member.heartbeat() for member in members] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2


def test_consumer_group_is_unchanged_after_a_load() -> None:
    broker = broker_with_topic(AT_ONCE, partitions=4)
    broker.topic("u")
    members = [
        ConsumerMember(broker, "a", topics=["t", "u"]),
        ConsumerMember(broker, "b", instance_id="i", assignor="range"),
        ConsumerMember(broker, "c", regex="u.*"),
    ]
    for member in members:
        member.join()
    broker.advance(11_000)
    converge(*members)
    before = pictured(broker)
    reload_groups(broker)
    assert pictured(broker) == before
    for member in members:
        response = member.heartbeat()
        assert (response.error_code, response.assignment) == (ErrorCode.NONE, None)
    assert pictured(broker) == before


def test_load_restarts_the_rebalance_timeout_of_a_member_that_must_revoke() -> None:
    broker = broker_with_topic(AT_ONCE, "group.consumer.session.timeout.ms=60000", partitions=2)
    first = joined(ConsumerMember(broker, "a", rebalance_timeout_ms=20_000))
    joined(ConsumerMember(broker, "b"))
    first.clings = True
    first.heartbeat()
    assert consumer_group(broker).members["a"].state is MemberState.UNREVOKED_PARTITIONS
    broker.advance(19_000)
    reload_groups(broker)
    group = consumer_group(broker)
    assert set(group.timers) == {(TimerKind.SESSION, "a"), (TimerKind.SESSION, "b"), (TimerKind.REVOKE, "a")}
    broker.advance(19_999)
    assert "a" in group.members
    broker.advance(1)
    assert "a" not in group.members


def test_classic_member_of_a_consumer_group_is_unchanged_after_a_load() -> None:
    group = ConsumerGroup("g")
    member = KnownMember("m", 1, classic=ClassicMetadata(9, (("range", b"\1"),)))
    group.put(member)
    broker = loaded(group.member_record(member), group.group_record(), group.current_record(member))
    assert consumer_group(broker, "g").members == group.members


def test_assignment_records_before_kafka_4_1_get_the_member_epoch() -> None:
    member = from_hex("0005 0001 67 0001 6d"), from_hex("0000 00 00 02 63 03 2f68 02 02 74 00 00000009 00 00")
    current = from_hex("0008 0001 67 0001 6d"), from_hex(f"0000 00000003 00000002 00 02 {T.hex()} 02 00000001 00 01 00")
    epoch = from_hex("0003 0001 67"), from_hex("0000 00000003 00")
    topics = from_hex("0004 0001 67"), from_hex(f"0000 02 {T.hex()} 02 74 00000002 01 00 00")
    broker = loaded(member, current, epoch, topics)
    group = consumer_group(broker, "g")
    assert group.members["m"].assigned == {T: {1: 3}}
    assert group.has_partition_metadata
    response = ConsumerMember(broker, "m", group_id="g").send(member_epoch=3, topic_partitions=None)
    assert response.error_code == ErrorCode.NONE
    assert not group.has_partition_metadata  # the partition metadata record is deleted


def test_partition_owned_by_two_members_in_the_records_goes_to_the_first() -> None:
    all_records: list[KeyValue] = [(from_hex("0003 0001 67"), from_hex("0000 00000003 00"))]
    metadata = from_hex("0000 00 00 02 63 03 2f68 02 02 74 00 00000009 00 00")
    current = from_hex(f"0000 00000003 00000002 00 02 {T.hex()} 02 00000001 00 01 00")
    for name in ("6d", "6e"):
        all_records.append((from_hex(f"0005 0001 67 0001 {name}"), metadata))
        all_records.append((from_hex(f"0008 0001 67 0001 {name}"), current))
    members = consumer_group(loaded(*all_records), "g").members
    assert [member.assigned for member in members.values()] == [{T: {1: 3}}, {}]


def test_pending_transactional_offset_stays_pending_after_a_load(client: Client, broker: VirtualBroker) -> None:
    broker.topic()
    client.call(commit_request(3), 9)
    producer = begun(broker)
    assert producer.add_offsets("group") == ErrorCode.NONE
    assert producer.commit_offset("group", 9) == ErrorCode.NONE
    before = pictured(broker)
    reload_groups(broker)
    assert pictured(broker) == before
    assert fetched(client.call(fetch_request(require_stable=True), 9))["t", 0][1] == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert producer.end() == ErrorCode.NONE
    assert fetched(client.call(fetch_request(), 9))["t", 0] == (9, ErrorCode.NONE)
    reload_groups(broker)
    assert fetched(client.call(fetch_request(), 9))["t", 0] == (9, ErrorCode.NONE)


def test_deleted_group_stays_deleted_after_a_load(topic: Topic, client: Client, broker: VirtualBroker) -> None:
    client.call(commit_request(), 9)
    client.call(DeleteGroupsRequest(groups_names=["group"]), 2)
    reload_groups(broker)
    assert broker.broker.groups.groups == {}
    assert fetched(client.call(fetch_request(), 9))["t", 0][0] == -1


def test_load_does_not_change_when_offsets_expire() -> None:
    broker = broker_with_topic("offsets.retention.minutes=2", "offsets.retention.check.interval.ms=1000")
    broker.client().call(commit_request(), 9)
    broker.advance(119_000)
    reload_groups(broker)
    assert committed_offsets(broker) == [("t", 0)]
    broker.advance(1_000)
    assert committed_offsets(broker) == []


def committed_offsets(broker: VirtualBroker) -> list[tuple[str, int]]:
    return list(broker.broker.groups.offsets.of_group("group"))


def test_load_during_a_rebalance_restores_the_last_generation(broker: VirtualBroker) -> None:
    members = settled_group(broker, 2)
    newcomer = Member(broker)
    newcomer.send_join()
    assert members[0].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    reload_groups(broker)
    assert newcomer.joined().error_code == ErrorCode.NOT_COORDINATOR
    group = classic_group(broker)
    assert (group.state, group.generation_id, len(group.members)) == (STABLE, 1, 2)
    assert subscription("t") == next(iter(group.members.values())).metadata("range")
    assert [member.heartbeat() for member in members] == [ErrorCode.NONE] * 2


def test_load_fails_a_pending_sync_with_not_coordinator(broker: VirtualBroker) -> None:
    members = settled_group(broker, 2)
    for member in members:
        member.send_join(protocols=[])  # rejected: nothing changes
        assert member.joined().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    follower, leader = sorted(members, key=lambda member: member.leads)
    leader.send_join()
    follower.send_join()
    broker.advance(1)
    for member in members:
        assert member.joined().error_code == ErrorCode.NONE
    follower.send_sync()
    reload_groups(broker)
    assert follower.client.response().message.error_code == ErrorCode.NOT_COORDINATOR
