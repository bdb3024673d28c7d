"""Groups and offsets as they come back from the records of __consumer_offsets, Kafka's and our own."""

import logging

import pytest

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.classic.group import EMPTY, STABLE
from sluice.broker.coordinator.group.consumer import records as records
from sluice.broker.coordinator.group.consumer.group import ConsumerGroup, TimerKind
from sluice.broker.coordinator.group.consumer.member import ClassicMetadata, MemberState
from sluice.broker.coordinator.group.consumer.member import ConsumerMember as KnownMember
from sluice.broker.coordinator.group.offsets import CommittedOffset
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID
from tests.support.consumer_groups import AT_ONCE, ConsumerMember, consumer_group, converge
from tests.support.coordinators import broker_with_recorded, pictured, reload_groups
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
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker

T = bytes(range(16))
OFFSET_KEY = "0001 0001 67 0001 74 00000002"  # group "g", topic "t", partition 2
GROUP_KEY = "0002 0001 67"


def unhexed(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def loaded(*records: KeyValue) -> VirtualBroker:
    """A broker that starts with these records about the group "g"."""
    broker = VirtualBroker()
    groups = broker.broker.groups
    assert groups.log.append("g", records, WALL_START_MS) == ErrorCode.NONE
    reload_groups(broker)
    return broker


def committed(broker: VirtualBroker) -> CommittedOffset:
    return broker.broker.groups.offsets.of_group("g")["t", 2]


# -- the versions that Kafka has written -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(
            "0000 0000000000000005 0001 6d 0000000000000007",
            CommittedOffset(5, -1, "m", 7, None, ZERO_UUID, 0),
            id="version 0",
        ),
        pytest.param(
            "0001 0000000000000005 0001 6d 0000000000000007 0000000000000009",
            CommittedOffset(5, -1, "m", 7, 9, ZERO_UUID, 0),
            id="version 1 says when it expires",
        ),
        pytest.param(
            "0001 0000000000000005 0001 6d 0000000000000007 ffffffffffffffff",
            CommittedOffset(5, -1, "m", 7, None, ZERO_UUID, 0),
            id="version 1 that does not expire by itself",
        ),
        pytest.param(
            "0002 0000000000000005 0001 6d 0000000000000007",
            CommittedOffset(5, -1, "m", 7, None, ZERO_UUID, 0),
            id="version 2",
        ),
        pytest.param(
            "0003 0000000000000005 00000003 0001 6d 0000000000000007",
            CommittedOffset(5, 3, "m", 7, None, ZERO_UUID, 0),
            id="version 3 has the leader epoch",
        ),
        pytest.param(
            f"0004 0000000000000005 00000003 02 6d 0000000000000007 01 00 10 {T.hex()}",
            CommittedOffset(5, 3, "m", 7, None, T, 0),
            id="version 4 has the topic's id",
        ),
        pytest.param(
            "0004 0000000000000005 00000003 02 6d 0000000000000007 01 05 01 ff",
            CommittedOffset(5, 3, "m", 7, None, ZERO_UUID, 0),
            id="version 4 with a tag of a newer Kafka",
        ),
    ],
)
def test_offsets_of_all_versions_are_read(value: str, expected: CommittedOffset) -> None:
    assert committed(loaded((unhexed(OFFSET_KEY), unhexed(value)))) == expected


def test_offsets_of_a_kafka_before_0_9_are_read() -> None:
    key = unhexed("0000 0001 67 0001 74 00000002")
    assert committed(loaded((key, unhexed("0000 0000000000000005 0000 0000000000000007")))).offset == 5


MEMBER_0 = "0001 6d 0001 63 0002 2f68 {rebalance} 00002710 00000004 01020304 00000001 05"
MEMBER_3 = "0001 6d 0001 69 0001 63 0002 2f68 00007530 00002710 00000004 01020304 00000001 05"
HEAD = "0008 636f6e73756d6572 00000003 0005 72616e6765 0001 6d"  # consumer, 3, range, led by m


@pytest.mark.parametrize(
    ("value", "rebalance_ms", "since_ms", "instance_id"),
    [
        pytest.param(
            f"0000 {HEAD} 00000001 {MEMBER_0.format(rebalance='')}",
            10_000,
            None,
            None,
            id="version 0: the session timeout is for rebalances too",
        ),
        pytest.param(
            f"0001 {HEAD} 00000001 {MEMBER_0.format(rebalance='00007530')}", 30_000, None, None, id="version 1"
        ),
        pytest.param(
            f"0002 {HEAD} 0000000000000009 00000001 {MEMBER_0.format(rebalance='00007530')}",
            30_000,
            9,
            None,
            id="version 2 says since when",
        ),
        pytest.param(
            f"0003 {HEAD} 0000000000000009 00000001 {MEMBER_3}", 30_000, 9, "i", id="version 3 has static members"
        ),
        pytest.param(
            "0004 09 636f6e73756d6572 00000003 06 72616e6765 02 6d 0000000000000009 02"
            "02 6d 02 69 02 63 03 2f68 00007530 00002710 05 01020304 02 05 00 00",
            30_000,
            9,
            "i",
            id="version 4 is flexible",
        ),
    ],
)
def test_classic_groups_of_all_versions_are_read(
    value: str, rebalance_ms: int, since_ms: int | None, instance_id: str | None
) -> None:
    group = classic_group(loaded((unhexed(GROUP_KEY), unhexed(value))), "g")
    assert (group.state, group.generation_id, group.protocol_type, group.protocol_name, group.leader_id) == (
        STABLE,
        3,
        "consumer",
        "range",
        "m",
    )
    [member] = group.members.values()
    assert (member.member_id, member.client_id, member.client_host) == ("m", "c", "/h")
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10_000, rebalance_ms)
    assert (member.metadata("range"), member.assignment) == (b"\1\2\3\4", b"\5")
    assert (group.state_since_ms, member.group_instance_id) == (since_ms, instance_id)
    assert group.static_members == ({} if instance_id is None else {"i": "m"})


def test_an_empty_group_of_which_nobody_knows_since_when_keeps_offsets_from_their_commit_on() -> None:
    offset = unhexed(OFFSET_KEY), unhexed("0002 0000000000000005 0000 0000000000000007")
    group = unhexed(GROUP_KEY), unhexed("0001 0008 636f6e73756d6572 00000003 ffff ffff 00000000")
    broker = loaded(group, offset)
    group_ = classic_group(broker, "g")
    assert (group_.state, group_.retention_start_ms(committed(broker))) == (EMPTY, 7)


def test_what_a_real_kafka_wrote_is_read() -> None:
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
    assert sorted(set(those) for one in modern.target.values() for those in one.values()) == [{0}, {1}]
    assert [dict(one) for member in modern.members.values() for one in member.assigned.values()] == [{1: 3}, {0: 2}]
    assert {name: one.topics for name, one in regex.regexes.items()} == {"(^t.*)": {"t"}}
    offsets = {name: {at: one.offset for at, one in groups.offsets.of_group(name).items()} for name in groups.groups}
    assert offsets == {
        "classic": {("t", 0): 4, ("t", 1): 3},
        "modern": {("t", 0): 5, ("t", 1): 5},
        "regex": {("t", 0): 2, ("t", 1): 2},
        "tx": {("t", 0): 2},  # committed; another one is aborted, and one still open
    }
    assert list(groups.offsets.unstable("tx")) == [("t", 0)]


def test_groups_of_other_kinds_are_left_out_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    share = unhexed("000b 0001 67"), unhexed("0000 00000001 00")
    offset = unhexed(OFFSET_KEY), unhexed("0002 0000000000000005 0000 0000000000000007")
    with caplog.at_level(logging.WARNING, "sluice.broker"):
        broker = loaded(share, offset)
    assert committed(broker).offset == 5
    assert [vars(line)["type"] for line in caplog.records] == [11]


# -- our own, there and back -------------------------------------------------------------------------------------------


def test_a_classic_group_goes_on_after_a_load_as_if_nothing_had_been() -> None:
    broker = VirtualBroker()
    broker.topic()
    members = settled_group(broker, 3)
    members[0].commit(5)
    before = pictured(broker)
    reload_groups(broker)
    assert pictured(broker) == before
    assert [member.heartbeat() for member in members] == [0, 0, 0]
    members[1].send_sync()
    assert members[1].client.answer().message.assignment == members[1].member_id.encode()
    assert members[2].commit(6) == ErrorCode.NONE


def test_members_have_a_whole_session_after_a_load() -> None:
    broker = VirtualBroker()
    settled_group(broker, 1)
    broker.advance(SESSION_MS - 1)
    reload_groups(broker)
    broker.advance(SESSION_MS - 1)
    assert classic_group(broker).state is STABLE
    broker.advance(1)
    assert classic_group(broker).state is EMPTY


def test_a_static_member_that_came_back_is_known_by_its_new_id_after_a_load() -> None:
    broker = VirtualBroker()
    (member,) = settled_group(broker, 1, instance_id="i")
    again = Member(broker, instance_id="i")
    again.send_join()
    assert again.joined().error_code == ErrorCode.NONE
    reload_groups(broker)
    assert again.heartbeat() == ErrorCode.NONE
    assert member.heartbeat() == ErrorCode.FENCED_INSTANCE_ID


def test_a_group_that_is_too_large_now_rebalances() -> None:
    broker = VirtualBroker("group.max.size=2")
    members = settled_group(broker, 2)
    broker.broker.groups.classic._max_size = 1  # as if the broker had been started again with another setting
    reload_groups(broker)
    assert [member.heartbeat() for member in members] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2


def test_a_consumer_group_goes_on_after_a_load_as_if_nothing_had_been() -> None:
    broker = VirtualBroker(AT_ONCE)
    broker.topic("t", partitions=4)
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


def test_a_member_that_has_to_give_up_partitions_has_its_rebalance_timeout_after_a_load() -> None:
    broker = VirtualBroker(AT_ONCE, "group.consumer.session.timeout.ms=60000")
    broker.topic("t", partitions=2)
    first, second = ConsumerMember(broker, "a", rebalance_timeout_ms=20_000), ConsumerMember(broker, "b")
    first.join()
    second.join()
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


def test_members_of_both_protocols_come_back() -> None:
    broker = VirtualBroker()
    groups = broker.broker.groups
    group = ConsumerGroup("g")
    group.put(KnownMember("m", 1, classic=ClassicMetadata(9, (("range", b"\1"),))))
    written = [
        records.member_metadata("g", group.members["m"]),
        records.group_epoch(group),
        records.current_assignment("g", group.members["m"]),
    ]
    assert groups.write("g", written) == ErrorCode.NONE
    reload_groups(broker)
    assert consumer_group(broker, "g").members == group.members


def test_assignments_of_a_kafka_before_4_1_have_the_members_epoch() -> None:
    member = unhexed("0005 0001 67 0001 6d"), unhexed("0000 00 00 02 63 03 2f68 02 02 74 00 00000009 00 00")
    current = unhexed("0008 0001 67 0001 6d"), unhexed(f"0000 00000003 00000002 00 02 {T.hex()} 02 00000001 00 01 00")
    epoch = unhexed("0003 0001 67"), unhexed("0000 00000003 00")
    topics = unhexed("0004 0001 67"), unhexed(f"0000 02 {T.hex()} 02 74 00000002 01 00 00")
    broker = loaded(member, current, epoch, topics)
    group = consumer_group(broker, "g")
    assert group.members["m"].assigned == {T: {1: 3}}
    assert group.has_partition_metadata
    response = ConsumerMember(broker, "m", group_id="g").send(member_epoch=3, topic_partitions=None)
    assert response.error_code == ErrorCode.NONE
    assert not group.has_partition_metadata  # it is written that they are not told one by one any more


def test_a_partition_that_two_members_have_by_their_records_is_ones() -> None:
    all_records: list[KeyValue] = [(unhexed("0003 0001 67"), unhexed("0000 00000003 00"))]
    for name in ("6d", "6e"):
        said = unhexed("0000 00 00 02 63 03 2f68 02 02 74 00 00000009 00 00")
        has = unhexed(f"0000 00000003 00000002 00 02 {T.hex()} 02 00000001 00 01 00")
        all_records += [(unhexed(f"0005 0001 67 0001 {name}"), said), (unhexed(f"0008 0001 67 0001 {name}"), has)]
    members = consumer_group(loaded(*all_records), "g").members
    assert [member.assigned for member in members.values()] == [{T: {1: 3}}, {}]


def test_what_is_pending_stays_pending_and_ends_with_its_transaction() -> None:
    broker = VirtualBroker()
    broker.topic()
    client = broker.client()
    client.ask(commit_request(3), 9)
    producer = begun(broker)
    assert producer.add_offsets("group") == ErrorCode.NONE
    assert producer.commit_offset("group", 9) == ErrorCode.NONE
    before = pictured(broker)
    reload_groups(broker)
    assert pictured(broker) == before
    assert fetched(client.ask(fetch_request(require_stable=True), 9))["t", 0][1] == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert producer.end() == ErrorCode.NONE
    assert fetched(client.ask(fetch_request(), 9))["t", 0] == (9, ErrorCode.NONE)
    reload_groups(broker)
    assert fetched(client.ask(fetch_request(), 9))["t", 0] == (9, ErrorCode.NONE)


def test_a_deleted_group_stays_deleted() -> None:
    broker = VirtualBroker()
    broker.topic()
    client = broker.client()
    client.ask(commit_request(), 9)
    client.ask(DeleteGroupsRequest(groups_names=["group"]), 2)
    reload_groups(broker)
    assert broker.broker.groups.groups == {}
    assert fetched(client.ask(fetch_request(), 9))["t", 0][0] == -1


def test_offsets_expire_after_a_load_when_they_would_have_without() -> None:
    broker = VirtualBroker("offsets.retention.minutes=2", "offsets.retention.check.interval.ms=1000")
    broker.topic()
    broker.client().ask(commit_request(), 9)
    broker.advance(119_000)
    reload_groups(broker)
    assert committed_offsets(broker) == [("t", 0)]
    broker.advance(1_000)
    assert committed_offsets(broker) == []


def committed_offsets(broker: VirtualBroker) -> list[tuple[str, int]]:
    return list(broker.broker.groups.offsets.of_group("group"))


def test_a_group_in_the_middle_of_a_round_comes_back_in_its_last_generation() -> None:
    broker = VirtualBroker()
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


def test_who_waits_for_an_assignment_is_told_to_look_elsewhere() -> None:
    broker = VirtualBroker()
    members = settled_group(broker, 2)
    for member in members:
        member.send_join(protocols=[])  # refused: nothing changes
        assert member.joined().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    follower, leader = sorted(members, key=lambda member: member.leads)
    leader.send_join()
    follower.send_join()
    broker.advance(1)
    for member in members:
        assert member.joined().error_code == ErrorCode.NONE
    follower.send_sync()
    reload_groups(broker)
    assert follower.client.answer().message.error_code == ErrorCode.NOT_COORDINATOR
