"""The share partitions and share sessions of one broker, which leads the partitions.

Follows Kafka's SharePartitionManager. The first fetch loads a share partition. It is dropped when the broker stops
leading the partition, when the coordinator fences it, and when the group's last member disconnects.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.coordinator.share.persisted import SharePartitionId
from sluice.broker.coordinator.share.persister import RETRIABLE, SharePersister
from sluice.broker.coordinator.share.state import ShareState
from sluice.broker.metadata.features import SHARE_VERSION
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.channel import Channel
from sluice.config.value_types import parse_duration_ms
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.invalid import InvalidRecords
from sluice.purgatory.purgatory import DelayedOperationPurgatory

from .dead_letters import DEAD_LETTER_TOPIC, keep_dead_letters
from .delivery import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledged,
    AcknowledgementBatch,
    AcknowledgeResult,
    ShareSettings,
)
from .in_flight import AcquisitionLock
from .sessions import MemberKey, ShareSession, ShareSessions
from .share_partition import SharePartition, Status

# Errors of the share coordinator -> errors for the client (SharePartition.fetchPersisterError); others are unknown.
_CLIENT_ERRORS = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
_FENCING = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
_NOT_INITIALIZED = -1
_EXHAUSTED = "Exhausted max retries to complete write state RPC without success."
_WITH_DEAD_LETTERS = 2  # level of share.version
ACKNOWLEDGE_TYPES = {GAP: "gap", ACCEPT: "accept", RELEASE: "release", REJECT: "reject", RENEW: "renew"}


class SharePartitionManager:
    def __init__(self, host: BrokerNode, persister: SharePersister) -> None:
        self._host = host
        self._persister = persister
        self._partitions: dict[SharePartitionId, SharePartition] = {}
        self.sessions = ShareSessions(
            host.config.integer("group.share.max.share.sessions"),
            host.config.integer("sluice.fetch.session.partitions.max"),
        )
        self.locks = DelayedOperationPurgatory("ShareAcquisitionLock", host.timer)
        self.acknowledged: Counter[str] = Counter()
        self._timed_out = 0  # records of partitions that were dropped

    def __iter__(self) -> Iterator[tuple[SharePartitionId, SharePartition]]:
        return iter(self._partitions.items())

    @property
    def timed_out_records(self) -> int:
        return self._timed_out + sum(partition.timed_out_records for partition in self._partitions.values())

    def settings(self, group_id: str) -> ShareSettings:
        values = self._host.cluster.group_configs.in_force(group_id)
        return ShareSettings(
            values.integer("share.delivery.count.limit"),
            values.integer("share.record.lock.duration.ms"),
            values.integer("share.partition.max.record.locks"),
            values.boolean("share.renew.acknowledge.enable"),
            bool(values.text(DEAD_LETTER_TOPIC)) and self._host.features.level(SHARE_VERSION) >= _WITH_DEAD_LETTERS,
        )

    def reads_committed(self, group_id: str) -> bool:
        return self._host.cluster.group_configs.in_force(group_id).text("share.isolation.level") == "read_committed"

    def get(self, key: SharePartitionId) -> SharePartition | None:
        return self._partitions.get(key)

    def partition_of(self, key: SharePartitionId) -> Partition | None:
        topic = self._host.metadata.topics_by_id.get(key.topic_id)
        return None if topic is None else topic.partition(key.partition)

    # -- loading -------------------------------------------------------------------------------------------------------

    def get_or_load(self, key: SharePartitionId, failed: Callable[[ErrorCode], None]) -> SharePartition | ErrorCode:
        """Return the share partition, which may be loading; `failed` is called if that fails."""
        found = self._partitions.get(key)
        if found is not None:
            return found
        partition = self.partition_of(key)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not self._host.replicas.leads(partition):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        share = SharePartition(
            partition.leader_epoch,
            partial(self.settings, key.group_id),
            self.locks,
            lambda write, done: self._persister.write_state(key, write, lambda code: done(_written(code))),
            partial(self.complete_fetches, key),
            partial(keep_dead_letters, self._host, key, partition),
            partial(self._record_timeout, key.group_id, partition),
        )
        self._partitions[key] = share
        share.status = Status.LOADING
        loaded = partial(self._loaded, key, share, partition, failed)
        self._persister.read_state(key, share.leader_epoch, loaded)
        return share

    def _loaded(
        self,
        key: SharePartitionId,
        share: SharePartition,
        partition: Partition,
        failed: Callable[[ErrorCode], None],
        code: ErrorCode,
        state: ShareState | None,
    ) -> None:
        if self._partitions.get(key) is not share:
            failed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        if state is None:
            start_offset: int | ErrorCode = _of_client(code)
        elif state.start_offset == _NOT_INITIALIZED:
            start_offset = self._reset_offset(key.group_id, partition)
        else:
            start_offset = state.start_offset
        if isinstance(start_offset, ErrorCode):
            failed(start_offset)
            self._drop(key)
            return
        assert state is not None
        if not share.load(start_offset, state.state_epoch, state.batches):
            failed(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._drop(key)
            return
        self.complete_fetches(key)

    def _reset_offset(self, group_id: str, partition: Partition) -> int | ErrorCode:
        strategy = self._host.cluster.group_configs.in_force(group_id).text("share.auto.offset.reset")
        log = partition.log
        if strategy == "earliest":
            return log.log_start_offset
        if strategy == "latest":
            return log.high_watermark
        duration_ms = parse_duration_ms(strategy.removeprefix("by_duration:"))
        try:
            found = log.offset_for_timestamp(self._host.clock.wall_ms() - duration_ms)
        except InvalidRecords as invalid:
            return ErrorCode(invalid.code)
        is_available = found is not None and found.offset < log.high_watermark
        return found.offset if found is not None and is_available else ErrorCode.OFFSET_NOT_AVAILABLE

    # -- dropping ------------------------------------------------------------------------------------------------------

    def drop_partition(self, partition: Partition) -> None:
        """Drop the share partitions of a partition that this broker no longer leads, or that is deleted."""
        topic_id, index = partition.topic.topic_id, partition.index
        for key in [key for key in self._partitions if key.partition == index and key.topic_id == topic_id]:
            self._drop(key)

    def _drop(self, key: SharePartitionId) -> None:
        share = self._partitions.pop(key, None)
        if share is not None:
            self._timed_out += share.timed_out_records
            share.fence()
            self.complete_fetches(key)

    def disconnected(self, channel: Channel) -> None:
        sessions = self.sessions.sessions_of(channel)
        for session in sessions:
            if self.sessions.get(session.key) is session:
                self.sessions.evictions += 1
                self.release(session)
        empty = {
            group_id for group_id in {one.key.group_id for one in sessions} if self.sessions.drop_if_empty(group_id)
        }
        for key in [key for key in self._partitions if key.group_id in empty] if empty else ():
            self._drop(key)

    # -- acknowledging -------------------------------------------------------------------------------------------------

    def acknowledge(
        self, member: MemberKey, partition: tuple[bytes, int], batches: list[AcknowledgementBatch], done: Acknowledged
    ) -> None:
        key = SharePartitionId(member.group_id, *partition)
        share = self._partitions.get(key)
        if share is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            done(AcknowledgeResult(code, code.message))
            return

        def finished(result: AcknowledgeResult) -> None:
            if result.code:
                self._drop_fenced(key, result)
            else:
                self._count(batches)
            done(result)

        share.acknowledge(member.member_id, batches, finished)

    def release(self, session: ShareSession) -> None:
        """End a session, and release the records of its member."""
        self.sessions.remove(session.key)
        for partition in session.partitions:
            key = SharePartitionId(session.key.group_id, *partition)
            share = self._partitions.get(key)
            if share is not None:
                share.release(session.key.member_id, partial(self._drop_fenced, key))

    def expire_locks(self, group_id: str | None) -> int:
        found = [share for key, share in self._partitions.items() if group_id in (None, key.group_id)]
        return sum(share.expire_locks() for share in found)

    def complete_fetches(self, key: SharePartitionId) -> None:
        self._host.replicas.fetches.check_and_complete(key)

    def _record_timeout(self, group_id: str, partition: Partition, lock: AcquisitionLock) -> None:
        if self._host.journal is not None:
            self._host.journal.add_cluster_event(
                "acquisition-timeout",
                self._host.node_id,
                group_id=group_id,
                member_id=lock.member_id,
                topic=partition.topic.name,
                partition=partition.index,
                first_offset=lock.first_offset,
                last_offset=lock.last_offset,
            )

    def _drop_fenced(self, key: SharePartitionId, result: AcknowledgeResult) -> None:
        if result.code in _FENCING:
            self._drop(key)

    def _count(self, batches: Iterable[AcknowledgementBatch]) -> None:
        for first, last, types in batches:
            for kind in types:
                self.acknowledged[ACKNOWLEDGE_TYPES[kind]] += last - first + 1 if len(types) == 1 else 1


def _of_client(code: ErrorCode) -> ErrorCode:
    return _CLIENT_ERRORS.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


def _written(code: ErrorCode) -> AcknowledgeResult:
    """Return the result of a write, with the message of Kafka's PersisterStateManager."""
    if not code:
        return AcknowledgeResult()
    problem = _EXHAUSTED if code in RETRIABLE else code.message
    return AcknowledgeResult(_of_client(code), f"Error in write state RPC. {problem}")
