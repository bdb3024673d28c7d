"""The metadata and logs of an isolated broker, which the controller and the other brokers do not reach.

The broker keeps its leaderships and its metadata. As with a real broker:

- produce requests with acks=all time out, because followers do not fetch
- records with acks=1 are appended, but the high watermark does not move, so consumers do not read them; they are lost
  if another broker leads the partition when the isolation ends
- requests for the controller wait (forwarding.py)

A partition that the broker leads is the cluster's own object until the cluster elects another leader. Then the broker
gets a copy with an `IsolatedLog`: the committed records, then its own, in memory, and the producers as they were then.
"""

from collections.abc import Mapping
from copy import copy

from sluice.broker.log.log_results import LogRead, TimestampOffset
from sluice.broker.log.memory_storage import MemoryStorage
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.producer_state import AbortedTransaction
from sluice.broker.metadata.cache import MetadataCache, Node
from sluice.broker.metadata.topic import NO_LEADER, Partition, Topic
from sluice.protocol.errors import ErrorCode

# Maximum size of the records that an isolated leader appends to a partition.
_MAX_UNCOMMITTED_BYTES = 64 * 1024 * 1024


class IsolatedLog(PartitionLog):
    def __init__(self, log: PartitionLog) -> None:
        super().__init__(log.name, log.config, MemoryStorage(_MAX_UNCOMMITTED_BYTES))
        self._committed = log
        self.log_end_offset = log.log_end_offset
        self.log_start_offset = log.log_start_offset
        self.high_watermark = log.high_watermark
        self.last_stable_offset = log.last_stable_offset
        self.has_followers = True
        for epoch, start_offset in log._epochs:
            self._epochs.assign(epoch, start_offset)
        self._producers.restore(((producer_id, entry.copy()) for producer_id, entry in log.producers), ())

    def read(self, offset: int, max_bytes: int, up_to_offset: int, min_one_batch: bool) -> LogRead:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return LogRead([], 0, offset, ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset >= self.high_watermark:
            return LogRead([], 0, offset)
        return self._committed.read(offset, max_bytes, min(up_to_offset, self.high_watermark), min_one_batch)

    def aborted_transactions(self, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        return self._committed.aborted_transactions(offset, upper_offset)

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
    def __init__(self, topics: dict[str, Topic], fenced: set[int], brokers: Mapping[int, Node], node_id: int) -> None:
        super().__init__({}, {}, set(fenced), brokers)
        self._cluster_topics = topics
        self._node_id = node_id
        for topic in topics.values():
            self.add_topic(topic)

    def add_topic(self, topic: Topic) -> Topic:
        local = copy(topic)
        local.partitions = [
            partition if partition.leader == self._node_id else copy(partition) for partition in topic.partitions
        ]
        self.topics[topic.name] = self.topics_by_id[topic.topic_id] = local
        return local

    def retain_partition(self, partition: Partition, *, shares_log: bool) -> None:
        """Keep this broker's version of a partition before the cluster changes its leader.

        With `shares_log`, this broker's log stays the only one.
        """
        topic = self.topics.get(partition.topic.name)
        local = topic.partition(partition.index) if topic is not None else None
        if local is None or local.leader != self._node_id:
            return
        if local is partition:
            assert topic is not None
            local = topic.partitions[partition.index] = copy(partition)
        if not shares_log and not isinstance(local.log, IsolatedLog):
            local.log = IsolatedLog(local.log)

    def resign_stale_leaders(self) -> list[tuple[Partition, Partition]]:
        """Give up partitions that other brokers lead now; return each with the cluster's object."""
        stale = [
            (local, partition)
            for topic in self.topics.values()
            for local in topic.partitions
            if local.leader == self._node_id
            and (partition := self._current(local)) is not None
            and partition is not local
        ]
        for local, _ in stale:
            local.leader = NO_LEADER
        return stale

    def _current(self, partition: Partition) -> Partition | None:
        topic = self._cluster_topics.get(partition.topic.name)
        return None if topic is None else topic.partition(partition.index)
