"""The transactional ids stored in a partition of __transaction_state.

Follows Kafka's TransactionLog.read and TransactionStateManager.loadTransactionMetadata. Different on purpose: an id in
an unknown state, as a newer Kafka may write, is skipped.
"""

import logging

from sluice.broker.coordinator.common.loader import CompactedState, RecordReader, RecordType
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.topic import TopicPartition

from .metadata import EMPTY, TransactionMetadata, TransactionState
from .records import KEY_VERSION, TransactionLogKey, TransactionLogValue

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
