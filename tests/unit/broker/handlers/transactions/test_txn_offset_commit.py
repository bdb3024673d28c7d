"""TxnOffsetCommit: validation, and the outcome of pending offsets."""

from typing import Any

import pytest
from msgspec.structs import replace

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from sluice.protocol.errors import ErrorCode
from tests.support.groups import commit_code, commit_request, fetch_request, fetched, stable_group
from tests.support.merged_topics import each_request, shown, with_topics
from tests.support.transactions import Producer, initialized, offsets_request
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic

VERSIONS = range(7)
TOO_LARGE = ErrorCode.OFFSET_METADATA_TOO_LARGE
MEMBER: dict[str, Any] = {"member_id": "member", "generation_id_or_member_epoch": 1}
NO_MEMBER: dict[str, Any] = {"member_id": "", "generation_id_or_member_epoch": -1}


def in_transaction(broker: VirtualBroker, transactional_id: str = "tx") -> Producer:
    """Return a producer whose transaction includes the offsets of the group "group"."""
    producer = initialized(broker, transactional_id=transactional_id)
    assert producer.add_offsets("group") == 0
    return producer


def call(producer: Producer, version: int, offset: int = 7, *, partition: int = 0, **fields: Any) -> Any:
    """Commit one offset of t for the group "group" in the transaction; return the response."""
    request = offsets_request(
        producer.producer_id, producer.epoch, "group", offset, producer.transactional_id, fields.pop("topic", "t")
    )
    [topic] = request.topics
    topic.topic_id = fields.pop("topic_id", bytes(16))
    topic.partitions[0].partition_index = partition
    topic.partitions[0].committed_metadata = fields.pop("committed_metadata", "m")
    return producer.client.call(replace(request, **fields), version)


def committed(client: Client, **fields: Any) -> tuple[int, int]:
    """Return (offset, error code) of t-0."""
    return fetched(client.call(fetch_request(**fields), 9))["t", 0]


PARTITION_RESULTS = {
    "valid": ({}, ErrorCode.NONE),
    "empty group id": ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    "unknown partition": ({"partition": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "metadata above the maximum length": ({"committed_metadata": "x" * 4097}, TOO_LARGE),
    "null metadata": ({"committed_metadata": None}, ErrorCode.NONE),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("fields", "code"), PARTITION_RESULTS.values(), ids=PARTITION_RESULTS)
def test_each_partition_has_its_own_result(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    response = call(in_transaction(broker), version, topic_id=topic.topic_id, **fields)
    assert commit_code(response) == code
    [committed] = response.topics
    assert (committed.name, committed.topic_id) == (("t", bytes(16)) if version < 6 else ("", topic.topic_id))


@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_topic_is_rejected_by_name_or_id(version: int) -> None:
    expected = ErrorCode.UNKNOWN_TOPIC_ID if version >= 6 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response = call(in_transaction(VirtualBroker()), version, topic="u", topic_id=bytes(range(16)))
    assert commit_code(response) == expected


MEMBER_FIELDS = {
    "member": ({}, ErrorCode.NONE),
    "unknown member id": ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    "previous generation": ({"generation_id_or_member_epoch": 0}, ErrorCode.ILLEGAL_GENERATION),
    "unknown instance id": ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    "no member fields, as up to version 2": (NO_MEMBER, ErrorCode.NONE),
}


@pytest.mark.parametrize("version", range(3, 7))
@pytest.mark.parametrize(("fields", "code"), MEMBER_FIELDS.values(), ids=MEMBER_FIELDS)
def test_member_fields_are_validated(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    stable_group(broker)
    response = call(in_transaction(broker), version, topic_id=topic.topic_id, **(MEMBER | fields))
    assert commit_code(response) == code


@pytest.mark.parametrize("version", range(3, 7))
def test_generation_of_an_unknown_group_is_rejected(topic: Topic, broker: VirtualBroker, version: int) -> None:
    expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.ILLEGAL_GENERATION
    assert commit_code(call(in_transaction(broker), version, topic_id=topic.topic_id, **MEMBER)) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_group_outside_the_transaction_is_rejected_or_added(topic: Topic, broker: VirtualBroker, version: int) -> None:
    producer = initialized(broker)
    if version < 4:
        expected = ErrorCode.INVALID_TXN_STATE
    else:
        expected = ErrorCode.TRANSACTION_ABORTABLE if version == 4 else ErrorCode.NONE
    assert commit_code(call(producer, version, topic_id=topic.topic_id)) == expected


def test_replaced_producer_is_fenced(topic: Topic, broker: VirtualBroker) -> None:
    older = in_transaction(broker)
    Producer(broker).init()
    assert commit_code(call(older, 3)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_unknown_transactional_id_is_rejected(topic: Topic, broker: VirtualBroker) -> None:
    producer = in_transaction(broker)
    producer.transactional_id = "other"
    assert commit_code(call(producer, 3)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(("commits", "expected"), [(True, (7, 0)), (False, (5, 0))], ids=["commit", "abort"])
def test_offsets_are_pending_until_the_transaction_ends(commits: bool, expected: tuple[int, int]) -> None:
    broker = broker_with_topic()
    client = broker.client()
    client.call(commit_request(5), 9)
    producer = in_transaction(broker)
    call(producer, 3, 7)
    assert committed(client) == (5, 0)
    assert committed(client, require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert producer.end(commits) == 0
    assert committed(client) == committed(client, require_stable=True) == expected


def test_later_plain_commit_is_not_replaced(topic: Topic, client: Client, broker: VirtualBroker) -> None:
    producer = in_transaction(broker)
    call(producer, 3, 7)
    client.call(commit_request(9), 9)
    assert producer.end() == 0
    assert committed(client) == (9, 0)


def test_later_offset_of_two_transactions_counts_in_any_order_of_their_ends(broker: VirtualBroker) -> None:
    broker.topic()
    client = broker.client()
    first, second = in_transaction(broker, "one"), in_transaction(broker, "two")
    call(first, 3, 7)
    call(second, 3, 8)
    assert second.end() == 0
    assert committed(client, require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert first.end() == 0
    assert committed(client, require_stable=True) == (8, 0)


def test_pending_offsets_are_deleted_with_their_topic_and_group(client: Client, broker: VirtualBroker) -> None:
    broker.topic()
    producer = in_transaction(broker)
    call(producer, 3, 7)
    client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    assert committed(client, require_stable=True) == (-1, 0)
    broker.topic()
    call(producer, 3, 8)
    assert client.call(DeleteGroupsRequest(groups_names=["group"]), 2).results[0].error_code == ErrorCode.NONE
    assert producer.end() == 0
    assert committed(client) == (-1, 0)


def test_offset_with_a_pending_replacement_does_not_expire() -> None:
    broker = broker_with_topic("offsets.retention.check.interval.ms=1000")
    producer = in_transaction(broker)
    client = broker.client()
    client.call(commit_request(5, retention_time_ms=5_000), 4)
    call(producer, 3, 7)
    broker.advance(10_000)
    assert committed(client) == (5, 0)
    assert producer.end(committed=False) == 0
    broker.advance(1_000)
    assert committed(client) == (-1, 0)
    assert broker.broker.groups.groups == {}


def test_group_with_only_pending_offsets_does_not_expire() -> None:
    broker = broker_with_topic("offsets.retention.check.interval.ms=1000")
    producer = in_transaction(broker)
    call(producer, 3, 7)
    broker.advance(10_000)
    assert list(broker.broker.groups.groups) == ["group"]
    assert producer.end(committed=False) == 0
    broker.advance(1_000)
    assert broker.broker.groups.groups == {}


@pytest.mark.parametrize("version", VERSIONS)
@each_request
def test_repeated_and_empty_topics(
    broker: VirtualBroker, version: int, requested: list[tuple[str, list[int]]], expected: list[tuple[str, list[int]]]
) -> None:
    ids = with_topics(broker)
    topics = [
        TxnOffsetCommitRequestTopic(
            name=name,
            topic_id=ids[name],
            partitions=[TxnOffsetCommitRequestPartition(partition_index=index) for index in indexes],
        )
        for name, indexes in requested
    ]
    response = call(in_transaction(broker), version, topics=topics)
    assert shown(response.topics, {topic_id: name for name, topic_id in ids.items()}) == expected
