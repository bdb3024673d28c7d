"""The queues of batches to send, by topic and partition (Kafka's RecordAccumulator). Sans-I/O.

`drain` removes the first batch of each partition that a node leads, up to `max.request.size`.

A batch is *sendable* if it is full, is not the last of its queue, or has lingered for `linger.ms`, or if memory is
exhausted, the producer flushes or closes, or a transaction ends. A failed batch is sendable after its retry backoff
(KIP-580), which is drawn at each check, and skipped after a leader change (KIP-951).

A partition is *muted* while it has a batch in flight, if `max.in.flight.requests.per.connection` is 1; this preserves
the order. Retries of an idempotent producer are inserted by sequence instead.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from random import Random  # noqa: TID251  (the type of an argument; nothing is drawn from the module)
from typing import NamedTuple

from sluice.client.backoff import Backoff
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import NO_LEADER, Cluster, Node, Partitions, TopicPartition

from .batch import Codec, Header, ProducerBatch, size_upper_bound
from .buffer_pool import BufferPool
from .partitioner import StickyPartitioner
from .transaction_manager import TransactionManager

Queue = deque[ProducerBatch]

# The decrease of the estimated compression ratio after a smaller batch, and its least increase after a larger one
# (CompressionRatioEstimator).
_RATIO_IMPROVES, _RATIO_DETERIORATES = 0.005, 0.05


class AccumulatorSettings(NamedTuple):
    batch_size: int
    linger_ms: int
    delivery_timeout_ms: int
    codec: Codec
    partitions_by_load: bool = True
    availability_timeout_ms: int = 0


class Ready(NamedTuple):
    """The nodes with sendable batches, when to check again, and topics with leaderless partitions."""

    nodes: list[Node]
    next_check_ms: float
    unknown_leader_topics: set[str]


class _Topic:
    def __init__(self, partitioner: StickyPartitioner) -> None:
        self.partitioner = partitioner
        self.queues: dict[int, Queue] = {}
        self.compression_ratio = 1.0


class RecordAccumulator:
    def __init__(
        self,
        settings: AccumulatorSettings,
        pool: BufferPool,
        retry_backoff: Backoff,
        random: Random,
        transactions: TransactionManager | None,
    ) -> None:
        self.settings = settings
        self.pool = pool
        self.incomplete: dict[ProducerBatch, None] = {}
        self.is_closing = False
        self.flushes = 0
        self.next_backoff_ms = inf  # the end of the first backoff that prevented a drain
        self._retry_backoff = retry_backoff
        self._random = random
        self._transactions = transactions
        self._topics: dict[str, _Topic] = {}
        self._muted: set[TopicPartition] = set()
        self._next_drained: dict[int, TopicPartition] = {}  # by node: where the next drain starts
        self._not_ready_since_ms: dict[int, float] = {}

    # -- appending -----------------------------------------------------------------------------------------------------

    def sticky_partition(self, topic: str, partitions: Partitions) -> int:
        return self._topic(topic).partitioner.current(partitions)

    def appended(self, partition: TopicPartition, size: int, partitions: Partitions) -> None:
        topic = self._topics[partition.topic]
        queue = topic.queues[partition.partition]
        topic.partitioner.produced(size, partitions, may_switch=not queue or queue[-1].is_full)

    def last_batch(self, topic: str, partition: int) -> ProducerBatch | None:
        found = self._topics.get(topic)
        if found is None:
            return None
        queue = found.queues.get(partition)
        return queue[-1] if queue else None

    def new_batch_bytes(self, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
        return max(self.settings.batch_size, size_upper_bound(key, value, headers))

    def add_batch(self, partition: TopicPartition, size: int, now_ms: float) -> ProducerBatch:
        queue = self._queue(partition)
        if queue:
            self._close(queue[-1])
        ratio = self._topics[partition.topic].compression_ratio
        batch = ProducerBatch(partition, self.settings.codec, size, now_ms, memory=size, ratio=ratio)
        queue.append(batch)
        self.incomplete[batch] = None
        return batch

    def _close(self, batch: ProducerBatch) -> None:
        batch.close()
        if self.settings.codec.number:
            topic, seen = self._topic(batch.partition.topic), batch.compression_ratio
            if seen > topic.compression_ratio:
                topic.compression_ratio = max(topic.compression_ratio + _RATIO_DETERIORATES, seen)
            else:
                topic.compression_ratio = max(topic.compression_ratio - _RATIO_IMPROVES, seen)

    # -- sending -------------------------------------------------------------------------------------------------------

    def ready(self, cluster: Cluster, now_ms: float) -> Ready:
        nodes: dict[int, Node] = {}
        next_check_ms = inf
        unknown: set[str] = set()
        sends_immediately = self._sends_immediately
        for name, topic in self._topics.items():
            partitions = cluster.topics.get(name, {})
            queued: dict[int, int] | None = None
            if self.settings.partitions_by_load and len(topic.queues) >= len(partitions):
                queued = {}
            for number, queue in topic.queues.items():
                known = partitions.get(number)
                node = None if known is None else cluster.nodes.get(known.leader_id)
                if queued is not None and node is not None and self._is_available(node, now_ms):
                    queued[number] = len(queue)
                if not queue:
                    continue
                first = queue[0]
                if known is None or node is None:
                    unknown.add(name)
                    continue
                first.update_leader_epoch(known.leader_epoch)
                if node.id in nodes or first.partition in self._muted:
                    continue
                left_ms = self._time_left_ms(first, now_ms)
                if left_ms is None:
                    is_full = len(queue) > 1 or first.is_full
                    left_ms = 0 if sends_immediately or is_full else self._linger_left_ms(first, now_ms)
                if left_ms <= 0:
                    nodes[node.id] = node
                else:
                    next_check_ms = min(next_check_ms, now_ms + left_ms)
            topic.partitioner.weigh(queued, len(partitions))
        return Ready(list(nodes.values()), next_check_ms, unknown)

    @property
    def _sends_immediately(self) -> bool:
        return (
            self.pool.is_exhausted
            or self.is_closing
            or self.flushes > 0
            or (self._transactions is not None and self._transactions.is_completing)
        )

    def _time_left_ms(self, batch: ProducerBatch, now_ms: float) -> float | None:
        if batch.attempts == 0 or batch.leader_changed_for_this_retry:
            return None
        left_ms = self._retry_backoff.backoff(batch.attempts - 1) - batch.waited_ms(now_ms)
        return left_ms if left_ms > 0 else None

    def _linger_left_ms(self, batch: ProducerBatch, now_ms: float) -> float:
        return self.settings.linger_ms - batch.waited_ms(now_ms)

    def node_was_ready(self, node_id: int, now_ms: float, *, is_ready: bool) -> None:
        if is_ready:
            self._not_ready_since_ms.pop(node_id, None)
        elif self.settings.availability_timeout_ms > 0:
            self._not_ready_since_ms.setdefault(node_id, now_ms)

    def _is_available(self, node: Node, now_ms: float) -> bool:
        since_ms = self._not_ready_since_ms.get(node.id)
        return since_ms is None or now_ms - since_ms <= self.settings.availability_timeout_ms

    def drain(
        self, cluster: Cluster, nodes: Iterable[Node], max_size: int, now_ms: float
    ) -> dict[int, list[ProducerBatch]]:
        self.next_backoff_ms = inf
        return {node.id: self._drain_for(cluster, node, max_size, now_ms) for node in nodes}

    def _drain_for(self, cluster: Cluster, node: Node, max_size: int, now_ms: float) -> list[ProducerBatch]:
        size = 0
        taken: list[ProducerBatch] = []
        for partition, queue in self._round_robin(cluster, node.id):
            first = queue[0]
            if partition in self._muted:
                continue
            left_ms = self._time_left_ms(first, now_ms)
            if left_ms is not None:  # a new draw, which can exceed that of `ready`
                self.next_backoff_ms = min(self.next_backoff_ms, now_ms + left_ms)
                continue
            if taken and size + first.estimated_bytes > max_size:
                self._next_drained[node.id] = partition
                break
            if self._transactions is not None:
                if not self._transactions.may_drain(first):
                    continue
                self._transactions.drained(first)
            queue.popleft()
            first.sequence_was_reset = False
            self._close(first)
            size += first.estimated_bytes
            taken.append(first)
        return taken

    def _round_robin(self, cluster: Cluster, node_id: int) -> list[tuple[TopicPartition, Queue]]:
        found = [
            (queue[0].partition, queue)
            for name, topic in self._topics.items()
            for number, queue in topic.queues.items()
            if queue and _leader_id(cluster, name, number) == node_id
        ]
        following = self._next_drained.pop(node_id, None)
        start = next((at for at, (partition, _) in enumerate(found) if partition == following), 0)
        return found[start:] + found[:start]

    def mute(self, partition: TopicPartition) -> None:
        self._muted.add(partition)

    def unmute(self, partition: TopicPartition) -> None:
        self._muted.discard(partition)

    # -- results -------------------------------------------------------------------------------------------------------

    def expired(self, now_ms: float) -> tuple[list[ProducerBatch], float]:
        """Remove and return expired batches; also return when the next one expires.

        Retried batches are at the front of a queue, not always in order of creation, so all of them and the next one
        are checked; Kafka stops at the first batch that has time left.
        """
        expired: list[ProducerBatch] = []
        next_expiry_ms = inf
        timeout_ms = self.settings.delivery_timeout_ms
        for queue in self._queues():
            while queue and queue[0].has_expired(timeout_ms, now_ms):
                expired.append(queue.popleft())
            for batch in _retried_and_next(queue):
                if batch.has_expired(timeout_ms, now_ms):
                    queue.remove(batch)
                    expired.append(batch)
                else:
                    next_expiry_ms = min(next_expiry_ms, batch.created_ms + timeout_ms)
        return expired, next_expiry_ms

    def reenqueue(self, batch: ProducerBatch, now_ms: float) -> None:
        batch.reenqueued(now_ms)
        self._insert_in_sequence_order(batch)

    def split_and_reenqueue(self, batch: ProducerBatch) -> int:
        topic = self._topic(batch.partition.topic)
        topic.compression_ratio = max(1.0, batch.compression_ratio)
        target = max(batch.largest_record, batch.estimated_bytes // 2) if batch.is_split else self.settings.batch_size
        parts = batch.split(target)
        for part in reversed(parts):
            self.incomplete[part] = None
            if self._transactions is not None:
                self._transactions.sequences[part.partition].add_in_flight(part)
            self._insert_in_sequence_order(part)
        return len(parts)

    def _insert_in_sequence_order(self, batch: ProducerBatch) -> None:
        queue = self._queue(batch.partition)
        if self._transactions is None:
            queue.appendleft(batch)
            return
        assert batch.has_sequence, f"{batch} has no sequence"
        at = 0
        for other in queue:
            if not other.has_sequence or other.state.base_sequence >= batch.state.base_sequence:
                break
            at += 1
        queue.insert(at, batch)

    def completed(self, batch: ProducerBatch) -> None:
        self.incomplete.pop(batch, None)

    def give_back(self, batch: ProducerBatch) -> None:
        if batch.memory:
            memory, batch.memory = batch.memory, 0
            self.pool.give_back(memory)

    def abort(self, error: KafkaException, *, only_undrained: bool = False) -> None:
        for batch in list(self.incomplete):
            queue = self._queue(batch.partition)
            is_queued = batch in queue
            if only_undrained and (not is_queued or batch.has_sequence):
                continue
            if is_queued:
                queue.remove(batch)
            self.completed(batch)
            batch.fail(error)
            self.give_back(batch)

    def _topic(self, name: str) -> _Topic:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(StickyPartitioner(self.settings.batch_size, self._random))
        return topic

    def _queue(self, partition: TopicPartition) -> Queue:
        queues = self._topic(partition.topic).queues
        queue = queues.get(partition.partition)
        if queue is None:
            queue = queues[partition.partition] = deque()
        return queue

    def _queues(self) -> Iterator[Queue]:
        return (queue for topic in self._topics.values() for queue in topic.queues.values() if queue)


def _retried_and_next(queue: Queue) -> list[ProducerBatch]:
    found: list[ProducerBatch] = []
    for batch in queue:
        found.append(batch)
        if not batch.attempts and not batch.is_split:
            break
    return found


def _leader_id(cluster: Cluster, topic: str, number: int) -> int:
    known = cluster.topics.get(topic, {}).get(number)
    return NO_LEADER if known is None else known.leader_id
