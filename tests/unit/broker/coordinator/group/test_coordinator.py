"""Offset retention of the group coordinator, and the records it writes to __consumer_offsets."""

from typing import Any

import pytest

from sluice.broker.coordinator.group.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.codec.compile import decoder
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.record import iter_records
from tests.support import groups
from tests.support.records import fetch
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker, broker_with_topic

MINUTE_MS = 60_000
# Offsets are retained for two minutes; the check runs each minute.
RETENTION = ("offsets.retention.minutes=2", f"offsets.retention.check.interval.ms={MINUTE_MS}")
KEYS: dict[int, type[Message]] = {1: OffsetCommitKey, 2: GroupMetadataKey}
VALUES: dict[int, type[Message]] = {1: OffsetCommitValue, 2: GroupMetadataValue}


def written(broker: VirtualBroker, group_id: str = "group") -> list[tuple[Any, int | None, Any]]:
    """Return (key, value version, value) of all records of a group; tombstones have None twice."""
    log = broker.broker.groups.log.partition_of(group_id).log
    records: list[tuple[Any, int | None, Any]] = []
    parts = log.read(0, 1 << 30, log.log_end_offset, min_one_batch=True).parts
    for batch in (part[at : at + header.size_in_bytes] for part in parts for at, header in iter_batches(part)):
        for record in iter_records(batch):
            assert record.key is not None
            kind = int.from_bytes(record.key[:2])
            key = decoder(KEYS[kind], 0)(memoryview(record.key), 2, len(record.key))
            if record.value is None:
                records.append((key, None, None))
                continue
            version = int.from_bytes(record.value[:2])
            value = decoder(VALUES[kind], version)(memoryview(record.value), 2, len(record.value))
            records.append((key, version, value))
    return records


# -- retention ---------------------------------------------------------------------------------------------------------


def offsets(broker: VirtualBroker, *topics: str) -> list[str]:
    """Return the topics for whose partition 0 the group has an offset."""
    client = broker.client()
    committed = [groups.fetched(client.call(groups.fetch_request(topic=topic), 9)) for topic in topics]
    return [topic for topic, one in zip(topics, committed, strict=True) if one[topic, 0][0] >= 0]


def stay(member: groups.Member, minutes: int) -> None:
    """Send heartbeats until this many minutes after the broker's start."""
    while member.client.broker.now_ms < minutes * MINUTE_MS:
        member.client.broker.advance(groups.SESSION_MS / 2)
        member.heartbeat()


def test_offsets_without_members_expire_one_by_one_and_the_last_removes_the_group() -> None:
    broker = broker_with_topic(*RETENTION)
    broker.topic("u")
    client = broker.client()
    client.call(groups.commit_request(), 9)
    broker.advance(MINUTE_MS)
    client.call(groups.commit_request(topic="u"), 9)
    broker.advance(MINUTE_MS - 1)
    assert offsets(broker, "t", "u") == ["t", "u"]
    broker.advance(1)
    assert offsets(broker, "t", "u") == ["u"]
    assert list(broker.broker.groups.groups) == ["group"]
    broker.advance(MINUTE_MS)
    assert broker.broker.groups.groups == {}
    last = [(type(key), value) for key, _, value in written(broker)[-2:]]
    assert last == [(OffsetCommitKey, None), (GroupMetadataKey, None)]


@pytest.mark.parametrize("version", [2, 4])
def test_commit_may_set_the_retention_time(version: int) -> None:
    broker = broker_with_topic("offsets.retention.check.interval.ms=1000")
    broker.client().call(groups.commit_request(retention_time_ms=5_000), version)
    [(_, value_version, value)] = written(broker)
    assert (value_version, value.expire_timestamp) == (1, WALL_START_MS + 5_000)
    broker.advance(4_999)
    assert offsets(broker, "t") == ["t"]
    broker.advance(1)
    assert offsets(broker, "t") == []


def test_retention_starts_when_the_last_member_leaves() -> None:
    broker = broker_with_topic(*RETENTION)
    (member,) = groups.settled_group(broker, 1)
    member.commit()
    stay(member, 5)
    assert offsets(broker, "t") == ["t"]
    member.leave()
    broker.advance(2 * MINUTE_MS - 1)
    assert offsets(broker, "t") == ["t"]
    broker.advance(MINUTE_MS)
    assert offsets(broker, "t") == []
    assert broker.broker.groups.groups == {}


def test_group_with_members_expires_offsets_of_unsubscribed_topics() -> None:
    broker = broker_with_topic(*RETENTION)
    broker.topic("u")
    (member,) = groups.settled_group(broker, 1)  # subscribed to t
    for topic in ("t", "u"):
        request = groups.commit_request(topic=topic, member_id=member.member_id, generation_id_or_member_epoch=1)
        member.client.call(request, 9)
    stay(member, 4)
    assert offsets(broker, "t", "u") == ["t"]
    assert list(broker.broker.groups.groups) == ["group"]


def test_offsets_do_not_expire_if_the_subscription_is_unreadable() -> None:
    broker = broker_with_topic(*RETENTION)
    (member,) = groups.settled_group(broker, 1)
    member.commit()
    groups.classic_group(broker).protocol_type = "connect"
    stay(member, 4)
    assert offsets(broker, "t") == ["t"]


# -- deleted topics ----------------------------------------------------------------------------------------------------


def test_deleting_a_topic_deletes_its_offsets_but_not_the_group(broker: VirtualBroker) -> None:
    broker.topic("t")
    broker.topic("u")
    client = broker.client()
    client.call(groups.commit_request(), 9)
    client.call(groups.commit_request(topic="u"), 9)
    client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    assert offsets(broker, "t", "u") == ["u"]
    key, _, value = written(broker)[-1]
    assert (key, value) == (OffsetCommitKey(group="group", topic="t", partition=0), None)


# -- records -----------------------------------------------------------------------------------------------------------


def test_commit_writes_an_offset_record(topic: Topic, broker: VirtualBroker) -> None:
    broker.client().call(groups.commit_request(5, committed_metadata="m", committed_leader_epoch=3), 9)
    value = OffsetCommitValue(
        offset=5, leader_epoch=3, metadata="m", commit_timestamp=WALL_START_MS, topic_id=topic.topic_id
    )
    assert written(broker) == [(OffsetCommitKey(group="group", topic="t", partition=0), 4, value)]


def test_offset_commit_version_1_sets_the_commit_timestamp(topic: Topic, broker: VirtualBroker) -> None:
    broker.client().call(groups.commit_request(commit_timestamp=1234), 1)
    assert written(broker)[0][2].commit_timestamp == 1234


def test_classic_group_writes_a_record_per_state_change(broker: VirtualBroker) -> None:
    member = groups.Member(broker, instance_id="i", client_id="client")
    member.send_join()
    broker.advance(3_000)
    member.joined()
    member.send_sync({member.member_id: b"mine"})
    member.client.take_responses()
    member.leave()
    broker.client().call(DeleteGroupsRequest(groups_names=["group"]), 2)
    known = MemberMetadata(
        member_id=member.member_id,
        group_instance_id="i",
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout=groups.REBALANCE_MS,
        session_timeout=groups.SESSION_MS,
        subscription=groups.subscription("t"),
        assignment=b"mine",
    )
    joined_ms = WALL_START_MS + 3_000
    stable = GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader=member.member_id,
        current_state_timestamp=joined_ms,
        members=[known],
    )
    empty = GroupMetadataValue(protocol_type="consumer", generation=2, current_state_timestamp=joined_ms)
    created, key = GroupMetadataValue(current_state_timestamp=WALL_START_MS), GroupMetadataKey(group="group")
    assert written(broker) == [(key, 3, created), (key, 3, stable), (key, 3, empty), (key, None, None)]


def test_offset_record_bytes_equal_kafkas(broker: VirtualBroker) -> None:
    broker.topic("t", partitions=2).topic_id = bytes(range(16))
    broker.client().call(groups.commit_request(5, partition=1), 9)
    log = broker.broker.groups.log.partition_of("group").log
    [record] = iter_records(log.read(0, 1 << 20, 1, min_one_batch=True).parts[0])
    # Type 1; "group", "t", 1.
    assert record.key == bytes.fromhex("0001 0005 67726f7570 0001 74 00000001".replace(" ", ""))
    # Version 4, flexible: offset 5, leader epoch -1, no metadata, commit timestamp; one tag, 0, of 16 bytes.
    assert record.value == (
        bytes.fromhex("0004 0000000000000005 ffffffff 01".replace(" ", ""))
        + WALL_START_MS.to_bytes(8)
        + bytes([1, 0, 16])
        + bytes(range(16))
    )


def test_record_written_by_a_timer_completes_a_pending_fetch() -> None:
    broker = broker_with_topic(*RETENTION)
    (member,) = groups.settled_group(broker, 1)
    partition = broker.broker.groups.log.partition_of("group")
    end = partition.log.log_end_offset
    request = fetch(end, topic="__consumer_offsets", partition=partition.index, max_wait_ms=60_000)
    reader = broker.client()
    reader.send(request, 12)
    assert reader.responses == []
    broker.advance(groups.SESSION_MS)  # the session expires and the group becomes empty
    assert [response.at_ms for response in reader.responses] == [broker.now_ms]
    assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
