"""The offsets that groups committed, and those whose transaction is still open. Follows the state of Kafka's
OffsetMetadataManager; what may be committed, and what is written down about it, is the coordinator's.

An offset that is part of a transaction is *pending*: fetched offsets do not show it. When the transaction commits, it
replaces what is committed, unless something was committed later; when it aborts, it vanishes.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from sluice.protocol.types import ZERO_UUID

TopicPartition = tuple[str, int]
Producer = tuple[int, int]  # the partition of __consumer_offsets that it writes to, producer id


class CommittedOffset(NamedTuple):
    """One committed offset."""

    offset: int
    leader_epoch: int  # of the last record consumed; -1: not known
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None  # OffsetCommit v2-4 may say; else retention says
    topic_id: bytes  # of the topic that had the name when it was committed; ZERO_UUID: a broker before 4.1 wrote it
    order: int  # the offset of its record: greater than that of whatever the group committed before it


class OffsetStore:
    """The offsets of all groups."""

    __slots__ = ("_committed", "_open", "_pending")

    def __init__(self) -> None:
        # None of these holds an empty mapping or set.
        self._committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}  # by group id
        self._pending: dict[Producer, dict[tuple[str, TopicPartition], CommittedOffset]] = {}
        self._open: dict[str, dict[TopicPartition, set[Producer]]] = {}  # whose transactions have one pending

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """What the group committed."""
        return self._committed.get(group_id, {})

    def unstable(self, group_id: str) -> Collection[TopicPartition]:
        """The partitions for which the group has pending offsets."""
        return self._open.get(group_id, {}).keys()

    def put(self, group_id: str, partition: TopicPartition, committed: CommittedOffset) -> None:
        """Commits an offset."""
        self._committed.setdefault(group_id, {})[partition] = committed

    def put_pending(
        self, producer: Producer, group_id: str, partition: TopicPartition, committed: CommittedOffset
    ) -> None:
        """Keeps an offset until its producer's transaction ends."""
        self._pending.setdefault(producer, {})[group_id, partition] = committed
        self._open.setdefault(group_id, {}).setdefault(partition, set()).add(producer)

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """Forgets an offset, pending ones too."""
        committed = self._committed.get(group_id)
        if committed is not None:
            committed.pop(partition, None)
            if not committed:
                del self._committed[group_id]
        for producer in list(self._open.get(group_id, {}).get(partition, ())):
            self._pop_pending(producer, group_id, partition)

    def end_transaction(self, producer: Producer, committed: bool) -> None:
        """The producer's pending offsets become committed, or vanish."""
        for group_id, partition in list(self._pending.get(producer, ())):
            pending = self._pop_pending(producer, group_id, partition)
            present = self.of_group(group_id).get(partition)
            if committed and (present is None or pending.order > present.order):
                self.put(group_id, partition, pending)

    def drop(self, group_ids: Collection[str], shard: int) -> None:
        """Lets go of all that is of these groups, which are those of one partition of __consumer_offsets."""
        for group_id in group_ids:
            self._committed.pop(group_id, None)
            self._open.pop(group_id, None)
        for producer in [producer for producer in self._pending if producer[0] == shard]:
            del self._pending[producer]

    def of_topic(self, topic: str, topic_id: bytes) -> Iterator[tuple[str, list[TopicPartition]]]:
        """Group ids, and the partitions of a topic for which they have offsets, pending ones too."""
        found: dict[str, dict[TopicPartition, None]] = {}
        for group_id, offsets in self._committed.items():
            for partition, committed in offsets.items():
                if partition[0] == topic and committed.topic_id in (topic_id, ZERO_UUID):
                    found.setdefault(group_id, {})[partition] = None
        for waiting in self._pending.values():
            for (group_id, partition), committed in waiting.items():
                if partition[0] == topic and committed.topic_id in (topic_id, ZERO_UUID):
                    found.setdefault(group_id, {})[partition] = None
        for group_id, partitions in found.items():
            yield group_id, list(partitions)

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
