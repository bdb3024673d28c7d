"""The share coordinator: the state of the share partitions that hash to its partitions of `__share_group_state`.

A snapshot record has the whole state of a share partition, an update record a change. After
`share.coordinator.snapshot.update.records.per.snapshot` updates, the next record is a snapshot. Records before the
oldest snapshot in use are deleted.

Follows Kafka's ShareCoordinatorShard, ShareCoordinatorService and ShareCoordinatorOffsetsManager.
"""

from collections.abc import Callable, Collection

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog, encode_record, is_for
from sluice.broker.coordinator.common.shards import CoordinatorShards
from sluice.broker.metadata.topic import SHARE_GROUP_STATE_TOPIC, Partition
from sluice.broker.replica.delayed_append import await_replication
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .persisted import Done, PartitionSummary, SharePartitionId, StateWrite, failed_summary
from .record_messages import SNAPSHOT, UPDATE, SharePartitionKey, ShareSnapshotValue, ShareUpdateValue, replay
from .record_messages import StateBatch as StateBatchRecord
from .state import UNKNOWN, ShareState, combine, state_of

ReadDone = Callable[[ErrorCode, ShareState | None], None]


class ShareCoordinator:
    def __init__(self, host: BrokerNode) -> None:
        config = host.config
        self._host = host
        self._log = CoordinatorLog(host, SHARE_GROUP_STATE_TOPIC)
        self._states: dict[SharePartitionId, ShareState] = {}
        self._updates: dict[SharePartitionId, int] = {}
        self._leader_epochs: dict[SharePartitionId, int] = {}  # the highest ones, which a new state does not reset
        self._snapshot_offsets: dict[SharePartitionId, int] = {}
        self._updates_per_snapshot = config.integer("share.coordinator.snapshot.update.records.per.snapshot")
        self._write_timeout_ms = config.integer("share.coordinator.write.timeout.ms")
        self._cold_ms = config.integer("share.coordinator.cold.partition.snapshot.interval.ms")
        self.shards = CoordinatorShards(host, self._log, self._recover, self._resign)
        host.scheduler.schedule(self._cold_ms, self.snapshot_cold_partitions)
        host.scheduler.schedule(config.integer("share.coordinator.state.topic.prune.interval.ms"), self.prune)
        self.shards.load_led()

    def state(self, key: SharePartitionId) -> ShareState | None:
        return self._states.get(key)

    # -- loading and unloading -----------------------------------------------------------------------------------------

    def _recover(self, partition: Partition) -> None:
        for key, value, offset in replay(partition.log):
            self._apply(key, value, offset)

    def _resign(self, partition: Partition) -> None:
        for key in self._keys_in(partition):
            self._forget(key)

    def _keys_in(self, partition: Partition) -> list[SharePartitionId]:
        return [key for key in self._states if is_for(partition, key.coordinator_key)]

    def _forget(self, key: SharePartitionId) -> None:
        for by_key in (self._states, self._updates, self._leader_epochs, self._snapshot_offsets):
            by_key.pop(key, None)

    # -- requests ------------------------------------------------------------------------------------------------------

    def initialize(self, key: SharePartitionId, state_epoch: int, start_offset: int, done: Done) -> None:
        """Set the state of a share partition; with start offset -1, its leader decides."""
        state = self._states.get(key)
        error = self.shards.error(key.coordinator_key) or self._topic_error(key)
        if not error and state is not None and state_epoch != UNKNOWN and state.state_epoch > state_epoch:
            error = ErrorCode.FENCED_STATE_EPOCH
        if error:
            done(error)
            return
        now_ms = self._host.clock.wall_ms()
        snapshot_epoch = 0 if state is None else state.snapshot_epoch + 1
        complete = UNKNOWN if start_offset == UNKNOWN else 0
        initial = ShareState(snapshot_epoch, state_epoch, 0, start_offset, complete, (), now_ms, now_ms)
        self._store(key, initial.snapshot(), done)

    def read(self, key: SharePartitionId, leader_epoch: int, done: ReadDone) -> None:
        """Return the state to the partition's leader; a leader with an older epoch is fenced from then on."""
        error = self._error(key, leader_epoch, UNKNOWN)
        if error:
            done(error, None)
            return
        state = self._states[key]
        if leader_epoch in (UNKNOWN, self._leader_epochs[key]):
            done(ErrorCode.NONE, state)
            return
        write = StateWrite(UNKNOWN, leader_epoch, state.start_offset, state.delivery_complete_count, [])
        record = self._changed(key, write, leader_epoch)
        self._store(key, record, lambda code: done(code, None if code else state))

    def write(self, key: SharePartitionId, write: StateWrite, done: Done) -> None:
        error = self._error(key, write.leader_epoch, write.state_epoch)
        if error:
            done(error)
        else:
            self._store(key, self._changed(key, write, self._states[key].leader_epoch), done)

    def read_summary(self, key: SharePartitionId) -> PartitionSummary:
        error = self.shards.error(key.coordinator_key) or self._topic_error(key)
        state = self._states.get(key)
        if error or state is None:
            return failed_summary(error)
        return PartitionSummary(
            ErrorCode.NONE, state.start_offset, state.state_epoch, state.leader_epoch, state.delivery_complete_count
        )

    def delete(self, key: SharePartitionId, done: Done) -> None:
        error = self.shards.error(key.coordinator_key) or self._topic_error(key)
        if error or key not in self._states:
            done(error)
        else:
            self._store(key, None, done)

    def delete_topic(self, topic_id: bytes) -> None:
        for key in [key for key in self._states if key.topic_id == topic_id]:
            self._store(key, None, _ignore)

    def _error(self, key: SharePartitionId, leader_epoch: int, state_epoch: int) -> ErrorCode:
        error = self.shards.error(key.coordinator_key)
        if error:
            return error
        state = self._states.get(key)
        if state is None:
            return ErrorCode.INVALID_REQUEST
        if leader_epoch != UNKNOWN and self._leader_epochs[key] > leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if state_epoch != UNKNOWN and state.state_epoch > state_epoch:
            return ErrorCode.FENCED_STATE_EPOCH
        return self._topic_error(key)

    def _topic_error(self, key: SharePartitionId) -> ErrorCode:
        topic = self._host.metadata.topics_by_id.get(key.topic_id)
        is_known = topic is not None and topic.partition(key.partition) is not None
        return ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # -- records -------------------------------------------------------------------------------------------------------

    def _changed(
        self, key: SharePartitionId, write: StateWrite, leader_epoch: int
    ) -> ShareSnapshotValue | ShareUpdateValue:
        state = self._states[key]
        # Neither of them moves back.
        start_offset, complete = max(
            (write.start_offset, write.delivery_complete_count), (state.start_offset, state.delivery_complete_count)
        )
        if self._updates.get(key, 0) < self._updates_per_snapshot:
            return ShareUpdateValue(
                snapshot_epoch=state.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=complete,
                state_batches=[StateBatchRecord(*one) for one in combine(write.batches, start_offset)],
            )
        now_ms = self._host.clock.wall_ms()
        return state._replace(
            snapshot_epoch=state.snapshot_epoch + 1,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=complete,
            batches=combine([*state.batches, *write.batches], start_offset),
            created_ms=now_ms,
            written_ms=now_ms,
        ).snapshot()

    def _store(self, key: SharePartitionId, value: ShareSnapshotValue | ShareUpdateValue | None, done: Done) -> None:
        name = key.coordinator_key
        number = UPDATE if isinstance(value, ShareUpdateValue) else SNAPSHOT
        encoded_key = encode_record(number, SharePartitionKey(*key), 0)
        encoded = None if value is None else encode_record(0, value, 0)
        error = self._log.append(name, [(encoded_key, encoded)], self._host.clock.wall_ms())
        if error:
            done(error)
            return
        partition = self._log.partition_of(name)
        end = partition.log.log_end_offset
        self._apply(key, value, end - 1)

        def replicated(missing: Collection[Partition]) -> None:
            done(self.shards.error(name) or ErrorCode.COORDINATOR_NOT_AVAILABLE if missing else ErrorCode.NONE)

        await_replication(self._host.replicas, {partition: end}, self._write_timeout_ms, replicated)

    def _apply(self, key: SharePartitionId, value: Message | None, offset: int) -> None:
        if isinstance(value, ShareUpdateValue | ShareSnapshotValue):
            self._leader_epochs[key] = max(value.leader_epoch, self._leader_epochs.get(key, 0))
        if isinstance(value, ShareUpdateValue):
            state = self._states.get(key)
            if state is not None:
                self._states[key] = state.updated(value)
                self._updates[key] = self._updates.get(key, 0) + 1
        elif isinstance(value, ShareSnapshotValue):
            self._states[key] = state_of(value)
            self._snapshot_offsets[key] = offset
            if self._updates.get(key, 0) >= self._updates_per_snapshot:
                self._updates[key] = 0
        else:
            self._forget(key)

    # -- timers --------------------------------------------------------------------------------------------------------

    def snapshot_cold_partitions(self) -> None:
        """Write new snapshots of idle share partitions, so that older records can be deleted."""
        if all(state.created_ms != state.written_ms for state in self._states.values()):
            return
        now_ms = self._host.clock.wall_ms()
        for key, state in list(self._states.items()):
            if now_ms - state.written_ms >= self._cold_ms and not self.shards.error(key.coordinator_key):
                cold = state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms)
                self._store(key, cold.snapshot(), _ignore)

    def prune(self) -> None:
        """Delete the records before the oldest snapshot in use."""
        topic = self._host.metadata.topics.get(SHARE_GROUP_STATE_TOPIC)
        for partition in () if topic is None else topic.partitions:
            log = partition.log
            if not self._host.replicas.leads(partition) or log.log_start_offset == log.log_end_offset:
                continue
            needed = [self._snapshot_offsets[key] for key in self._keys_in(partition)]
            offset = min([*needed, log.high_watermark])
            if offset > log.log_start_offset and not log.delete_records_before(offset):
                self._host.replicas.records_deleted(partition)


def _ignore(_: ErrorCode) -> None:
    pass
