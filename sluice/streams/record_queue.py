"""The buffered records of a task (Kafka's PartitionGroup and RecordQueue).

The next record is the one with the lowest timestamp at the head of a partition. A task first waits until each
partition has a record: without a limit if the broker has unfetched records, otherwise for `max.task.idle.ms`.
"""

from collections import deque
from collections.abc import Callable, Iterable

from sluice.client.consumer.record import ConsumerRecord
from sluice.client.metadata.cluster import TopicPartition

from .errors import StreamsException, TaskId

NEVER_WAIT = -1

Lag = Callable[[TopicPartition], int | None]


class PartitionGroup:
    def __init__(self, task_id: TaskId, partitions: Iterable[TopicPartition], lag: Lag, max_task_idle_ms: int) -> None:
        self._task_id = task_id
        self._queues: dict[TopicPartition, deque[ConsumerRecord]] = {one: deque() for one in sorted(partitions)}
        self._lag = lag
        self._max_idle_ms = max_task_idle_ms
        self._idle_until_ms: dict[TopicPartition, int] = {}

    def add(self, partition: TopicPartition, records: Iterable[ConsumerRecord]) -> int:
        """Return the number of the partition's records; raise StreamsException for a missing timestamp."""
        queue = self._queues[partition]
        for record in records:
            if record.timestamp < 0:
                raise StreamsException(
                    f"{partition} offset {record.offset}: the record has no timestamp ({record.timestamp})",
                    self._task_id,
                )
            queue.append(record)
        return len(queue)

    def size(self, partition: TopicPartition) -> int:
        return len(self._queues[partition])

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def clear(self) -> None:
        for queue in self._queues.values():
            queue.clear()
        self._idle_until_ms.clear()

    def is_ready(self, now_ms: int) -> bool:
        if self._max_idle_ms == NEVER_WAIT:
            return len(self) > 0
        for partition, queue in self._queues.items():
            lag = None if queue else self._lag(partition)
            if queue or lag != 0:
                self._idle_until_ms.pop(partition, None)
            if queue:
                continue
            if lag != 0 or now_ms < self._idle_until_ms.setdefault(partition, now_ms + self._max_idle_ms):
                return False
        return len(self) > 0

    def next(self) -> ConsumerRecord:
        queue = min((queue for queue in self._queues.values() if queue), key=lambda queue: queue[0].timestamp)
        return queue.popleft()
