"""The coordinator of groups: which there are, what they committed, and what is written down about them.

Follows Kafka's GroupCoordinatorService, and the decisions of its OffsetMetadataManager. Whatever changes is written to
__consumer_offsets first, and read back from there when the broker becomes the leader of a partition of it: groups go
with the partition that their ids belong to. Different on purpose: there is one coordinator for all partitions that the
broker leads, not one for each.

Offsets belong to a group's id and stay when the group becomes one of another kind. A *simple* group, which has no
members, begins with the first offset that is committed for it. A group that is empty goes with its last offset, when
retention takes that.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog, KeyValue
from sluice.broker.coordinator.common.shards import CoordinatorShards
from sluice.broker.coordinator.group.classic.group import PREPARING_REBALANCE, STABLE, ClassicGroup
from sluice.broker.coordinator.group.classic.protocol import ClassicProtocol
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, Partition, Topic
from sluice.broker.replica.delayed_append import await_replication
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from sluice.purgatory.purgatory import DelayedOperationPurgatory

from .group import Commit, Group, NewOffset
from .offsets import CommittedOffset, OffsetStore, TopicPartition
from .parked_responses import ParkedResponses
from .records import offset_commit, offset_tombstones
from .state_journal import GroupStateJournal
from .timer import GroupTimer

if TYPE_CHECKING:
    from sluice.broker.coordinator.group.consumer.heartbeat import ConsumerProtocol
    from sluice.broker.server.broker import Broker

_NO_RETENTION_TIME = -1  # in OffsetCommit: as the broker is configured
_NO_TIMESTAMP = -1
_MINUTE_MS = 60_000
# A client learns only from these versions on that a group is not there; before, that its generation is wrong.
_GROUP_ID_NOT_FOUND_SINCE = 9  # of OffsetCommit
_TXN_GROUP_ID_NOT_FOUND_SINCE = 6  # of TxnOffsetCommit, which says from there on that an epoch is stale, too (KIP-1319)


class Producer(NamedTuple):
    """In whose transaction offsets are committed."""

    producer_id: int
    producer_epoch: int


class GroupCoordinator:
    """The groups whose partitions of __consumer_offsets the broker leads."""

    def __init__(self, broker: "Broker") -> None:
        config = broker.config
        self.broker = broker
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.log = CoordinatorLog(broker, GROUP_METADATA_TOPIC)
        self.rebalances = DelayedOperationPurgatory("Rebalance", broker.timer)
        self.heartbeats = DelayedOperationPurgatory("Heartbeat", broker.timer)
        self.responses = ParkedResponses(self)
        self.classic = ClassicProtocol(self)
        self.shards = CoordinatorShards(broker, self.log, self._recover, self._resign)
        self.write_timeout_ms = config.integer("offsets.commit.timeout.ms")
        self._max_metadata = config.integer("offset.metadata.max.bytes")
        self._retention_ms = config.integer("offsets.retention.minutes") * _MINUTE_MS
        broker.scheduler.schedule(config.integer("offsets.retention.check.interval.ms"), self._expire_offsets)
        journal = broker.journal
        self.state_journal = None if journal is None else GroupStateJournal(journal, broker.node_id)
        self.shards.load_led()

    @cached_property
    def consumer(self) -> "ConsumerProtocol":
        """What consumer groups go by, there from when a member of one first sends a heartbeat."""
        from sluice.broker.coordinator.group.consumer.heartbeat import (
            ConsumerProtocol,  # not before: classic groups are not to wait for it
        )

        return ConsumerProtocol(self)

    # -- partitions that come and go -----------------------------------------------------------------------------------

    def load(self, partition: Partition) -> None:
        """The broker leads this partition of __consumer_offsets: its groups are here from when they are loaded."""
        self.shards.load(partition)

    def unload(self, partition: Partition) -> None:
        """It leads it no more: its groups are elsewhere, and whoever waits here is told so."""
        self.shards.unload(partition)

    def error(self, group_id: str) -> ErrorCode:
        """NONE where this coordinator answers for the group, else what the client is told."""
        return ErrorCode.NONE if group_id in self.groups else self.shards.error(group_id)

    def _recover(self, partition: Partition) -> None:
        log = partition.log
        if log.log_start_offset == log.log_end_offset:
            return
        from .replay import recover  # not before: a fresh broker has nothing to load

        recovered = recover(log, self.now_ms())
        for group_id, committed_in, committed in recovered.offsets:
            self.offsets.put(group_id, committed_in, committed)
        for producer_id, (group_id, committed_in, committed) in recovered.pending:
            self.offsets.put_pending((partition.index, producer_id), group_id, committed_in, committed)
        for group in recovered.groups.values():
            self._take_in(group)

    def _take_in(self, group: Group) -> None:
        self.groups[group.group_id] = group
        if self.state_journal is not None:
            self.state_journal.loaded(group)
        if isinstance(group, ClassicGroup):
            self.classic.loaded(group)
        else:
            self.consumer.loaded(group)

    def _resign(self, partition: Partition) -> None:
        index = partition.index
        gone = [group for group in self.groups.values() if self.log.partition_of(group.group_id).index == index]
        for group in gone:
            if isinstance(group, ClassicGroup):
                self.classic.unload(group)
            group.cancel_timers()
            del self.groups[group.group_id]
            if self.state_journal is not None:
                self.state_journal.unloaded(group)
        self.offsets.drop({group.group_id for group in gone}, partition.index)

    def _restore(self, group_id: str) -> None:
        """Makes a group anew of what is written."""
        from .replay import recover

        group = self.groups.pop(group_id, None)
        if group is not None:
            group.cancel_timers()
        written = recover(self.log.partition_of(group_id).log, self.now_ms()).groups.get(group_id)
        if written is not None:
            self._take_in(written)

    # -- what groups are made with -------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        """Wall clock."""
        return self.broker.clock.wall_ms()

    def create_classic(self, group_id: str) -> ClassicGroup:
        """A new, empty classic group."""
        group = ClassicGroup(group_id, self.now_ms())
        self.groups[group_id] = group
        return group

    def write(
        self,
        group_id: str,
        records: Sequence[KeyValue],
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> ErrorCode:
        """Writes down what changed in a group; an error is one to tell the client."""
        return self.log.append(group_id, records, self.now_ms(), producer_id, producer_epoch)

    def write_or_restore(self, group_id: str, records: Sequence[KeyValue]) -> ErrorCode:
        """Writes down what has been changed in a group already. If that fails, nothing has changed: the group is made
        anew of what is written, and its members' sessions begin again.
        """
        error = self.write(group_id, records) if records else ErrorCode.NONE
        if error:
            self._restore(group_id)
        elif records and group_id in self.groups:
            self.record_state(self.groups[group_id])
        return error

    def record_state(self, group: Group) -> None:
        """Has a group's state told to the journal, if it is another now."""
        if self.state_journal is not None:
            self.state_journal.record_change(group)

    def await_replication(self, group_id: str, done: Callable[[Collection[Partition]], None]) -> None:
        """Calls `done` when all replicas have what the group has written: with nothing, or with its partition where
        that is not so.
        """
        partition = self.log.partition_of(group_id)
        await_replication(self.broker, {partition: partition.log.log_end_offset}, self.write_timeout_ms, done)

    def lost_error(self, group_id: str) -> ErrorCode:
        """What a client is told of a write that may be lost: that the coordinator is another one, or late."""
        return self.error(group_id) or ErrorCode.COORDINATOR_NOT_AVAILABLE

    def await_rebalance(self, delay_ms: float, action: Callable[[], object]) -> GroupTimer:
        """Does what ends a round of a rebalance, when its time is over."""
        return GroupTimer(self.rebalances, self.broker.actions, delay_ms, action)

    def await_heartbeat(self, delay_ms: float, action: Callable[[], object]) -> GroupTimer:
        """Does what has to be done about a member that says nothing for so long."""
        return GroupTimer(self.heartbeats, self.broker.actions, delay_ms, action)

    # -- committing ----------------------------------------------------------------------------------------------------

    def commit_offsets(self, commit: Commit, now_ms: int, retention_time_ms: int) -> list[ErrorCode]:
        """Commits offsets, or says why not: one answer for each. Members that do give a sign of life by it."""
        error = self.error(commit.group_id) or self._commit_error(commit, _GROUP_ID_NOT_FOUND_SINCE)
        if error:
            return [error] * len(commit.offsets)
        group = self.groups.get(commit.group_id)
        if isinstance(group, ClassicGroup) and group.state in (STABLE, PREPARING_REBALANCE):
            self.classic.restart_session(group, group.members[commit.member_id])
        expires_ms = None if retention_time_ms == _NO_RETENTION_TIME else now_ms + retention_time_ms
        codes, taken = self._take(commit, now_ms, expires_ms)
        error = self._write_commits(commit, taken)
        if error:
            return [error] * len(codes)
        self._begin_simple_group(commit.group_id)
        for partition, committed in taken:
            self.offsets.put(commit.group_id, partition, committed)
        return codes

    def commit_in_transaction(self, commit: Commit, now_ms: int, producer: Producer) -> list[ErrorCode]:
        """Keeps offsets until the producer's transaction ends, or says why not: one answer for each."""
        error = self.error(commit.group_id) or self._commit_error(commit, _TXN_GROUP_ID_NOT_FOUND_SINCE)
        if error is ErrorCode.STALE_MEMBER_EPOCH and commit.version < _TXN_GROUP_ID_NOT_FOUND_SINCE:
            error = ErrorCode.ILLEGAL_GENERATION
        if error:
            return [error] * len(commit.offsets)
        codes, taken = self._take(commit, now_ms, None)
        error = self._write_commits(commit, taken, *producer)
        if error:
            return [error] * len(codes)
        self._begin_simple_group(commit.group_id)
        shard = self.log.partition_of(commit.group_id).index
        for partition, committed in taken:
            self.offsets.put_pending((shard, producer.producer_id), commit.group_id, partition, committed)
        return codes

    def complete_transaction(self, partition: Partition, producer_id: int, committed: bool) -> None:
        """A marker was written to this partition of __consumer_offsets: what is pending there stays, or vanishes."""
        self.offsets.end_transaction((partition.index, producer_id), committed)

    def _commit_error(self, commit: Commit, group_id_not_found_since: int) -> ErrorCode:
        group = self.groups.get(commit.group_id)
        if group is None:
            if commit.generation_id >= 0:
                tells = commit.version >= group_id_not_found_since
                return ErrorCode.GROUP_ID_NOT_FOUND if tells else ErrorCode.ILLEGAL_GENERATION
            return ErrorCode.NONE  # a simple group begins
        return group.commit_error(commit)

    def _begin_simple_group(self, group_id: str) -> None:
        if group_id not in self.groups:
            self.create_classic(group_id)

    def _take(
        self, commit: Commit, now_ms: int, expires_ms: int | None
    ) -> tuple[list[ErrorCode], list[tuple[TopicPartition, CommittedOffset]]]:
        """An answer for each offset, and those that can be committed."""
        codes: list[ErrorCode] = []
        taken: list[tuple[TopicPartition, CommittedOffset]] = []
        next_offset = self.log.partition_of(commit.group_id).log.log_end_offset
        for new in commit.offsets:
            if len(new.metadata) > self._max_metadata:
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            codes.append(ErrorCode.NONE)
            committed = _committed(new, now_ms, expires_ms, next_offset + len(taken))
            taken.append(((new.topic.name, new.partition), committed))
        return codes, taken

    def _write_commits(
        self,
        commit: Commit,
        taken: Iterable[tuple[TopicPartition, CommittedOffset]],
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> ErrorCode:
        records = [
            offset_commit(commit.group_id, topic, partition, committed) for (topic, partition), committed in taken
        ]
        if not records:
            return ErrorCode.NONE
        return self.write(commit.group_id, records, producer_id, producer_epoch)

    # -- deleting ------------------------------------------------------------------------------------------------------

    def delete_group(self, group_id: str) -> ErrorCode:
        """Deletes a group without members, and its offsets."""
        group = self.groups.get(group_id)
        if group is None:
            return self.shards.error(group_id) or ErrorCode.GROUP_ID_NOT_FOUND
        error = group.delete_error()
        if error:
            return error
        everything = dict.fromkeys([*self.offsets.of_group(group_id), *self.offsets.unstable(group_id)])
        return self._forget(group, everything, with_group=True)

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> ErrorCode | list[ErrorCode]:
        """Deletes offsets of topics that nobody in the group is subscribed to: one answer for each, or one for all."""
        group = self.groups.get(group_id)
        if group is None:
            return self.shards.error(group_id) or ErrorCode.GROUP_ID_NOT_FOUND
        error = group.offset_delete_error()
        if error:
            return error
        codes = [
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic) else ErrorCode.NONE
            for topic, _ in partitions
        ]
        known = {*self.offsets.of_group(group_id), *self.offsets.unstable(group_id)}
        gone = [one for one, code in zip(partitions, codes, strict=True) if not code and one in known]
        error = self._forget(group, gone)
        return error or codes

    def forget_topic(self, topic: Topic) -> None:
        """A topic was deleted: so are the offsets committed for it."""
        for group_id, partitions in self.offsets.of_topic(topic.name, topic.topic_id):
            self._forget(self.groups[group_id], partitions)

    def _expire_offsets(self) -> None:
        """Forgets offsets that retention does not keep, and empty groups that have none."""
        now_ms = self.now_ms()
        for group in list(self.groups.values()):
            committed = self.offsets.of_group(group.group_id)
            unstable = self.offsets.unstable(group.group_id)
            expired = [
                partition
                for partition, offset in committed.items()
                if partition not in unstable
                and not group.is_subscribed_to(partition[0])
                and self._is_expired(group, offset, now_ms)
            ]
            is_over = group.is_empty and not unstable and len(expired) == len(committed)
            self._forget(group, expired, with_group=is_over)
        self.broker.actions.complete()

    def _is_expired(self, group: Group, committed: CommittedOffset, now_ms: int) -> bool:
        since_ms = group.retention_start_ms(committed)
        if since_ms is None:
            return False
        if committed.expire_timestamp_ms is not None:
            return now_ms >= committed.expire_timestamp_ms
        return now_ms - since_ms >= self._retention_ms

    def _forget(self, group: Group, partitions: Iterable[TopicPartition], *, with_group: bool = False) -> ErrorCode:
        """Writes down that offsets of a group are forgotten, or it whole, and forgets them."""
        gone = list(partitions)
        records = offset_tombstones(group.group_id, gone)
        if with_group:
            records += group.tombstones()
        error = self.write(group.group_id, records) if records else ErrorCode.NONE
        if error:
            return error
        for partition in gone:
            self.offsets.remove(group.group_id, partition)
        if with_group:
            group.cancel_timers()
            del self.groups[group.group_id]
            if self.state_journal is not None:
                self.state_journal.deleted(group)
        return ErrorCode.NONE


def _committed(new: NewOffset, now_ms: int, expires_ms: int | None, record_offset: int) -> CommittedOffset:
    return CommittedOffset(
        offset=new.offset,
        leader_epoch=new.leader_epoch,
        metadata=new.metadata,
        commit_timestamp_ms=now_ms if new.commit_timestamp_ms == _NO_TIMESTAMP else new.commit_timestamp_ms,
        expire_timestamp_ms=expires_ms,
        topic_id=new.topic.topic_id,
        order=record_offset,
    )
