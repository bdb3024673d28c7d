"""The ends of transactions, as they stand in the logs of partitions: Kafka's WriteTxnMarkers, and what the coordinator
does with it, in one process."""

from typing import TYPE_CHECKING, NamedTuple

from sluice.broker.cluster import GROUP_METADATA_TOPIC, Partition
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.build import ABORT, COMMIT, build_transaction_marker
from sluice.protocol.records.log_validator import COORDINATOR

if TYPE_CHECKING:
    from sluice.broker.broker import Broker

# Kafka's request.timeout.ms: how long markers wait for their replicas before somebody is told.
MARKER_TIMEOUT_MS = 30_000


class Marker(NamedTuple):
    """What is written to each partition of a transaction."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int


def write_marker(broker: "Broker", partition: Partition, marker: Marker, now_ms: int) -> ErrorCode:
    """Ends the transaction in one partition. Offsets that are committed with it belong to the group from then on."""
    data = build_transaction_marker(
        COMMIT if marker.committed else ABORT,
        offset=0,
        timestamp=now_ms,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
    )
    result = partition.log.append(
        memoryview(data), now_ms, partition.leader_epoch, COORDINATOR, marker.transaction_version
    )
    if result.error_code:
        return ErrorCode(result.error_code)
    broker.appended(partition)
    if partition.topic.name == GROUP_METADATA_TOPIC:
        broker.groups.complete_transaction(partition, marker.producer_id, marker.committed)
    return ErrorCode.NONE
