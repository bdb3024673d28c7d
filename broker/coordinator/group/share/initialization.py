"""The initialization of share partitions at the share coordinator, and the records of its progress.

Follows the methods of Kafka's GroupMetadataManager on shareGroupStatePartitionMetadata, and persisterInitialize of its
GroupCoordinatorService. A result that arrives after the group moved to another broker is dropped.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.broker.coordinator.share.persisted import ShareErrors
from sluice.broker.metadata.topic import Partition, Topic
from sluice.protocol.errors import ErrorCode

from .group import ShareGroup
from .state_partitions import UNKNOWN_TOPIC, Partitions, StatePartitions, Topics, TopicState

_BY_THE_LEADER = -1  # start offset: the partition's leader applies share.auto.offset.reset
_EARLIEST = 0


class StateInitialization:
    def __init__(self, runtime: GroupRuntime) -> None:
        self._runtime = runtime
        self._cluster = runtime.host.cluster
        self._retry_ms = runtime.host.config.integer("group.share.initialize.retry.interval.ms")

    def start(self, group: ShareGroup, written: list[KeyValue]) -> Callable[[], None] | None:
        """Mark partitions as initializing; return the function to call when the records are written, if any."""
        partitions = group.partitions or StatePartitions()
        topics = [(one.topic_id, one.name, len(one.partitions)) for one in group.subscribed_topics(self._cluster)]
        missing = partitions.missing(topics, self._runtime.now_ms(), self._retry_ms)
        if not missing:
            return None
        known = partitions.known_topics
        offsets = {
            topic_id: dict.fromkeys(sorted(state.partitions), _EARLIEST if topic_id in known else _BY_THE_LEADER)
            for topic_id, state in missing.items()
        }
        written.append(group.set_partitions(partitions.start(missing), self.name_of))
        return partial(self._request, group, offsets)

    def loaded(self, group: ShareGroup) -> None:
        """Wait for the results of the previous coordinator before requesting again."""
        if group.partitions is not None:
            group.partitions = group.partitions.initializing_since(self._runtime.now_ms())

    def name_of(self, topic_id: bytes) -> str:
        topic = self._cluster.topics_by_id.get(topic_id)
        return UNKNOWN_TOPIC if topic is None else topic.name

    def apply(self, group: ShareGroup, results: ShareErrors) -> None:
        """Record that partitions are initialized, unless any failed."""
        partitions = {topic_id: list(errors) for topic_id, errors in results.items()}
        if not self._is_current(group) or not partitions:
            return
        if any(error for errors in results.values() for error in errors.values()):
            if group.partitions is not None and group.partitions.initializing:
                self.write(group, group.partitions.stop(partitions))
            return
        self.write(group, (group.partitions or StatePartitions()).finish(self._states(partitions)))

    def topic_deleted(self, topic: Topic) -> None:
        for group in list(self._runtime.groups.values()):
            if isinstance(group, ShareGroup) and group.partitions is not None:
                left = group.partitions.without(topic.topic_id)
                if left != group.partitions:
                    self.write(group, left)

    def _request(self, group: ShareGroup, offsets: Mapping[bytes, Mapping[int, int]]) -> None:
        state_epoch = group.group_epoch

        def replicated(lost: Collection[Partition]) -> None:
            if not lost and self._is_current(group):
                state = self._runtime.share_persister
                state.initialize_state(group.group_id, offsets, state_epoch, partial(self.apply, group))

        self._runtime.await_replication(group.group_id, replicated)

    def _is_current(self, group: ShareGroup) -> bool:
        return self._runtime.groups.get(group.group_id) is group

    def _states(self, partitions: Partitions) -> Topics:
        now_ms = self._runtime.now_ms()
        return {
            topic_id: TopicState(self.name_of(topic_id), frozenset(those), now_ms)
            for topic_id, those in partitions.items()
        }

    def write(self, group: ShareGroup, partitions: StatePartitions) -> ErrorCode:
        return self._runtime.write_or_restore(group.group_id, [group.set_partitions(partitions, self.name_of)])
