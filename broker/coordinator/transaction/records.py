"""The records of `__transaction_state` in Kafka's format: one for each step of a transactional id, then a tombstone.

Follows TransactionLog, TransactionLogKey and TransactionLogValue. Value version 1, with tagged fields, is written from
transaction version 1 on; both versions are read. The previous epoch is not stored, so it is unknown after a load.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import Annotated, ClassVar

from sluice.broker.coordinator.common.coordinator_log import encode_record
from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int8, int16, int32, int64, string

from .metadata import EMPTY, TransactionMetadata

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
