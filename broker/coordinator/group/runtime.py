"""The runtime of the group coordinator: groups, offsets, their log, and timers.

Follows Kafka's CoordinatorRuntime. Every change is written to __consumer_offsets first. Different on purpose: one
coordinator serves all partitions that the broker leads.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog, KeyValue, is_for
from sluice.broker.coordinator.common.shards import CoordinatorShards
from sluice.broker.coordinator.share.persister import SharePersister
from sluice.broker.journal.journal import Journal
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, Partition
from sluice.broker.replica.delayed_append import await_replication
from sluice.config.value_types import Values
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.purgatory import DelayedOperationPurgatory

from .group import Group
from .offsets import CommittedOffset, OffsetStore, TopicPartition
from .timer import GroupTimer

_NEW, _DELETED = "Empty", "Dead"


class Offset(NamedTuple):
    group_id: str
    partition: TopicPartition
    committed: CommittedOffset


class Recovered(NamedTuple):
    groups: dict[str, Group]
    offsets: list[Offset]
    pending: list[tuple[int, Offset]]  # with the producer id of the open transaction


class GroupStateJournal:
    """The last state of each group, so that the journal records each change once.

    The state of a consumer group (KIP-848) is compared after each write.
    """

    def __init__(self, journal: Journal | None, node_id: int) -> None:
        self._journal = journal
        self._node_id = node_id
        self._states: dict[str, str] = {}

    def loaded(self, group: Group) -> None:
        # A move to this broker is not a change.
        self._states[group.group_id] = group.state_name

    def unloaded(self, group: Group) -> None:
        self._states.pop(group.group_id, None)

    def record_change(self, group: Group) -> None:
        self._record(group, group.state_name)

    def deleted(self, group: Group) -> None:
        self._record(group, _DELETED)
        del self._states[group.group_id]

    def _record(self, group: Group, after: str) -> None:
        before = self._states.get(group.group_id, _NEW)
        self._states[group.group_id] = after
        if self._journal is not None and after != before:
            self._journal.add_cluster_event(
                "group-state",
                self._node_id,
                group_id=group.group_id,
                group_type=group.type,
                before=before,
                after=after,
                generation=group.generation,
                members=len(group.members),
            )


class GroupRuntime(ABC):
    def __init__(self, host: BrokerNode, share_persister: SharePersister) -> None:
        self.host = host
        self.share_persister = share_persister
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.log = CoordinatorLog(host, GROUP_METADATA_TOPIC)
        self.shards = CoordinatorShards(host, self.log, self._recover, self._resign)
        self.rebalances = DelayedOperationPurgatory("Rebalance", host.timer)
        self.heartbeats = DelayedOperationPurgatory("Heartbeat", host.timer)
        self.write_timeout_ms = host.config.integer("offsets.commit.timeout.ms")
        self.state_journal = GroupStateJournal(host.journal, host.node_id)

    def now_ms(self) -> int:
        return self.host.clock.wall_ms()

    def group_configs(self, group_id: str) -> Values:
        return self.host.cluster.group_configs.in_force(group_id)

    # -- loading and unloading -----------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, log: PartitionLog) -> Recovered: ...

    @abstractmethod
    def group_loaded(self, group: Group) -> None: ...

    @abstractmethod
    def group_unloaded(self, group: Group) -> None:
        """Fail the parked requests of a group that another broker coordinates now."""

    def error(self, group_id: str) -> ErrorCode:
        return ErrorCode.NONE if group_id in self.groups else self.shards.error(group_id)

    def _recover(self, partition: Partition) -> None:
        if partition.log.log_start_offset == partition.log.log_end_offset:
            return
        recovered = self.read(partition.log)
        for group_id, committed_in, committed in recovered.offsets:
            self.offsets.put(group_id, committed_in, committed)
        for producer_id, (group_id, committed_in, committed) in recovered.pending:
            self.offsets.put_pending((partition.index, producer_id), group_id, committed_in, committed)
        for group in recovered.groups.values():
            self._add_loaded(group)

    def _add_loaded(self, group: Group) -> None:
        self.groups[group.group_id] = group
        self.state_journal.loaded(group)
        self.group_loaded(group)

    def _resign(self, partition: Partition) -> None:
        unloaded = [group for group in self.groups.values() if is_for(partition, group.group_id)]
        for group in unloaded:
            self.group_unloaded(group)
            group.cancel_timers()
            del self.groups[group.group_id]
            self.state_journal.unloaded(group)
        self.offsets.drop({group.group_id for group in unloaded}, partition.index)

    # -- writing -------------------------------------------------------------------------------------------------------

    def max_record_bytes(self, group_id: str) -> int:
        return self.log.partition_of(group_id).log.config.append.max_message_bytes

    def write(self, group_id: str, records: Sequence[KeyValue]) -> ErrorCode:
        return self.log.append(group_id, records, self.now_ms())

    def write_or_restore(self, group_id: str, records: Sequence[KeyValue]) -> ErrorCode:
        """Write a change already made; if that fails, restore the group and restart its sessions."""
        error = self.write(group_id, records) if records else ErrorCode.NONE
        if error:
            self.restore(group_id)
        elif records and group_id in self.groups:
            self.state_journal.record_change(self.groups[group_id])
        return error

    def restore(self, group_id: str) -> None:
        group = self.groups.pop(group_id, None)
        if group is not None:
            group.cancel_timers()
        written = self.read(self.log.partition_of(group_id).log).groups.get(group_id)
        if written is not None:
            self._add_loaded(written)

    def await_replication(self, group_id: str, done: Callable[[Collection[Partition]], None]) -> None:
        """Call `done` after replication, with the partition if records may be lost."""
        partition = self.log.partition_of(group_id)
        await_replication(self.host.replicas, {partition: partition.log.log_end_offset}, self.write_timeout_ms, done)

    def lost_error(self, group_id: str) -> ErrorCode:
        """Return why a write may be lost: the coordinator has moved, or the replicas are late."""
        return self.error(group_id) or ErrorCode.COORDINATOR_NOT_AVAILABLE

    def add(self, group: Group) -> list[KeyValue]:
        """Add a group; return the tombstones of an empty one that it replaces."""
        before = self.groups.get(group.group_id)
        if before is group:
            return []
        self.groups[group.group_id] = group
        if before is None:
            return []
        before.cancel_timers()
        return before.tombstones()

    def remove(self, group: Group) -> None:
        group.cancel_timers()
        del self.groups[group.group_id]
        self.state_journal.deleted(group)

    # -- timers --------------------------------------------------------------------------------------------------------

    def await_rebalance(self, delay_ms: float, action: Callable[[], object]) -> GroupTimer:
        return GroupTimer(self.rebalances, self.host.actions, delay_ms, action)

    def await_heartbeat(self, delay_ms: float, action: Callable[[], object]) -> GroupTimer:
        return GroupTimer(self.heartbeats, self.host.actions, delay_ms, action)
