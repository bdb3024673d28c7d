"""The cluster as a broker believes it to be that the others do not reach any more.

It goes on as it was: it leads what it led, and tells clients of leaders as it knew them. What a real one does follows
from that: acks=all runs out of time, since its followers do not fetch; acks=1 is taken, is not seen by consumers, whose
high watermark stays, and is lost when the broker is back and another has led meanwhile. What goes to the controller
(new topics, configs, quotas) waits for it (forwarding.py).

A partition that it leads is the cluster's own until another broker leads it there. From then on it has one for itself,
whose log is a `IsolatedLog`: up to the high watermark the records that everybody has, and behind them what only this
broker has, in a piece of memory that goes when it is back.
"""

from collections.abc import Mapping

from sluice.broker.log.log_results import LogRead, TimestampOffset
from sluice.broker.log.memory_storage import MemoryStorage
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.cache import MetadataCache, Node
from sluice.broker.metadata.topic import NO_LEADER, Partition, Topic
from sluice.protocol.errors import ErrorCode

# What a stranded leader may take: it is lost anyway, and a producer that writes more has not noticed for long.
_STRANDED_BYTES = 64 * 1024 * 1024


class IsolatedLog(PartitionLog):
    """A log that goes on from where another branched off: what is appended is here, what was committed is there."""

    __slots__ = ("_committed",)

    def __init__(self, log: PartitionLog) -> None:
        super().__init__(log.name, log.config, MemoryStorage(_STRANDED_BYTES))
        self._committed = log
        self.log_end_offset = log.log_end_offset
        self.log_start_offset = log.log_start_offset
        self.high_watermark = log.high_watermark
        self.last_stable_offset = log.last_stable_offset
        self.has_followers = True
        for epoch, start_offset in log._epochs:
            self._epochs.assign(epoch, start_offset)

    def read(self, offset: int, max_bytes: int, up_to_offset: int, min_one_batch: bool) -> LogRead:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return LogRead([], 0, offset, ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset >= self.high_watermark:
            return LogRead([], 0, offset)
        return self._committed.read(offset, max_bytes, min(up_to_offset, self.high_watermark), min_one_batch)

    def size_available(self, offset: int, max_bytes: int, up_to_offset: int, min_one_batch: bool) -> int:
        end = min(up_to_offset, self.high_watermark)
        return self._committed.size_available(offset, max_bytes, end, min_one_batch)

    def bytes_between(self, offset: int, up_to_offset: int, at_most: int) -> int:
        if offset >= self.high_watermark:
            return 0
        return self._committed.bytes_between(offset, min(up_to_offset, self.high_watermark), at_most)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        return self._committed.offset_for_timestamp(timestamp)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        return self._committed.max_timestamp_offset()


class IsolatedMetadata(MetadataCache):
    """The metadata of one broker, from the moment on when the controller no longer reached it."""

    def __init__(self, topics: dict[str, Topic], fenced: set[int], brokers: Mapping[int, Node], node_id: int) -> None:
        super().__init__({}, {}, set(fenced), brokers)
        self._cluster_topics = topics
        self._node_id = node_id
        for topic in topics.values():
            self.adopt(topic)

    def adopt(self, topic: Topic) -> Topic:
        """Add a copy of a topic that the cluster has, and return it."""
        copy = topic.copy()
        copy.partitions = [
            partition if partition.leader == self._node_id else partition.copy() for partition in topic.partitions
        ]
        self.topics[topic.name] = self.topics_by_id[topic.topic_id] = copy
        return copy

    def keep(self, partition: Partition, *, shares_log: bool) -> None:
        """The cluster is about to have another leader, or none, for a partition: here it stays as it is.

        With no leader there, this broker's log is still the only one, which it will lead again.
        """
        topic = self.topics.get(partition.topic.name)
        mine = topic.partition(partition.index) if topic is not None else None
        if mine is None or mine.leader != self._node_id:
            return
        if mine is partition:
            assert topic is not None
            mine = topic.partitions[partition.index] = partition.copy()
        if not shares_log and not isinstance(mine.log, IsolatedLog):
            mine.log = IsolatedLog(mine.log)

    def resign_stale_leaders(self) -> list[tuple[Partition, Partition]]:
        """This broker knows better now: returns the partitions that it only believed to lead, with those they are."""
        believed = [
            (mine, partition)
            for topic in self.topics.values()
            for mine in topic.partitions
            if mine.leader == self._node_id and (partition := self._current(mine)) is not None and partition is not mine
        ]
        for mine, _ in believed:
            mine.leader = NO_LEADER
        return believed

    def _current(self, partition: Partition) -> Partition | None:
        topic = self._cluster_topics.get(partition.topic.name)
        return None if topic is None else topic.partition(partition.index)
