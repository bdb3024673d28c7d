"""The batches that wait to be sent, by topic and partition: Kafka's RecordAccumulator. No socket, no clock.

A record goes into the last batch of its partition's queue, or, where that has no room, into a new one. `ready` says
which nodes there is something to send to, `drain` takes it: from each partition that the node leads its first batch, up
to `max.request.size` in all.

A batch is *sendable* when it is full, or another waits behind it, when `linger.ms` is over, when somebody waits for
memory, or is flushing or closing. One that failed waits for its retry backoff instead, whatever else holds; the backoff
(KIP-580) is drawn anew each time it is looked at, and skipped where the leader has changed meanwhile (KIP-951).

A partition is *muted* while it has a batch on its way, if `max.in.flight.requests.per.connection` is 1: that is what
keeps the order. For an idempotent producer the sequences do; its retries go back into their place by sequence.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)
from typing import NamedTuple

from sluice.client.backoff import Backoff
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import NO_LEADER, Cluster, Node, Partitions, TopicPartition

from .batch import Codec, Header, ProducerBatch, size_upper_bound
from .buffer_pool import BufferPool
from .partitioner import StickyPartitioner
from .transaction_manager import TransactionManager

Queue = deque[ProducerBatch]

# What the estimated ratio of compression loses with each batch that became smaller, and gains at least with each that
# became larger (CompressionRatioEstimator).
_RATIO_IMPROVES, _RATIO_DETERIORATES = 0.005, 0.05


class AccumulatorSettings(NamedTuple):
    """What is configured."""

    batch_size: int
    linger_ms: int
    delivery_timeout_ms: int
    codec: Codec
    partitions_by_load: bool = True
    availability_timeout_ms: int = 0


class Ready(NamedTuple):
    """Which nodes there is something to send to, when to look again, and the topics of partitions without leaders."""

    nodes: list[Node]
    next_check_ms: float
    unknown_leader_topics: set[str]


class _Topic:
    __slots__ = ("compression_ratio", "partitioner", "queues")

    def __init__(self, partitioner: StickyPartitioner) -> None:
        self.partitioner = partitioner
        self.queues: dict[int, Queue] = {}
        self.compression_ratio = 1.0


class RecordAccumulator:
    """All batches of one producer."""

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
        self.incomplete: dict[ProducerBatch, None] = {}  # all that have not ended, in the order they were made
        self.is_closing = False
        self.flushes = 0  # how many are waiting for one
        self.next_backoff_ms = inf  # when the first of those is over for which a batch was not drained
        self._retry_backoff = retry_backoff
        self._random = random
        self._transactions = transactions
        self._topics: dict[str, _Topic] = {}
        self._muted: set[TopicPartition] = set()
        self._next_drained: dict[int, TopicPartition] = {}  # by node: whose turn it is
        self._not_ready_since_ms: dict[int, float] = {}

    # -- appending -----------------------------------------------------------------------------------------------------

    def sticky_partition(self, topic: str, partitions: Partitions) -> int:
        """Where a record goes whose partition is all the same."""
        return self._topic(topic).partitioner.current(partitions)

    def appended(self, partition: TopicPartition, size: int, partitions: Partitions) -> None:
        """So much went where `sticky_partition` said."""
        topic = self._topics[partition.topic]
        queue = topic.queues[partition.partition]
        topic.partitioner.produced(size, partitions, may_switch=not queue or queue[-1].is_full)

    def last_batch(self, topic: str, partition: int) -> ProducerBatch | None:
        """The batch that records of a partition may go into."""
        found = self._topics.get(topic)
        if found is None:
            return None
        queue = found.queues.get(partition)
        return queue[-1] if queue else None

    def new_batch_bytes(self, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
        """What a batch that begins with this record takes of the pool."""
        return max(self.settings.batch_size, size_upper_bound(key, value, headers))

    def add_batch(self, partition: TopicPartition, size: int, now_ms: float) -> ProducerBatch:
        """A new batch at the end of the partition's queue, for which `size` bytes were taken of the pool."""
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

    # -- what can be sent ----------------------------------------------------------------------------------------------

    def ready(self, cluster: Cluster, now_ms: float) -> Ready:
        """What could be sent now, if the nodes are ready."""
        nodes: dict[int, Node] = {}
        next_check_ms = inf
        unknown: set[str] = set()
        hurries = self._hurries
        for name, topic in self._topics.items():
            partitions = cluster.topics.get(name, {})
            waiting: dict[int, int] | None = None
            if self.settings.partitions_by_load and len(topic.queues) >= len(partitions):
                waiting = {}
            for number, queue in topic.queues.items():
                known = partitions.get(number)
                node = None if known is None else cluster.nodes.get(known.leader_id)
                if waiting is not None and node is not None and self._is_available(node, now_ms):
                    waiting[number] = len(queue)
                if not queue:
                    continue
                first = queue[0]
                if known is None or node is None:
                    unknown.add(name)
                    continue
                first.saw_leader_epoch(known.leader_epoch)
                if node.id in nodes or first.partition in self._muted:
                    continue
                left_ms = self._time_left_ms(first, now_ms)
                if left_ms is None:
                    is_full = len(queue) > 1 or first.is_full
                    left_ms = 0 if hurries or is_full else self._linger_left_ms(first, now_ms)
                if left_ms <= 0:
                    nodes[node.id] = node
                else:
                    next_check_ms = min(next_check_ms, now_ms + left_ms)
            topic.partitioner.weigh(waiting, len(partitions))
        return Ready(list(nodes.values()), next_check_ms, unknown)

    @property
    def _hurries(self) -> bool:
        return (
            self.pool.is_exhausted
            or self.is_closing
            or self.flushes > 0
            or (self._transactions is not None and self._transactions.is_completing)
        )

    def _time_left_ms(self, batch: ProducerBatch, now_ms: float) -> float | None:
        """How long a batch that failed still waits; None: it need not, or did not fail."""
        if batch.attempts == 0 or batch.leader_changed_for_this_retry:
            return None
        left_ms = self._retry_backoff.backoff(batch.attempts - 1) - batch.waited_ms(now_ms)
        return left_ms if left_ms > 0 else None

    def _linger_left_ms(self, batch: ProducerBatch, now_ms: float) -> float:
        return self.settings.linger_ms - batch.waited_ms(now_ms)

    def node_was_ready(self, node_id: int, now_ms: float, *, is_ready: bool) -> None:
        """Whether a node that there is something for could be sent to: records go elsewhere if it cannot for long."""
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
        """Takes what goes into one request to each of these nodes."""
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
            if left_ms is not None:  # drawn anew, it may be longer than `ready` found
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
        """The queues of the partitions that a node leads, from the one on that was left out the last time."""
        found = [
            (queue[0].partition, queue)
            for name, topic in self._topics.items()
            for number, queue in topic.queues.items()
            if queue and _leader_id(cluster, name, number) == node_id
        ]
        following = self._next_drained.pop(node_id, None)
        start = next((at for at, (partition, _) in enumerate(found) if partition == following), 0)
        return found[start:] + found[:start]

    @property
    def has_undrained(self) -> bool:
        """Whether anything waits to be sent."""
        return any(True for _ in self._queues())

    def mute(self, partition: TopicPartition) -> None:
        self._muted.add(partition)

    def unmute(self, partition: TopicPartition) -> None:
        self._muted.discard(partition)

    # -- what comes of it ----------------------------------------------------------------------------------------------

    def expired(self, now_ms: float) -> tuple[list[ProducerBatch], float]:
        """Takes out the batches whose delivery timeout is over; and when that will be so of the next.

        What was sent before stands first in a queue, not always in the order in which it was made: all of that is
        looked at, and one more. Kafka stops at the first that has time left.
        """
        expired: list[ProducerBatch] = []
        next_expiry_ms = inf
        timeout_ms = self.settings.delivery_timeout_ms
        for queue in self._queues():
            while queue and queue[0].has_expired(timeout_ms, now_ms):
                expired.append(queue.popleft())
            for batch in _up_to_the_first_that_was_not_sent(queue):
                if batch.has_expired(timeout_ms, now_ms):
                    queue.remove(batch)
                    expired.append(batch)
                else:
                    next_expiry_ms = min(next_expiry_ms, batch.created_ms + timeout_ms)
        return expired, next_expiry_ms

    def reenqueue(self, batch: ProducerBatch, now_ms: float) -> None:
        """An attempt failed: it goes before all that come after it."""
        batch.reenqueued(now_ms)
        self._insert_in_sequence_order(batch)

    def split_and_reenqueue(self, batch: ProducerBatch) -> int:
        """The broker finds a batch too large: it goes back in parts. Returns how many."""
        topic = self._topic(batch.partition.topic)
        topic.compression_ratio = max(1.0, batch.compression_ratio)
        target = max(batch.largest_record, batch.estimated_bytes // 2) if batch.is_split else self.settings.batch_size
        parts = batch.split(target)
        for part in reversed(parts):
            self.incomplete[part] = None
            if self._transactions is not None:
                self._transactions.sequences.add_in_flight(part)
            self._insert_in_sequence_order(part)
        return len(parts)

    def _insert_in_sequence_order(self, batch: ProducerBatch) -> None:
        queue = self._queue(batch.partition)
        if self._transactions is None:
            queue.appendleft(batch)
            return
        assert batch.has_sequence, f"{batch} was sent without a sequence"
        at = 0
        for other in queue:
            if not other.has_sequence or other.state.base_sequence >= batch.state.base_sequence:
                break
            at += 1
        queue.insert(at, batch)

    def completed(self, batch: ProducerBatch) -> None:
        """A batch has ended."""
        self.incomplete.pop(batch, None)

    def give_back(self, batch: ProducerBatch) -> None:
        """Nobody needs its bytes any more."""
        if batch.memory:
            memory, batch.memory = batch.memory, 0
            self.pool.give_back(memory)

    def abort(self, error: KafkaException, *, only_undrained: bool = False) -> None:
        """Fails all batches, or those that wait to be sent and were never."""
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


def _up_to_the_first_that_was_not_sent(queue: Queue) -> list[ProducerBatch]:
    found: list[ProducerBatch] = []
    for batch in queue:
        found.append(batch)
        if not batch.attempts and not batch.is_split:
            break
    return found


def _leader_id(cluster: Cluster, topic: str, number: int) -> int:
    known = cluster.topics.get(topic, {}).get(number)
    return NO_LEADER if known is None else known.leader_id
