"""Dead-letter queues of share groups (KIP-1191): topics for records that were rejected or delivered too often.

A dead letter has headers that describe the record and, with errors.deadletterqueue.copy.record.enable, its key and
value. Follows Kafka 4.4's ShareGroupDLQStateManager, but calls the leader in this process. Records are archived even if
they cannot be written.
"""

import logging
from collections.abc import Callable
from functools import partial

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.coordinator.share.persisted import SharePartitionId
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import Partition, Topic
from sluice.broker.replica.delayed_append import await_replication
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record, iter_records

from .aborted_records import fetched_batches

_logger = logging.getLogger("sluice.broker")

DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
_ENABLED = "errors.deadletterqueue.group.enable"
_RETRY_MS, _ATTEMPTS = 1_000, 5  # ShareGroupDLQStateManager.REQUEST_BACKOFF_MS, MAX_REQUEST_ATTEMPTS
_REPLICATION_MS = 30_000
# The texts of Kafka's header.
_REJECTED, _EXCEEDED = "Offset rejected by client.", "Offset delivery count exceeded the threshold."
_READ_BYTES = 2**20
_RETRIABLE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR)


def keep_dead_letters(
    host: BrokerNode,
    key: SharePartitionId,
    source: Partition,
    first: int,
    last: int,
    delivery_count: int,
    done: Callable[[], None],
) -> None:
    """Append records to the dead-letter queue of the group, then call `done`."""
    configs = host.cluster.group_configs.in_force(key.group_id)
    topic = _topic(host, configs.text(DEAD_LETTER_TOPIC))
    if isinstance(topic, str):
        extra = {"group": key.group_id, "partition": str(source), "offset": first, "reason": topic}
        _logger.warning("records of a share group are not kept as dead letters", extra=extra)
        done()
        return
    copied = _records(source, first, last) if configs.boolean("errors.deadletterqueue.copy.record.enable") else {}
    now_ms = host.clock.wall_ms()
    reason = _EXCEEDED if delivery_count >= configs.integer("share.delivery.count.limit") else _REJECTED
    letters = []
    for offset in range(first, last + 1):
        record = copied.get(offset)
        about = {
            "topic": source.topic.name,
            "partition": source.index,
            "offset": offset,
            "group": key.group_id,
            "delivery.count": delivery_count,
            "message": reason,
        }
        headers = tuple((f"__dlq.errors.{name}", str(value).encode()) for name, value in about.items())
        content = (None, None) if record is None else (record.key, record.value)
        letters.append(Record(offset - first, now_ms, *content, headers))
    _append(host, topic.partitions[source.index % len(topic.partitions)], letters, done, 1)


def _topic(host: BrokerNode, name: str) -> Topic | str:
    """Return the topic, or why it is missing."""
    prefix = host.config.text("errors.deadletterqueue.topic.name.prefix")
    if not name or name.startswith("__") or not name.startswith(prefix):
        return f"{DEAD_LETTER_TOPIC} is {name!r}; expected a name with the prefix {prefix}"
    topic = host.cluster.topics.get(name)
    if topic is not None:
        return topic if topic.config.boolean(_ENABLED) else f"topic {name} has {_ENABLED}=false"
    if not host.config.boolean("errors.deadletterqueue.auto.create.topics.enable"):
        return f"topic {name} does not exist"
    created = host.cluster.create(NewTopic(name, configs={_ENABLED: "true", "message.timestamp.type": "CreateTime"}))
    return created if isinstance(created, Topic) else f"topic {name} cannot be created: {created.code.name}"


def _records(source: Partition, first: int, last: int) -> dict[int, Record]:
    found = source.log.read(first, _READ_BYTES, source.log.high_watermark, min_one_batch=True)
    return {
        record.offset: record
        for batch in fetched_batches(found.parts)
        for record in iter_records(bytes(batch.data))
        if first <= record.offset <= last
    }


def _append(
    host: BrokerNode, partition: Partition, letters: list[Record], done: Callable[[], None], attempt: int
) -> None:
    now_ms = host.clock.wall_ms()
    leader = host.cluster.leader_of(partition)
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if leader is not None:
        data = memoryview(build_batch(letters))
        code = ErrorCode(partition.log.append(data, now_ms, partition.leader_epoch).error_code)
    if code in _RETRIABLE and attempt < _ATTEMPTS:
        again = partial(_append, host, partition, letters, done, attempt + 1)
        host.scheduler.schedule_once(_RETRY_MS * 2 ** (attempt - 1), again)
    elif code or leader is None:
        extra = {"partition": str(partition), "error": code.name}
        _logger.warning("dead letters of a share group are rejected", extra=extra)
        done()
    else:
        leader.replicas.appended(partition)
        required = {partition: partition.log.log_end_offset}
        await_replication(leader.replicas, required, _REPLICATION_MS, lambda _: done())
