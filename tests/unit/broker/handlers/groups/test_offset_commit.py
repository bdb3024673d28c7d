"""OffsetCommit: validation of groups, members and partitions."""

from typing import Any

import pytest

from sluice.broker.broker import Broker
from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis import offset_commit as api
from sluice.protocol.errors import ErrorCode
from tests.support import groups
from tests.support.merged_topics import each_request, shown, with_topics
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic

VERSIONS = range(11)
UNKNOWN, TOO_LARGE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OFFSET_METADATA_TOO_LARGE
NO_GENERATION = {"generation_id_or_member_epoch": -1}
MEMBER: dict[str, Any] = {"member_id": "member", "generation_id_or_member_epoch": 1}


@pytest.mark.parametrize("version", VERSIONS)
def test_commit_without_a_member_creates_a_simple_group(broker: VirtualBroker, version: int) -> None:
    topic = broker.topic(partitions=3)
    client = broker.client()
    response = client.call(groups.commit_request(5, partition=2, topic_id=topic.topic_id), version)
    assert groups.commit_code(response) == ErrorCode.NONE
    [committed] = response.topics
    assert (committed.name, committed.topic_id) == (("t", bytes(16)) if version < 10 else ("", topic.topic_id))
    assert groups.fetched(client.call(groups.fetch_request(2, 0), 9)) == {("t", 2): (5, 0), ("t", 0): (-1, 0)}


PARTITION_RESULTS = {
    "unknown topic": ({"topic": "u"}, UNKNOWN),
    "unknown partition": ({"partition": 1}, UNKNOWN),
    "negative partition": ({"partition": -1}, UNKNOWN),
    "metadata of the maximum length": ({"committed_metadata": "x" * 4096}, ErrorCode.NONE),
    "metadata above the maximum length": ({"committed_metadata": "x" * 4097}, TOO_LARGE),
    "null metadata": ({"committed_metadata": None}, ErrorCode.NONE),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("fields", "code"), PARTITION_RESULTS.values(), ids=PARTITION_RESULTS)
def test_each_partition_has_its_own_result(
    topic: Topic, client: Client, version: int, fields: dict[str, Any], code: ErrorCode
) -> None:
    topic_id = topic.topic_id if fields.get("topic") is None else bytes(range(16))
    if version >= 10 and "topic" in fields:
        code = ErrorCode.UNKNOWN_TOPIC_ID
    request = groups.commit_request(**({"topic_id": topic_id} | fields))
    assert groups.commit_code(client.call(request, version)) == code


MEMBER_COMMITS = {
    "member": ({}, ErrorCode.NONE),
    "unknown member id": ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    "previous generation": ({"generation_id_or_member_epoch": 0}, ErrorCode.ILLEGAL_GENERATION),
    "no generation": (NO_GENERATION, ErrorCode.ILLEGAL_GENERATION),
    "no member id": ({"member_id": "", **NO_GENERATION}, ErrorCode.UNKNOWN_MEMBER_ID),
}


@pytest.mark.parametrize("version", range(1, 11))
@pytest.mark.parametrize(("fields", "code"), MEMBER_COMMITS.values(), ids=MEMBER_COMMITS)
def test_group_with_members_accepts_only_their_commits(
    topic: Topic, broker: VirtualBroker, version: int, fields: dict[str, Any], code: ErrorCode
) -> None:
    groups.stable_group(broker)
    request = groups.commit_request(topic_id=topic.topic_id, **(MEMBER | fields))
    assert groups.commit_code(broker.client().call(request, version)) == code


@pytest.mark.parametrize("version", range(1, 11))
def test_generation_of_an_unknown_group_is_rejected(topic: Topic, broker: VirtualBroker, version: int) -> None:
    request = groups.commit_request(topic_id=topic.topic_id, **MEMBER)
    expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
    assert groups.commit_code(broker.client().call(request, version)) == expected
    assert broker.broker.groups.groups == {}


def test_replaced_static_member_is_fenced(topic: Topic, broker: VirtualBroker) -> None:
    (member,) = groups.settled_group(broker, 1, instance_id="i")
    assert member.commit() == ErrorCode.NONE
    assert member.commit(member_id="i-another") == ErrorCode.FENCED_INSTANCE_ID


def test_commit_is_rejected_only_between_join_and_sync(topic: Topic, broker: VirtualBroker) -> None:
    members = groups.settled_group(broker, 2)
    newcomer = groups.Member(broker)
    newcomer.send_join()
    assert members[0].commit() == ErrorCode.NONE  # a commit of the current generation, before the member rejoins
    for member in members:
        member.send_join()
    for member in (*members, newcomer):
        member.joined()
    assert members[0].commit() == ErrorCode.REBALANCE_IN_PROGRESS
    assert members[0].commit(generation_id_or_member_epoch=1) == ErrorCode.ILLEGAL_GENERATION


def test_later_commit_with_a_lower_offset_replaces_offset_and_metadata(topic: Topic, client: Client) -> None:
    client.call(groups.commit_request(9, committed_metadata="nine"), 9)
    client.call(groups.commit_request(5, committed_metadata="five", committed_leader_epoch=3), 9)
    [partition] = client.call(groups.fetch_request(), 9).groups[0].topics[0].partitions
    assert (partition.committed_offset, partition.metadata, partition.committed_leader_epoch) == (5, "five", 3)


def test_retention_time_beyond_the_largest_time_wraps_as_in_kafka(topic: Topic, client: Client) -> None:
    response = client.call(groups.commit_request(retention_time_ms=2**63 - 1), 4)
    assert groups.commit_code(response) == ErrorCode.NONE
    client.broker.advance(600_000)  # offsets.retention.check.interval.ms
    assert groups.fetched(client.call(groups.fetch_request(), 9)) == {("t", 0): (-1, 0)}


def test_commit_without_a_valid_partition_creates_no_group(broker: VirtualBroker) -> None:
    broker.client().call(groups.commit_request(topic="u"), 9)
    assert Broker.groups.if_made(broker.broker) is None


def test_commit_above_the_batch_size_limit_is_rejected_as_a_whole() -> None:
    broker = broker_with_topic("offset.metadata.max.bytes=30000", partitions=40)
    client = broker.client()
    client.call(groups.commit_request(), 9)
    request = groups.commit_request()
    request.topics[0].partitions = [
        api.OffsetCommitRequestPartition(partition_index=index, committed_offset=8, committed_metadata="x" * 30_000)
        for index in range(40)  # together above the maximum batch size
    ]
    response = client.call(request, 9)
    assert {partition.error_code for partition in response.topics[0].partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert groups.fetched(client.call(groups.fetch_request(), 9)) == {("t", 0): (7, 0)}


def test_commit_of_too_many_offsets_is_rejected_before_their_records_are_built(
    topic: Topic, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.broker.coordinator.group.coordinator.offset_commit", None)
    request = groups.commit_request()
    request.topics[0].partitions = [api.OffsetCommitRequestPartition(partition_index=0)] * 40_000
    response = client.call(request, 9)
    assert {partition.error_code for partition in response.topics[0].partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}


@pytest.mark.parametrize("version", VERSIONS)
@each_request
def test_repeated_and_empty_topics(
    broker: VirtualBroker, version: int, requested: list[tuple[str, list[int]]], expected: list[tuple[str, list[int]]]
) -> None:
    ids = with_topics(broker)
    request = api.OffsetCommitRequest(
        group_id="group",
        topics=[
            api.OffsetCommitRequestTopic(
                name=name,
                topic_id=ids[name],
                partitions=[api.OffsetCommitRequestPartition(partition_index=index) for index in indexes],
            )
            for name, indexes in requested
        ],
    )
    response = broker.client().call(request, version)
    assert shown(response.topics, {topic_id: name for name, topic_id in ids.items()}) == expected
