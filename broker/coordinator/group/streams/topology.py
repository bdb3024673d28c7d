"""The topology of a Streams application, as its members send it. Follows Kafka's StreamsTopology."""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import msgspec

from sluice.protocol.apis import streams_group_heartbeat as heartbeat
from sluice.protocol.errors import ErrorCode

from . import record_values


class Status(IntEnum):
    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class InvalidTopologyError(Exception):
    def __init__(self, message: str, error: ErrorCode = ErrorCode.STREAMS_INVALID_TOPOLOGY) -> None:
        super().__init__(message)
        self.error = error


class TopicInfo(NamedTuple):
    name: str
    partitions: int = 0  # 0: decided by the coordinator
    replication_factor: int = 0  # 0: the broker's default
    configs: tuple[tuple[str, str], ...] = ()


class CopartitionGroup(NamedTuple):
    """Indexes of topics with equal partition counts in the lists of their sub-topology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


class Subtopology(NamedTuple):
    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def inputs(self) -> Iterator[str]:
        yield from self.source_topics
        yield from (topic.name for topic in self.repartition_source_topics)

    @property
    def is_stateful(self) -> bool:
        return bool(self.state_changelog_topics)

    def copartitioned_topics(self) -> Iterator[frozenset[str]]:
        sources, repartition_sources = self.source_topics, self.repartition_source_topics
        for group in self.copartition_groups:
            indexes = (*group.source_topics, *group.repartition_source_topics)
            if min(indexes, default=0) < 0:
                raise IndexError(f"negative index in a copartition group of {self.subtopology_id}")
            yield frozenset(sources[index] for index in group.source_topics) | frozenset(
                repartition_sources[index].name for index in group.repartition_source_topics
            )


class Topology(msgspec.Struct, frozen=True, dict=True):
    epoch: int
    subtopologies: Mapping[str, Subtopology]

    @cached_property
    def subtopology_of(self) -> Mapping[str, str]:
        return {topic: one.subtopology_id for one in self.subtopologies.values() for topic in one.inputs}

    @cached_property
    def required_topics(self) -> frozenset[str]:
        changelogs = (topic.name for one in self.subtopologies.values() for topic in one.state_changelog_topics)
        return frozenset(self.subtopology_of) | frozenset(changelogs)


def topology_of(message: heartbeat.Topology | record_values.StreamsGroupTopologyValue) -> Topology:
    """Return the topology of a message.

    Raises:
        InvalidTopologyError: Two sub-topologies have the same id.
    """
    subtopologies = [_subtopology(one) for one in message.subtopologies]
    by_id = {one.subtopology_id: one for one in subtopologies}
    if len(by_id) < len(subtopologies):
        raise InvalidTopologyError("Duplicate sub-topology id.", ErrorCode.UNKNOWN_SERVER_ERROR)
    return Topology(message.epoch, by_id)


def _subtopology(message: heartbeat.Subtopology | record_values.Subtopology) -> Subtopology:
    return Subtopology(
        message.subtopology_id,
        tuple(message.source_topics),
        tuple(message.source_topic_regex),
        tuple(message.repartition_sink_topics),
        _topics(message.repartition_source_topics),
        _topics(message.state_changelog_topics),
        tuple(
            CopartitionGroup(
                tuple(group.source_topics), tuple(group.source_topic_regex), tuple(group.repartition_source_topics)
            )
            for group in message.copartition_groups
        ),
    )


def _topics(messages: Iterable[heartbeat.TopicInfo | record_values.TopicInfo]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            tuple((config.key, config.value) for config in topic.topic_configs),
        )
        for topic in messages
    )
