"""The committed and pending offsets of groups. Follows the state of Kafka's OffsetMetadataManager.

An offset that is part of an open transaction is *pending*: OffsetFetch does not return it. On commit it replaces the
committed offset, unless that is newer; on abort it is dropped.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sluice.protocol.types import ZERO_UUID

TopicPartition = tuple[str, int]
Producer = tuple[int, int]  # partition of __consumer_offsets, producer id


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None  # from OffsetCommit v2-4; None: the broker's retention applies
    topic_id: bytes  # at the time of the commit; ZERO_UUID from brokers before 4.1
    order: int  # the offset of its record, which orders the group's commits


class OffsetStore:
    def __init__(self) -> None:
        # Empty mappings and sets are removed from all three.
        self._committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._pending: dict[Producer, dict[tuple[str, TopicPartition], CommittedOffset]] = {}
        self._open: dict[str, dict[TopicPartition, set[Producer]]] = {}  # producers with a pending offset

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        return self._committed.get(group_id, {})

    def unstable(self, group_id: str) -> Collection[TopicPartition]:
        return self._open.get(group_id, {}).keys()

    def put(self, group_id: str, partition: TopicPartition, committed: CommittedOffset) -> None:
        self._committed.setdefault(group_id, {})[partition] = committed

    def put_pending(
        self, producer: Producer, group_id: str, partition: TopicPartition, committed: CommittedOffset
    ) -> None:
        self._pending.setdefault(producer, {})[group_id, partition] = committed
        self._open.setdefault(group_id, {}).setdefault(partition, set()).add(producer)

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        committed = self._committed.get(group_id)
        if committed is not None:
            committed.pop(partition, None)
            if not committed:
                del self._committed[group_id]
        for producer in list(self._open.get(group_id, {}).get(partition, ())):
            self._pop_pending(producer, group_id, partition)

    def end_transaction(self, producer: Producer, committed: bool) -> None:
        for group_id, partition in list(self._pending.get(producer, ())):
            pending = self._pop_pending(producer, group_id, partition)
            present = self.of_group(group_id).get(partition)
            if committed and (present is None or pending.order > present.order):
                self.put(group_id, partition, pending)

    def drop(self, group_ids: Collection[str], shard: int) -> None:
        for group_id in group_ids:
            self._committed.pop(group_id, None)
            self._open.pop(group_id, None)
        for producer in [producer for producer in self._pending if producer[0] == shard]:
            del self._pending[producer]

    def of_topic(self, topic: str, topic_id: bytes) -> Mapping[str, Iterable[TopicPartition]]:
        """Return the partitions with offsets by group id, including pending ones."""
        found: dict[str, dict[TopicPartition, None]] = {}
        for group_id, offsets in self._committed.items():
            for partition, committed in offsets.items():
                if partition[0] == topic and committed.topic_id in (topic_id, ZERO_UUID):
                    found.setdefault(group_id, {})[partition] = None
        for waiting in self._pending.values():
            for (group_id, partition), committed in waiting.items():
                if partition[0] == topic and committed.topic_id in (topic_id, ZERO_UUID):
                    found.setdefault(group_id, {})[partition] = None
        return found

    def _pop_pending(self, producer: Producer, group_id: str, partition: TopicPartition) -> CommittedOffset:
        offsets = self._pending[producer]
        pending = offsets.pop((group_id, partition))
        if not offsets:
            del self._pending[producer]
        of_group = self._open[group_id]
        of_group[partition].remove(producer)
        if not of_group[partition]:
            del of_group[partition]
            if not of_group:
                del self._open[group_id]
        return pending
