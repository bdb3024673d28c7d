"""The records of `__transaction_state` in Kafka's format: one for each step of a transactional id, then a tombstone.

Follows TransactionLog, TransactionLogKey, TransactionLogValue and TransactionStateManager.loadTransactionMetadata.
Version 1 of the value, with tagged fields, is written from transaction version 1 on; both versions are read. The
previous epoch is not stored, so it is unknown after a load.

Different on purpose: an id in an unknown state, as a newer Kafka may write, is skipped.
"""

from __future__ import annotations

import logging
from itertools import groupby
from operator import attrgetter
from typing import Annotated, ClassVar

from sluice.broker.coordinator.common.coordinator_log import encode_record
from sluice.broker.coordinator.common.loader import CompactedState, RecordReader, RecordType
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.topic import TopicPartition
from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int8, int16, int32, int64, string

from .metadata import EMPTY, TransactionMetadata, TransactionState

KEY_VERSION = 0


class TransactionLogKey(Message):
    """The version 0 doubles as the record type."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    transactional_id: string = ""


class PartitionsSchema(Message):
    topic: string = ""
    partition_ids: list[int32] = []  # noqa: RUF012  (msgspec copies the default)


class TransactionLogValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    producer_id: int64 = 0
    previous_producer_id: Annotated[int64, V("1+", tag=0)] = -1
    next_producer_id: Annotated[int64, V("1+", tag=1)] = -1
    producer_epoch: int16 = 0
    next_producer_epoch: Annotated[int16, V("1+", tag=3)] = -1
    transaction_timeout_ms: int32 = 0
    transaction_status: int8 = 0
    transaction_partitions: Annotated[list[PartitionsSchema] | None, V("0+", null="0+")] = None
    transaction_last_update_timestamp_ms: int64 = 0
    transaction_start_timestamp_ms: int64 = 0
    client_transaction_version: Annotated[int16, V("1+", tag=2)] = 0


def key_bytes(transactional_id: str) -> bytes:
    return encode_record(KEY_VERSION, TransactionLogKey(transactional_id=transactional_id), KEY_VERSION)


def value_bytes(metadata: TransactionMetadata, transaction_version: int) -> bytes:
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=metadata.previous_producer_id,
        next_producer_id=metadata.next_producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None if metadata.state == EMPTY else _by_topic(metadata),
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
        client_transaction_version=metadata.client_version,
    )
    version = 1 if transaction_version >= 1 else 0
    return encode_record(version, value, version)


def _by_topic(metadata: TransactionMetadata) -> list[PartitionsSchema]:
    return [
        PartitionsSchema(topic=topic, partition_ids=[partition.partition for partition in partitions])
        for topic, partitions in groupby(sorted(metadata.partitions), attrgetter("topic"))
    ]


_logger = logging.getLogger("sluice.broker")

_RECORD_TYPES = {KEY_VERSION: RecordType(TransactionLogKey, TransactionLogValue, range(2))}
_STATES = {state.value: state for state in TransactionState}


def recover(log: PartitionLog) -> list[TransactionMetadata]:
    reader = RecordReader(log.name, _RECORD_TYPES.get)
    found = []
    for key, stored in CompactedState(log).values.items():
        record = reader.read(key, stored)
        if record is None:
            continue
        record_key, value = record
        assert isinstance(record_key, TransactionLogKey)
        assert isinstance(value, TransactionLogValue)
        state = _STATES.get(value.transaction_status)
        if state is None:
            where = {"transactional_id": record_key.transactional_id, "state": value.transaction_status}
            _logger.warning("skipping a transactional id in an unknown state", extra=where)
            continue
        found.append(_metadata(record_key.transactional_id, state, value))
    reader.log_skipped()
    return found


def _metadata(transactional_id: str, state: TransactionState, value: TransactionLogValue) -> TransactionMetadata:
    partitions = () if state == EMPTY else value.transaction_partitions or ()
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.transaction_timeout_ms,
        value.transaction_last_update_timestamp_ms,
        state=state,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        partitions=frozenset(TopicPartition(one.topic, index) for one in partitions for index in one.partition_ids),
        start_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
    )
