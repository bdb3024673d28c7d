"""Transaction markers: the control records that end a transaction in each of its partitions.

Follows TransactionMarkerChannelManager and TransactionMarkerRequestCompletionHandler, but calls the leaders in this
process instead of sending WriteTxnMarkers.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.controller.inter_broker import reaches
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, Partition, TopicPartition
from sluice.broker.replica.delayed_append import await_replication
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.build import ABORT, COMMIT, build_transaction_marker
from sluice.protocol.records.log_validator import COORDINATOR
from sluice.purgatory.operation import DelayedOperation

_logger = logging.getLogger("sluice.broker")

# Between checks whether the leaders of written markers changed: Kafka's default request.timeout.ms.
_CHECK_MS = 30_000
# Before the retry of a marker: the poll interval of Kafka's sender.
_RETRY_MS = 100
_RETRIABLE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR)


class Marker(NamedTuple):
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int


def write_marker(host: BrokerNode, partition: Partition, marker: Marker, now_ms: int) -> ErrorCode:
    """End the transaction in a partition; in __consumer_offsets, commit or drop its offsets."""
    if not host.replicas.leads(partition):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if len(partition.isr) < partition.min_isr:
        return ErrorCode.NOT_ENOUGH_REPLICAS
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
    host.replicas.appended(partition)
    if partition.topic.name == GROUP_METADATA_TOPIC:
        host.complete_transaction(partition, marker.producer_id, committed=marker.committed)
    return ErrorCode.NONE


class MarkerWriter(Struct, eq=False):
    """The writing of one transaction's markers to all its partitions; `done` is called when they are replicated.

    If a partition permanently rejects its marker, the transaction hangs, as in Kafka.
    """

    _host: BrokerNode
    _transactional_id: str
    _marker: Marker
    _done: Callable[[], None]
    _cancelled: bool = False
    _waiting: DelayedOperation | None = None

    def cancel(self) -> None:
        self._cancelled = True
        if self._waiting is not None:
            self._waiting.force_complete()

    def write(self, names: Collection[TopicPartition]) -> None:
        if self._cancelled:
            return
        written: dict[Partition, int] = {}
        remaining: list[TopicPartition] = []
        for name in sorted(names):
            partition = self._host.metadata.partition(*name)
            if partition is None:
                continue
            leader = self._host.leader_of(partition)
            if leader is None or not reaches(self._host, leader):
                remaining.append(name)
                continue
            code = write_marker(leader, partition, self._marker, self._host.clock.wall_ms())
            if code in _RETRIABLE:
                remaining.append(name)
            elif code:
                extra = {"transactional_id": self._transactional_id, "partition": str(partition), "error": code.name}
                _logger.warning("transaction marker rejected", extra=extra)
                return
            else:
                written[partition] = partition.log.log_end_offset
        self._await(written, remaining)

    def _await(self, written: Mapping[Partition, int], remaining: Sequence[TopicPartition]) -> None:
        epochs = {partition: partition.leader_epoch for partition in written}

        def finish_wait(missing: Collection[Partition]) -> None:
            if self._cancelled:
                return
            # After a timeout Kafka sends them again. With an unchanged leader they are not lost: only wait again.
            slow = {one: written[one] for one in missing if one.leader_epoch == epochs[one]}
            lost = [TopicPartition(one.topic.name, one.index) for one in missing if one not in slow]
            if slow:
                self._await(slow, [*remaining, *lost])
            elif remaining or lost:
                self._host.scheduler.schedule_once(_RETRY_MS, partial(self._write_again, [*remaining, *lost]))
            else:
                self._done()

        waiting = await_replication(self._host.replicas, written, _CHECK_MS, finish_wait)
        if waiting is not None:
            self._waiting = waiting

    def _write_again(self, names: Collection[TopicPartition]) -> None:
        self.write(names)
        self._host.actions.complete()
