"""TxnOffsetCommit: offsets that are committed when their transaction is."""

from typing import Any

import pytest

from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from sluice.protocol.errors import ErrorCode
from tests.support.groups import commit_code, commit_request, fetch_request, fetched, stable_group
from tests.support.transactions import Producer
from tests.support.virtual_broker import Client, VirtualBroker

VERSIONS = range(7)


def in_transaction(broker: VirtualBroker, transactional_id: str = "tx") -> Producer:
    """A producer whose open transaction has the offsets of the group "group"."""
    producer = Producer(broker, transactional_id=transactional_id)
    assert producer.init() == 0
    assert producer.add_offsets("group") == 0
    return producer


def ask(producer: Producer, version: int, offset: int = 7, *, partition: int = 0, **fields: Any) -> Any:
    """Commits one offset of t for the group "group" in the producer's transaction; the answer."""
    topic = TxnOffsetCommitRequestTopic(
        name=fields.pop("topic", "t"),
        topic_id=fields.pop("topic_id", bytes(16)),
        partitions=[
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_metadata=fields.pop("committed_metadata", "m"),
            )
        ],
    )
    known: dict[str, Any] = {
        "transactional_id": producer.transactional_id,
        "group_id": "group",
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
        "topics": [topic],
    }
    return producer.client.ask(TxnOffsetCommitRequest(**(known | fields)), version)


def committed(client: Client, **fields: Any) -> tuple[int, int]:
    """(offset, error code) of t-0."""
    return fetched(client.ask(fetch_request(**fields), 9))["t", 0]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({}, ErrorCode.NONE, id="nothing wrong"),
        pytest.param({"group_id": ""}, ErrorCode.INVALID_GROUP_ID, id="group without a name"),
        pytest.param({"partition": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="partition that is not there"),
        pytest.param({"committed_metadata": "x" * 4097}, ErrorCode.OFFSET_METADATA_TOO_LARGE, id="too long metadata"),
        pytest.param({"committed_metadata": None}, ErrorCode.NONE, id="null metadata"),
    ],
)
def test_every_partition_has_its_own_answer(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    response = ask(in_transaction(broker), version, topic_id=topic.topic_id, **fields)
    assert commit_code(response) == code
    assert (response.topics[0].name, response.topics[0].topic_id) == (
        ("t", bytes(16)) if version < 6 else ("", topic.topic_id)
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_that_is_not_there_is_unknown_by_name_or_id(version: int) -> None:
    wanted = ErrorCode.UNKNOWN_TOPIC_ID if version >= 6 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response = ask(in_transaction(VirtualBroker()), version, topic="u", topic_id=bytes(range(16)))
    assert commit_code(response) == wanted


@pytest.mark.parametrize("version", range(3, 7))
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({}, ErrorCode.NONE, id="member"),
        pytest.param({"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID, id="id nobody has"),
        pytest.param({"generation_id_or_member_epoch": 0}, ErrorCode.ILLEGAL_GENERATION, id="generation before"),
        pytest.param({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID, id="instance id nobody has"),
        pytest.param(
            {"member_id": "", "generation_id_or_member_epoch": -1},
            ErrorCode.NONE,
            id="whoever says nothing of itself, as up to version 2",
        ),
    ],
)
def test_members_are_checked(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    stable_group(broker)
    member: dict[str, Any] = {"member_id": "member", "generation_id_or_member_epoch": 1} | fields
    assert commit_code(ask(in_transaction(broker), version, topic_id=topic.topic_id, **member)) == code


@pytest.mark.parametrize("version", range(3, 7))
def test_a_generation_of_a_group_that_is_not_there_is_wrong(version: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    member: dict[str, Any] = {"member_id": "member", "generation_id_or_member_epoch": 1}
    wanted = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.ILLEGAL_GENERATION
    assert commit_code(ask(in_transaction(broker), version, topic_id=topic.topic_id, **member)) == wanted


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_not_in_the_transaction_is_refused_or_taken_in(version: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    producer = Producer(broker)
    assert producer.init() == 0
    if version < 4:
        wanted = ErrorCode.INVALID_TXN_STATE
    else:
        wanted = ErrorCode.TRANSACTION_ABORTABLE if version == 4 else ErrorCode.NONE
    assert commit_code(ask(producer, version, topic_id=topic.topic_id)) == wanted


def test_a_producer_that_another_took_the_place_of_is_fenced() -> None:
    broker = VirtualBroker()
    broker.topic()
    before = in_transaction(broker)
    Producer(broker).init()
    assert commit_code(ask(before, 3)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_id_that_no_producer_has_is_unknown() -> None:
    broker = VirtualBroker()
    broker.topic()
    producer = in_transaction(broker)
    producer.transactional_id = "other"
    assert commit_code(ask(producer, 3)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(("commits", "expected"), [(True, (7, 0)), (False, (5, 0))], ids=["commit", "abort"])
def test_offsets_wait_for_the_end_of_the_transaction(commits: bool, expected: tuple[int, int]) -> None:
    broker = VirtualBroker()
    broker.topic()
    client = broker.client()
    client.ask(commit_request(5), 9)
    producer = in_transaction(broker)
    ask(producer, 3, 7)
    assert committed(client) == (5, 0)
    assert committed(client, require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert producer.end(commits) == 0
    assert committed(client) == committed(client, require_stable=True) == expected


def test_what_was_committed_later_is_not_taken_back() -> None:
    broker = VirtualBroker()
    broker.topic()
    client = broker.client()
    producer = in_transaction(broker)
    ask(producer, 3, 7)
    client.ask(commit_request(9), 9)
    assert producer.end() == 0
    assert committed(client) == (9, 0)


def test_of_two_transactions_the_later_offset_stays_whichever_ends_first() -> None:
    broker = VirtualBroker()
    broker.topic()
    client = broker.client()
    first, second = in_transaction(broker, "one"), in_transaction(broker, "two")
    ask(first, 3, 7)
    ask(second, 3, 8)
    assert second.end() == 0
    assert committed(client, require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert first.end() == 0
    assert committed(client, require_stable=True) == (8, 0)


def test_offsets_that_wait_go_with_their_topic_and_with_their_group() -> None:
    broker = VirtualBroker()
    broker.topic()
    client = broker.client()
    producer = in_transaction(broker)
    ask(producer, 3, 7)
    client.ask(DeleteTopicsRequest(topic_names=["t"]), 5)
    assert committed(client, require_stable=True) == (-1, 0)
    broker.topic()
    ask(producer, 3, 8)
    assert client.ask(DeleteGroupsRequest(groups_names=["group"]), 2).results[0].error_code == ErrorCode.NONE
    assert producer.end() == 0
    assert committed(client) == (-1, 0)


def test_an_offset_that_may_be_replaced_is_not_forgotten_meanwhile() -> None:
    broker = VirtualBroker("offsets.retention.check.interval.ms=1000")
    broker.topic()
    producer = in_transaction(broker)
    client = broker.client()
    client.ask(commit_request(5, retention_time_ms=5_000), 4)
    ask(producer, 3, 7)
    broker.advance(10_000)
    assert committed(client) == (5, 0)
    assert producer.end(committed=False) == 0
    broker.advance(1_000)
    assert committed(client) == (-1, 0)
    assert broker.broker.groups.groups == {}


def test_a_group_that_has_only_offsets_that_wait_is_not_forgotten() -> None:
    broker = VirtualBroker("offsets.retention.check.interval.ms=1000")
    broker.topic()
    producer = in_transaction(broker)
    ask(producer, 3, 7)
    broker.advance(10_000)
    assert list(broker.broker.groups.groups) == ["group"]
    assert producer.end(committed=False) == 0
    broker.advance(1_000)
    assert broker.broker.groups.groups == {}
