"""The group coordinator: requests of members, commits, and the deletion of groups and offsets.

Follows Kafka's GroupCoordinatorService and OffsetMetadataManager; runtime.py loads and writes groups.

Offsets belong to a group id and survive a change of the group's type. The first commit creates a *simple* group,
without members. An empty group is deleted when its last offset expires.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.coordinator.common.coordinator_log import batch_of
from sluice.broker.coordinator.group.classic.group import PREPARING_REBALANCE, STABLE, ClassicGroup
from sluice.broker.coordinator.group.classic.protocol import ClassicProtocol
from sluice.broker.coordinator.share.persister import SharePersister
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.topic import Partition, Topic
from sluice.broker.requests.context import RequestContext
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from sluice.protocol.records.record import int64

from .group import CONSUMER, SHARE, STREAMS, Commit, Group, NewOffset
from .offsets import CommittedOffset, TopicPartition
from .records import offset_commit, offset_tombstones
from .runtime import GroupRuntime, Recovered

if TYPE_CHECKING:
    from sluice.broker.coordinator.group.consumer.classic_members import ClassicMembers
    from sluice.broker.coordinator.group.consumer.heartbeat import ConsumerProtocol
    from sluice.broker.coordinator.group.share.heartbeat import ShareProtocol
    from sluice.broker.coordinator.group.share.offsets import ShareOffsets
    from sluice.broker.coordinator.group.streams.heartbeat import StreamsProtocol

_NO_RETENTION_TIME = -1  # in OffsetCommit: use the broker's retention
_NO_TIMESTAMP = -1
_MINUTE_MS = 60_000
# First versions with GROUP_ID_NOT_FOUND for a missing group; before, the error is ILLEGAL_GENERATION.
_GROUP_ID_NOT_FOUND_SINCE = 9  # OffsetCommit
_TXN_GROUP_ID_NOT_FOUND_SINCE = 6  # TxnOffsetCommit; also the first version with STALE_MEMBER_EPOCH (KIP-1319)

# The minimum size of a record with a committed offset, without the names of group and topic.
_LEAST_OFFSET_BYTES = 46


class Producer(NamedTuple):
    producer_id: int
    producer_epoch: int


_NO_PRODUCER = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class GroupCoordinator(GroupRuntime):
    def __init__(self, host: BrokerNode, share_persister: SharePersister) -> None:
        super().__init__(host, share_persister)
        config = host.config
        self.classic = ClassicProtocol(self)
        self._max_metadata = config.integer("offset.metadata.max.bytes")
        self._retention_ms = config.integer("offsets.retention.minutes") * _MINUTE_MS
        host.scheduler.schedule(config.integer("offsets.retention.check.interval.ms"), self._delete_expired)
        self.shards.load_led()

    @cached_property
    def consumer(self) -> "ConsumerProtocol":
        from sluice.broker.coordinator.group.consumer.heartbeat import ConsumerProtocol  # deferred for start-up time

        return ConsumerProtocol(self, self.classic)

    @cached_property
    def streams(self) -> "StreamsProtocol":
        from sluice.broker.coordinator.group.streams.heartbeat import StreamsProtocol  # deferred for start-up time

        return StreamsProtocol(self)

    @cached_property
    def share(self) -> "ShareProtocol":
        from sluice.broker.coordinator.group.share.heartbeat import ShareProtocol  # deferred for start-up time

        return ShareProtocol(self)

    @cached_property
    def share_offsets(self) -> "ShareOffsets":
        from sluice.broker.coordinator.group.share.offsets import ShareOffsets  # deferred for start-up time

        return ShareOffsets(self, self.share)

    def read(self, log: PartitionLog) -> Recovered:
        from .replay import recover  # deferred: a new broker has nothing to load

        return recover(log, self.now_ms())

    def group_loaded(self, group: Group) -> None:
        if isinstance(group, ClassicGroup):
            self.classic.loaded(group)
        elif group.type == STREAMS:
            self.streams.loaded(group)
        elif group.type == SHARE:
            self.share.loaded(group)
        else:
            self.consumer.loaded(group)

    def group_unloaded(self, group: Group) -> None:
        if isinstance(group, ClassicGroup):
            self.classic.stop(group, ErrorCode.NOT_COORDINATOR)

    def classic_protocol(self, group_id: str) -> "ClassicProtocol | ClassicMembers":
        """Return what handles the requests of members with the classic protocol."""
        group = self.groups.get(group_id)
        is_consumer_group = group is not None and group.type == CONSUMER and not group.is_empty
        return self.consumer.classic_members if is_consumer_group else self.classic

    # -- committing ----------------------------------------------------------------------------------------------------

    def commit_offsets(
        self,
        ctx: RequestContext,
        commit: Commit,
        retention_time_ms: int = _NO_RETENTION_TIME,
        producer: Producer | None = None,
    ) -> Iterable[ErrorCode]:
        """Commit offsets: with a producer, as a part of its transaction, else restarting a classic member's session."""
        error = self._commit_error(commit)
        if error:
            return repeat(error, len(commit.offsets))
        group = self.groups.get(commit.group_id)
        if producer is None and isinstance(group, ClassicGroup) and group.state in (STABLE, PREPARING_REBALANCE):
            self.classic.restart_session(group, group.members[commit.member_id])
        expires_ms = None if retention_time_ms == _NO_RETENTION_TIME else int64(ctx.now_ms + retention_time_ms)
        codes, accepted = self._check_offsets(ctx, commit, expires_ms)
        error = self._write_commits(ctx, commit, accepted, producer or _NO_PRODUCER)
        if error:
            return repeat(error, len(codes))
        shard = self.log.partition_of(commit.group_id).index
        for partition, committed in accepted.copy():  # which does not pause
            if producer is None:
                self.offsets.put(commit.group_id, partition, committed)
            else:
                self.offsets.put_pending((shard, producer.producer_id), commit.group_id, partition, committed)
        return codes

    def complete_transaction(self, partition: Partition, producer_id: int, committed: bool) -> None:
        self.offsets.end_transaction((partition.index, producer_id), committed)

    def _commit_error(self, commit: Commit) -> ErrorCode:
        error = self.error(commit.group_id)
        if error:
            return error
        group = self.groups.get(commit.group_id)
        if group is not None:
            error = group.commit_error(commit)
            is_old = commit.transactional and commit.version < _TXN_GROUP_ID_NOT_FOUND_SINCE
            return ErrorCode.ILLEGAL_GENERATION if is_old and error is ErrorCode.STALE_MEMBER_EPOCH else error
        if commit.generation_id >= 0:
            since = _TXN_GROUP_ID_NOT_FOUND_SINCE if commit.transactional else _GROUP_ID_NOT_FOUND_SINCE
            has_not_found = commit.version >= since
            return ErrorCode.GROUP_ID_NOT_FOUND if has_not_found else ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.NONE  # creates a simple group

    def create_classic(self, group_id: str) -> ClassicGroup:
        group = self.groups[group_id] = ClassicGroup(group_id, self.now_ms())
        return group

    def _check_offsets(
        self, ctx: RequestContext, commit: Commit, expires_ms: int | None
    ) -> tuple[list[ErrorCode], list[tuple[TopicPartition, CommittedOffset]]]:
        codes: list[ErrorCode] = ctx.array()
        accepted: list[tuple[TopicPartition, CommittedOffset]] = ctx.array()
        next_offset = self.log.partition_of(commit.group_id).log.log_end_offset
        for new in commit.offsets:
            if _java_length(new.metadata) > self._max_metadata:
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            codes.append(ErrorCode.NONE)
            committed = _committed(new, ctx.now_ms, expires_ms, next_offset + len(accepted))
            accepted.append(((new.topic.name, new.partition), committed))
        return codes, accepted

    def _write_commits(
        self,
        ctx: RequestContext,
        commit: Commit,
        accepted: list[tuple[TopicPartition, CommittedOffset]],
        producer: Producer,
    ) -> ErrorCode:
        if not accepted:
            return ErrorCode.NONE
        group_id, log = commit.group_id, self.log.partition_of(commit.group_id).log
        if _least_bytes(group_id, accepted) > log.config.append.max_message_bytes:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        records = (offset_commit(group_id, topic, partition, committed) for (topic, partition), committed in accepted)
        data = batch_of(records, self.now_ms(), *producer)
        error = self._commit_error(commit)  # again, as other requests were served meanwhile
        if error:
            return error
        moved = log.log_end_offset - accepted[0][1].order
        if moved:
            accepted[:] = [(one, committed._replace(order=committed.order + moved)) for one, committed in accepted]
        error = self.log.append_batch(group_id, data, self.now_ms())
        if not error and group_id not in self.groups:
            self.create_classic(group_id)
        return error

    # -- deleting ------------------------------------------------------------------------------------------------------

    def delete_group(self, group_id: str) -> ErrorCode:
        group = self.groups.get(group_id)
        if group is None:
            return self.shards.error(group_id) or ErrorCode.GROUP_ID_NOT_FOUND
        error = group.delete_error()
        if error:
            return error
        everything = dict.fromkeys([*self.offsets.of_group(group_id), *self.offsets.unstable(group_id)])
        return self._delete(group, everything, with_group=True)

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> ErrorCode | list[ErrorCode]:
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
        deleted = [one for one, code in zip(partitions, codes, strict=True) if not code and one in known]
        error = self._delete(group, deleted)
        return error or codes

    def delete_share_state(self, group_ids: Iterable[str], done: Callable[[Mapping[str, ErrorCode]], None]) -> None:
        """Delete the state of share groups that are to be deleted; `done` gets the errors by group id."""
        share_groups = [one for one in group_ids if one in self.groups and self.groups[one].type == SHARE]
        if share_groups:
            self.share_offsets.delete_all(share_groups, done)
        else:
            done({})

    def topic_deleted(self, topic: Topic) -> None:
        for group_id, partitions in self.offsets.of_topic(topic.name, topic.topic_id).items():
            self._delete(self.groups[group_id], partitions)
        if any(group.type == SHARE for group in self.groups.values()):
            self.share.initialization.topic_deleted(topic)

    def _delete_expired(self) -> None:
        now_ms = self.now_ms()
        for group in list(self.groups.values()):
            if group.type == SHARE:
                continue  # without offsets, it does not expire
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
            self._delete(group, expired, with_group=is_over)
        self.host.actions.complete()

    def _is_expired(self, group: Group, committed: CommittedOffset, now_ms: int) -> bool:
        since_ms = group.retention_start_ms(committed)
        if since_ms is None:
            return False
        if committed.expire_timestamp_ms is not None:
            return now_ms >= committed.expire_timestamp_ms
        return now_ms - since_ms >= self._retention_ms

    def _delete(self, group: Group, partitions: Iterable[TopicPartition], *, with_group: bool = False) -> ErrorCode:
        deleted = list(partitions)
        records = offset_tombstones(group.group_id, deleted)
        if with_group:
            records += group.tombstones()
        error = self.write(group.group_id, records) if records else ErrorCode.NONE
        if error:
            return error
        for partition in deleted:
            self.offsets.remove(group.group_id, partition)
        if with_group:
            self.remove(group)
        return ErrorCode.NONE


def _least_bytes(group_id: str, accepted: list[tuple[TopicPartition, CommittedOffset]]) -> int:
    names = sum(len(topic) for (topic, _), _ in accepted)
    return names + len(accepted) * (_LEAST_OFFSET_BYTES + len(group_id))


def _java_length(text: str) -> int:
    """Return the length of a Java string: characters outside the Basic Multilingual Plane count twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


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
