"""From the records in a partition of __transaction_state back to transactional ids. Follows Kafka's TransactionLog.read
and TransactionStateManager.loadTransactionMetadata.

Different on purpose: an id in a state that nobody knows, which a newer Kafka may have, is left out.
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
    """What a partition says of its transactional ids."""
    reader = RecordReader(log.name, _RECORD_TYPES)
    found = []
    for key, stored in CompactedState(log).values.items():
        record = reader.read(key, stored)
        if record is None:
            continue
        of, value = record
        assert isinstance(of, TransactionLogKey)
        assert isinstance(value, TransactionLogValue)
        state = _STATES.get(value.transaction_status)
        if state is None:
            where = {"transactional_id": of.transactional_id, "state": value.transaction_status}
            _logger.warning("transactional id in an unknown state is left out", extra=where)
            continue
        found.append(_metadata(of.transactional_id, state, value))
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
