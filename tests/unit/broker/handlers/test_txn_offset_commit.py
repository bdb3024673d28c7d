"""TxnOffsetCommit: offsets that are committed when their transaction is."""

from typing import Any

import pytest

from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from sluice.protocol.errors import ErrorCode
from tests.support.groups import commit_code, commit_request, fetch_request, fetched, stable_group
from tests.support.virtual_broker import WALL_START_MS, Client, VirtualBroker

VERSIONS = range(7)
PRODUCER_ID = 0  # a broker's first


def txn_request(offset: int = 7, *, partition: int = 0, **fields: Any) -> TxnOffsetCommitRequest:
    """Commits one offset of t for the group "group", in the transaction of a producer."""
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
        "transactional_id": "txn",
        "group_id": "group",
        "producer_id": PRODUCER_ID,
        "producer_epoch": 0,
        "topics": [topic],
    }
    return TxnOffsetCommitRequest(**(known | fields))


def broker_with_producer() -> VirtualBroker:
    """One that knows the producer of `txn_request`; up to version 4 nobody asks whether the group is part of its
    transaction.
    """
    broker = VirtualBroker("transaction.partition.verification.enable=false")
    made = broker.client().ask(InitProducerIdRequest(transactional_id="txn", transaction_timeout_ms=60_000), 4)
    assert (made.producer_id, made.producer_epoch) == (PRODUCER_ID, 0)
    return broker


def end(broker: VirtualBroker, committed: bool, producer_id: int = PRODUCER_ID) -> None:
    """The producer's transaction ends."""
    groups = broker.broker.groups
    groups.complete_transaction(groups.log.partition_of("group"), producer_id, committed, WALL_START_MS)


def offset(client: Client, **fields: Any) -> tuple[int, int]:
    """(offset, error code) of t-0."""
    return fetched(client.ask(fetch_request(**fields), 9))["t", 0]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({}, ErrorCode.NONE, id="nothing wrong"),
        pytest.param({"group_id": ""}, ErrorCode.INVALID_GROUP_ID, id="a group without a name"),
        pytest.param({"partition": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="a partition that is not there"),
        pytest.param({"committed_metadata": "x" * 4097}, ErrorCode.OFFSET_METADATA_TOO_LARGE, id="too long metadata"),
        pytest.param({"committed_metadata": None}, ErrorCode.NONE, id="null metadata"),
    ],
)
def test_every_partition_has_its_own_answer(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    broker = broker_with_producer()
    topic = broker.topic()
    response = broker.client().ask(txn_request(topic_id=topic.topic_id, **fields), version)
    assert commit_code(response) == code
    assert (response.topics[0].name, response.topics[0].topic_id) == (
        ("t", bytes(16)) if version < 6 else ("", topic.topic_id)
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_that_is_not_there_is_unknown_by_name_or_id(version: int) -> None:
    request = txn_request(topic="u", topic_id=bytes(range(16)))
    wanted = ErrorCode.UNKNOWN_TOPIC_ID if version >= 6 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit_code(VirtualBroker().client().ask(request, version)) == wanted


@pytest.mark.parametrize("version", range(3, 7))
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({}, ErrorCode.NONE, id="a member"),
        pytest.param({"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID, id="an id nobody has"),
        pytest.param({"generation_id_or_member_epoch": 0}, ErrorCode.ILLEGAL_GENERATION, id="the generation before"),
        pytest.param({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID, id="an instance id nobody has"),
        pytest.param(
            {"member_id": "", "generation_id_or_member_epoch": -1},
            ErrorCode.NONE,
            id="whoever says nothing of itself, as up to version 2",
        ),
    ],
)
def test_members_are_checked(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    broker = broker_with_producer()
    topic = broker.topic()
    stable_group(broker)
    member: dict[str, Any] = {"member_id": "member", "generation_id_or_member_epoch": 1} | fields
    assert commit_code(broker.client().ask(txn_request(topic_id=topic.topic_id, **member), version)) == code


@pytest.mark.parametrize("version", range(3, 7))
def test_a_generation_of_a_group_that_is_not_there_is_wrong(version: int) -> None:
    broker = broker_with_producer()
    topic = broker.topic()
    request = txn_request(topic_id=topic.topic_id, member_id="member", generation_id_or_member_epoch=1)
    wanted = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.ILLEGAL_GENERATION
    assert commit_code(broker.client().ask(request, version)) == wanted


def test_a_producer_that_another_took_the_place_of_is_fenced() -> None:
    broker = broker_with_producer()
    broker.topic()
    client = broker.client()
    assert commit_code(client.ask(txn_request(producer_epoch=1), 3)) == ErrorCode.NONE
    assert commit_code(client.ask(txn_request(producer_epoch=0), 3)) == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(("committed", "expected"), [(True, (7, 0)), (False, (5, 0))], ids=["commit", "abort"])
def test_offsets_wait_for_the_end_of_the_transaction(committed: bool, expected: tuple[int, int]) -> None:
    broker = broker_with_producer()
    broker.topic()
    client = broker.client()
    client.ask(commit_request(5), 9)
    client.ask(txn_request(7), 3)
    assert offset(client) == (5, 0)
    assert offset(client, require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    end(broker, committed)
    assert offset(client) == offset(client, require_stable=True) == expected


def test_what_was_committed_later_is_not_taken_back() -> None:
    broker = broker_with_producer()
    broker.topic()
    client = broker.client()
    client.ask(txn_request(7), 3)
    client.ask(commit_request(9), 9)
    end(broker, committed=True)
    assert offset(client) == (9, 0)


def test_of_two_transactions_the_later_offset_stays_whichever_ends_first() -> None:
    broker = broker_with_producer()
    broker.topic()
    client = broker.client()
    client.ask(txn_request(7, producer_id=1), 3)
    client.ask(txn_request(8, producer_id=2), 3)
    end(broker, committed=True, producer_id=2)
    assert offset(client, require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    end(broker, committed=True, producer_id=1)
    assert offset(client, require_stable=True) == (8, 0)


def test_a_transaction_without_offsets_ends_too() -> None:
    broker = broker_with_producer()
    broker.topic()
    client = broker.client()
    client.ask(txn_request(7), 3)
    end(broker, committed=True, producer_id=99)
    assert offset(client) == (-1, 0)
