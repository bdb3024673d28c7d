"""The share partitions of a group by the progress of their state at the share coordinator.

Follows ShareGroupStatePartitionMetadataInfo and its changes in Kafka's GroupMetadataManager. A partition is assigned to
members once it is initialized. A topic stays in `deleting` until the share coordinator has deleted its state.

    (none)  --start-->  initializing  --finish-->  initialized  --delete-->  deleting  --deleted-->  (none)
               ^             |
               '----stop-----'
"""

from collections.abc import Collection, Iterable, Mapping, Set
from typing import NamedTuple

Partitions = Mapping[bytes, Collection[int]]

UNKNOWN_TOPIC = "<UNKNOWN>"


class TopicState(NamedTuple):
    name: str
    partitions: frozenset[int]
    timestamp_ms: int


Topics = Mapping[bytes, TopicState]


_NO_TOPICS: Topics = {}


class StatePartitions(NamedTuple):
    initializing: Topics = _NO_TOPICS
    initialized: Topics = _NO_TOPICS
    deleting: frozenset[bytes] = frozenset()

    @property
    def known_topics(self) -> Set[bytes]:
        return self.initialized.keys() | self.initializing.keys()

    def initializing_since(self, now_ms: int) -> "StatePartitions":
        states = self.initializing.items()
        return self._replace(initializing={topic_id: state._replace(timestamp_ms=now_ms) for topic_id, state in states})

    def missing(self, topics: Iterable[tuple[bytes, str, int]], now_ms: int, retry_ms: int) -> dict[bytes, TopicState]:
        """Return partitions to initialize: unknown ones, and those that are initializing for `retry_ms`.

        Args:
            topics: Id, name and number of partitions of each subscribed topic.
            now_ms: The wall clock.
            retry_ms: `group.share.initialize.retry.interval.ms`.
        """
        fresh = {one: state for one, state in self.initializing.items() if now_ms - state.timestamp_ms < retry_ms}
        known = _combined(self.initialized, fresh)
        found = {}
        for topic_id, name, count in topics:
            present = known[topic_id].partitions if topic_id in known else frozenset[int]()
            if len(present) < count:
                found[topic_id] = TopicState(name, frozenset(range(count)) - present, now_ms)
        return found

    def start(self, topics: Topics) -> "StatePartitions":
        """Initialize partitions; their topics leave `deleting`."""
        initializing = _combined(self.initializing, topics)
        return self._replace(initializing=initializing, deleting=self.deleting - initializing.keys())

    def finish(self, topics: Topics) -> "StatePartitions":
        partitions = {topic_id: state.partitions for topic_id, state in topics.items()}
        return self.stop(partitions)._replace(initialized=_combined(self.initialized, topics))

    def stop(self, partitions: Partitions) -> "StatePartitions":
        """End the initialization of partitions that failed."""
        left = {
            topic_id: state._replace(partitions=state.partitions.difference(partitions.get(topic_id, ())))
            for topic_id, state in self.initializing.items()
        }
        return self._replace(initializing={topic_id: state for topic_id, state in left.items() if state.partitions})

    def delete(self, topic_ids: Collection[bytes]) -> "StatePartitions":
        initialized = {topic_id: state for topic_id, state in self.initialized.items() if topic_id not in topic_ids}
        return self._replace(initialized=initialized, deleting=self.deleting | frozenset(topic_ids))

    def deleted(self, topic_ids: Iterable[bytes]) -> "StatePartitions":
        return self._replace(deleting=self.deleting.difference(topic_ids))

    def without(self, topic_id: bytes) -> "StatePartitions":
        return StatePartitions(
            {one: state for one, state in self.initializing.items() if one != topic_id},
            {one: state for one, state in self.initialized.items() if one != topic_id},
            self.deleting - {topic_id},
        )

    def to_delete(self, deleting: Topics) -> dict[bytes, TopicState]:
        """Return the partitions to delete with the group; `deleting`: topics whose deletion is unfinished."""
        return _combined(_combined(self.initialized, self.initializing), deleting)


def _combined(one: Topics, other: Topics) -> dict[bytes, TopicState]:
    combined = dict(one)
    for topic_id, state in other.items():
        present = combined.get(topic_id)
        known = frozenset[int]() if present is None else present.partitions
        combined[topic_id] = state._replace(partitions=known | state.partitions)
    return combined
