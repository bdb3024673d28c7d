"""The delayed operations on the partitions that one broker leads.

Follows Kafka's ReplicaManager. Replicas share a partition's log, so nothing is copied.
"""

from collections.abc import Callable
from functools import partial

from sluice.broker.metadata.topic import Partition, Topic
from sluice.broker.requests.runtime import Runtime
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.purgatory.timer import Timer

from .partition_reader import Readers


class ReplicaManager:
    def __init__(self, node_id: int, runtime: Runtime, timer: Timer, replicate: Callable[[Partition], None]) -> None:
        """`replicate` is called after an append to a partition with followers."""
        config = runtime.config
        self.fetches = DelayedOperationPurgatory(
            "Fetch", timer, config.integer("fetch.purgatory.purge.interval.requests")
        )
        self.produces = DelayedOperationPurgatory(
            "Produce", timer, config.integer("producer.purgatory.purge.interval.requests")
        )
        # Kafka's purge interval for these is 1: they are few, and may reference much memory.
        self.delete_records = DelayedOperationPurgatory("DeleteRecords", timer, 1)
        self.readers = Readers(node_id)
        self._node_id = node_id
        self._actions = runtime.actions
        self._scheduler = runtime.scheduler
        self._replicate = replicate
        self._replication_delay_ms = config.integer("sluice.replication.delay.ms")

    def leads(self, partition: Partition) -> bool:
        return partition.leader == self._node_id

    def appended(self, partition: Partition) -> None:
        if partition.log.has_followers:
            self._replicate(partition)
        else:
            self._actions.defer(self.fetches, partition)
            for fetches in partition.follower_fetches:
                self._actions.defer(fetches, partition)

    def records_deleted(self, partition: Partition) -> None:
        if partition.log.has_followers:
            followed = partial(self._replicas_follow, partition, partition.log.log_start_offset)
            self._scheduler.schedule_once(self._replication_delay_ms, followed)

    def topic_deleted(self, topic: Topic) -> None:
        for partition in topic.partitions:
            self._actions.defer(self.fetches, partition)
            self.produces.check_and_complete(partition)
            self.delete_records.check_and_complete(partition)

    def complete_delayed_operations(self, partition: Partition) -> None:
        self.fetches.check_and_complete(partition)
        self.produces.check_and_complete(partition)
        self.delete_records.check_and_complete(partition)

    def _replicas_follow(self, partition: Partition, log_start_offset: int) -> None:
        partition.replicas_log_start_offset = max(partition.replicas_log_start_offset, log_start_offset)
        self.delete_records.check_and_complete(partition)
