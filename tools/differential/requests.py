"""Requests that cases of several modules send. Versions with topic ids need those instead of names."""

from collections.abc import Iterable, Sequence
from typing import Any

from sluice.protocol.message import Message
from tests.support.messages import request

GROUP, TRANSACTION, SHARE = 0, 1, 2  # kinds of coordinators
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
TIMEOUT_MS = 30_000
MAX_BYTES = 1_000_000
NO_ID = bytes(16)
INIT_PRODUCER_ID_VERSION = 5  # the newest stable one
# The last versions with topic names.
PRODUCE_VERSION = FETCH_VERSION = 12
OFFSETS_VERSION = 9  # of OffsetCommit and OffsetFetch


def coordinator(key: str, kind: int) -> Message:
    return request("FindCoordinator", key_type=kind, coordinator_keys=[key])


def create_topics(*topics: dict[str, Any], validate_only: bool = False) -> Message:
    return request("CreateTopics", topics=list(topics), timeout_ms=TIMEOUT_MS, validate_only=validate_only)


def metadata(*topics: str | None, auto_create: bool = False) -> Message:
    names = [{"name": name} for name in topics]
    return request("Metadata", topics=names, allow_auto_topic_creation=auto_create)


def produce(topic: str, records: bytes, transactional_id: str | None = None, partition: int = 0) -> Message:
    data = {"name": topic, "partition_data": [{"index": partition, "records": records}]}
    return request("Produce", transactional_id=transactional_id, acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[data])


def fetched(
    topic: str, topic_id: bytes = NO_ID, *, offset: int = 0, partition: int = 0, epoch: int = -1, most: int = MAX_BYTES
) -> dict[str, Any]:
    """Return a partition for `fetch`."""
    wanted = {"partition": partition, "fetch_offset": offset, "current_leader_epoch": epoch}
    return {"topic": topic, "topic_id": topic_id, "partitions": [wanted | {"partition_max_bytes": most}]}


def fetch(*topics: dict[str, Any], **fields: Any) -> Message:
    """Return a request of a consumer, without a session."""
    usual = {"max_bytes": MAX_BYTES, "session_epoch": -1, "topics": list(topics)}
    return request("Fetch", **usual | fields)


def list_offsets(topic: str, timestamp: int, *, epoch: int = -1, **fields: Any) -> Message:
    partition = {"partition_index": 0, "current_leader_epoch": epoch, "timestamp": timestamp}
    topics = [{"name": topic, "partitions": [partition]}]
    return request("ListOffsets", **{"replica_id": -1, "timeout_ms": TIMEOUT_MS, "topics": topics} | fields)


def end_of_epoch(topic: str, epoch: int, current: int = -1, replica_id: int = -1) -> Message:
    partition = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
    return request("OffsetForLeaderEpoch", replica_id=replica_id, topics=[{"topic": topic, "partitions": [partition]}])


def describe_producers(topic: str, *partitions: int) -> Message:
    return request("DescribeProducers", topics=[{"name": topic, "partition_indexes": list(partitions)}])


def init_producer(transactional_id: str | None, timeout_ms: int = 60_000) -> Message:
    return request("InitProducerId", transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)


def of_producer(producer: Any) -> dict[str, Any]:
    """Return the fields of a response of InitProducerId that other requests have."""
    return {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}


def add_partitions(producer: Any, transactional_id: str, topic: str, *partitions: int) -> Message:
    return request(
        "AddPartitionsToTxn",
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[{"name": topic, "partitions": list(partitions)}],
    )


def add_offsets(producer: Any, transactional_id: str, group: str) -> Message:
    return request("AddOffsetsToTxn", transactional_id=transactional_id, group_id=group, **of_producer(producer))


def end_txn(producer: Any, transactional_id: str, *, committed: bool) -> Message:
    return request("EndTxn", transactional_id=transactional_id, committed=committed, **of_producer(producer))


def commit(group: str, topics: Iterable[dict[str, Any]], member: str = "", epoch: int = -1) -> Message:
    return request(
        "OffsetCommit", group_id=group, member_id=member, generation_id_or_member_epoch=epoch, topics=list(topics)
    )


def committed(topic: str, *partitions: tuple[int, str], offset: int = 1) -> dict[str, Any]:
    """Return the partitions of a topic for `commit`, with the metadata of each."""
    found = [
        {"partition_index": index, "committed_offset": offset, "committed_metadata": text} for index, text in partitions
    ]
    return {"name": topic, "partitions": found}


def offsets(group: str, topic: str, *partitions: int, member: str | None = None, epoch: int = -1) -> Message:
    topics = [{"name": topic, "partition_indexes": list(partitions)}]
    group_ = {"group_id": group, "member_id": member, "member_epoch": epoch, "topics": topics}
    return request("OffsetFetch", groups=[group_], require_stable=True)


def old_offsets(group: str, topic: str, partitions: Sequence[int] = (0,)) -> Message:
    """Return a request for versions up to 7."""
    topics = [{"name": topic, "partition_indexes": list(partitions)}]
    return request("OffsetFetch", group_id=group, topics=topics)
