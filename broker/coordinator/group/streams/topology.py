"""The topology of a Streams application, as its members send it. Follows Kafka's StreamsTopology."""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cached_property
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from sluice.broker.coordinator.group.group import HeartbeatError
from sluice.protocol.apis import streams_group_heartbeat as heartbeat
from sluice.protocol.apis.streams_group_heartbeat import Subtopology
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .record_values import StreamsGroupTopologyValue

M = TypeVar("M", bound=Message)


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

    @property
    def response(self) -> HeartbeatError:
        """The response; as in Kafka, that of an internal error has no message."""
        return HeartbeatError(self.error, None if self.error is ErrorCode.UNKNOWN_SERVER_ERROR else str(self))


class Topology(msgspec.Struct, frozen=True, dict=True):
    epoch: int
    subtopologies: Mapping[str, Subtopology]

    @cached_property
    def subtopology_of(self) -> Mapping[str, str]:
        return {topic: one.subtopology_id for one in self.subtopologies.values() for topic in inputs_of(one)}

    @cached_property
    def required_topics(self) -> frozenset[str]:
        changelogs = (topic.name for one in self.subtopologies.values() for topic in one.state_changelog_topics)
        return frozenset(self.subtopology_of) | frozenset(changelogs)


def inputs_of(one: Subtopology) -> Iterator[str]:
    yield from one.source_topics
    yield from (topic.name for topic in one.repartition_source_topics)


def copartitioned_topics(one: Subtopology) -> Iterator[frozenset[str]]:
    for group in one.copartition_groups:
        indexes = (*group.source_topics, *group.repartition_source_topics)
        if min(indexes, default=0) < 0:
            raise IndexError(f"negative index in a copartition group of {one.subtopology_id}")
        yield frozenset(one.source_topics[index] for index in group.source_topics) | frozenset(
            one.repartition_source_topics[index].name for index in group.repartition_source_topics
        )


def topology_of(message: heartbeat.Topology | StreamsGroupTopologyValue) -> Topology:
    """Return the topology of a message.

    Raises:
        InvalidTopologyError: Two sub-topologies have the same id.
    """
    subtopologies = [_copied(one) for one in message.subtopologies]
    by_id = {one.subtopology_id: one for one in subtopologies}
    if len(by_id) < len(subtopologies):
        raise InvalidTopologyError("Duplicate sub-topology id.", ErrorCode.UNKNOWN_SERVER_ERROR)
    return Topology(message.epoch, by_id)


def _copied(message: M) -> M:
    # The arrays of a request pause when they are iterated over, and are emptied after the response.
    arrays = {name: array for name in message.__struct_fields__ if isinstance(array := getattr(message, name), list)}
    copies = {
        name: [_copied(one) if isinstance(one, Message) else one for one in array] for name, array in arrays.items()
    }
    return replace(message, **copies)
