"""The log of a coordinator: one of Kafka's internal topics, which loader.py reads back.

A key (a group id or a transactional id) maps to a partition by its Java hash, as in Kafka's
GroupCoordinatorService.partitionFor.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.metadata.topic import TRANSACTION_STATE_TOPIC, Partition, Topic
from sluice.errors import NotDurableError
from sluice.protocol.codec.compile import encoder
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.log_validator import COORDINATOR
from sluice.protocol.records.record import Record

N = TypeVar("N", bound=BrokerNode)
KeyValue = tuple[bytes, bytes | None]  # without a value, a tombstone
_SIGN = 2**31
# Error of the append -> error for the client (CoordinatorOperationExceptionHelper,
# TransactionStateManager.appendTransactionToLog).
_CLIENT_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def partition_for(topic: Topic, key: str) -> Partition:
    return topic.partitions[java_hash(key) % len(topic.partitions)]


def is_for(partition: Partition, key: str) -> bool:
    """Return whether a partition of a coordinator's topic, which may be deleted, stores this key."""
    return java_hash(key) % len(partition.topic.partitions) == partition.index


class CoordinatorLog:
    def __init__(self, host: BrokerNode, name: str) -> None:
        self._host = host
        self.name = name

    def partition_of(self, key: str) -> Partition:
        """Return the partition of a key; create the topic if it is missing. Raises NotDurableError."""
        return partition_for(self._host.internal_topic(self.name), key)

    def existing_partition_of(self, key: str) -> Partition | None:
        topic = self._host.metadata.topics.get(self.name)
        return None if topic is None else partition_for(topic, key)

    def append(self, key: str, records: Sequence[KeyValue], now_ms: int) -> ErrorCode:
        """Append one batch; return the error for the client."""
        return self.append_batch(key, batch_of(records, now_ms), now_ms)

    def append_batch(self, key: str, data: bytes, now_ms: int) -> ErrorCode:
        """Append a batch; one of a transaction fails if the partition has a later epoch of its producer."""
        try:
            partition = self.partition_of(key)
        except NotDurableError:  # deleted after the coordinator had loaded it, and not created again
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._precondition_error(partition)
        if error:
            return _CLIENT_ERRORS[error]
        result = partition.log.append(memoryview(data), now_ms, partition.leader_epoch, COORDINATOR)
        error = ErrorCode(result.error_code)
        if error:
            return _CLIENT_ERRORS.get(error, error)
        self._host.replicas.appended(partition)
        return error

    def _precondition_error(self, partition: Partition) -> ErrorCode:
        """Return why the partition rejects appends; only the transaction log requires min.insync.replicas."""
        if not self._host.replicas.leads(partition):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.name == TRANSACTION_STATE_TOPIC and len(partition.isr) < partition.min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return ErrorCode.NONE


def batch_of(
    records: Iterable[KeyValue], now_ms: int, producer_id: int = NO_PRODUCER_ID, producer_epoch: int = NO_PRODUCER_EPOCH
) -> bytes:
    transactional = producer_id != NO_PRODUCER_ID
    return build_batch(
        (Record(offset, now_ms, record_key, value) for offset, (record_key, value) in enumerate(records)),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=0 if transactional else NO_SEQUENCE,
        transactional=transactional,
    )


def coordinator_of(host: N, topic: str, key: str) -> N | None:
    """Return the live broker that coordinates a key, as far as this broker knows."""
    try:
        return host.leader_of(CoordinatorLog(host, topic).partition_of(key))
    except NotDurableError:  # the topic cannot be created
        return None


def encode_record(number: int, message: Message, version: int) -> bytes:
    parts: list[bytes | memoryview] = [number.to_bytes(2)]
    encoder(type(message), version)(message, parts)
    return b"".join(parts)


@lru_cache(4096)
def java_hash(text: str) -> int:
    """Return Java's `String.hashCode()` without its sign; the minimum becomes 0 (Kafka's Utils.abs)."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        value = value * 31 + (units[position] << 8 | units[position + 1]) & 0xFFFF_FFFF
    return value if value < _SIGN else (2 * _SIGN - value) % _SIGN
