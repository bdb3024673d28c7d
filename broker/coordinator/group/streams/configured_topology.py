"""A topology with the partition counts of its topics, and the internal topics that are missing.

Follows Kafka's InternalTopicManager, RepartitionTopics, CopartitionedTopicsEnforcer and ChangelogTopics. The counts are
decided in this order:

    1. A repartition topic without a count gets the largest count among the inputs of a sub-topology that writes to it.
    2. The topics of a copartition group get one count: that of its source topics, which must agree. Without source
       topics, it is the fixed count of repartition topics, or the largest one.
    3. A changelog topic gets the largest count among the inputs of its sub-topology, which is the number of its tasks.
"""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from sluice.protocol.apis.streams_group_heartbeat import Subtopology, TopicInfo
from sluice.protocol.errors import ErrorCode

from .topology import InvalidTopologyError, Status, Topology, copartitioned_topics, inputs_of

PartitionCount = Callable[[str], int | None]
_SUMMARIZED_TOPICS = 3


class TopicProblem(NamedTuple):
    status: Status
    detail: str


class ConfiguredSubtopology(NamedTuple):
    task_count: int
    inputs: frozenset[str]
    is_stateful: bool
    described: Subtopology  # with the decided partition counts


class ConfiguredTopology(NamedTuple):
    """A topology that is ready for assignment unless it has a problem.

    Sub-topologies are in order of id, also if only internal topics are missing.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] = {}
    missing: Mapping[str, TopicInfo] = {}
    problem: TopicProblem | None = None


class _TopicError(Exception):
    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.problem = TopicProblem(status, detail)


def configure(topology: Topology, existing: PartitionCount) -> ConfiguredTopology:
    """Configure a topology.

    Raises:
        InvalidTopologyError: No topics can satisfy the topology.
    """
    try:
        return _configure(topology, existing)
    except _TopicError as error:
        return ConfiguredTopology(topology.epoch, problem=error.problem)
    except IndexError as error:
        raise InvalidTopologyError(str(error), ErrorCode.UNKNOWN_SERVER_ERROR) from error


def summarize(topics: Collection[str]) -> str:
    """Name up to three topics, as in the details of statuses."""
    names = list(topics)
    more = len(names) - _SUMMARIZED_TOPICS
    return ", ".join(names[:_SUMMARIZED_TOPICS]) + (f" and {more} additional topics" if more > 0 else "")


def _configure(topology: Topology, existing: PartitionCount) -> ConfiguredTopology:
    subtopologies = list(topology.subtopologies.values())
    sources = {topic for one in subtopologies for topic in one.source_topics}
    missing_sources = sorted(topic for topic in sources if existing(topic) is None)
    if missing_sources:
        raise _TopicError(Status.MISSING_SOURCE_TOPICS, f"Source topics {summarize(missing_sources)} are missing.")
    counts = _Counts(subtopologies, existing)
    configured = {
        one.subtopology_id: _configured(one, counts)
        for one in sorted(subtopologies, key=lambda subtopology: subtopology.subtopology_id)
    }
    missing = _missing_internal_topics(configured, existing)
    problem = None
    if missing:
        detail = f"Internal topics are missing: {summarize(sorted(missing))}"
        problem = TopicProblem(Status.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, configured, missing, problem)


def _configured(subtopology: Subtopology, counts: "_Counts") -> ConfiguredSubtopology:
    decided = replace(
        subtopology,
        repartition_source_topics=list(map(counts.decide, subtopology.repartition_source_topics)),
        state_changelog_topics=list(map(counts.decide, subtopology.state_changelog_topics)),
    )
    for topics in (decided.repartition_source_topics, decided.state_changelog_topics):
        _require_distinct([topic.name for topic in topics])
        for topic in topics:
            _require_distinct([config.key for config in topic.topic_configs])
    task_count = counts.largest_input(subtopology)
    return ConfiguredSubtopology(
        task_count, frozenset(inputs_of(subtopology)), bool(decided.state_changelog_topics), decided
    )


def _require_distinct(names: Collection[str]) -> None:
    if len({*names}) < len(names):
        raise InvalidTopologyError("A topic or config is repeated.", ErrorCode.UNKNOWN_SERVER_ERROR)


def _missing_internal_topics(
    configured: Mapping[str, ConfiguredSubtopology], existing: PartitionCount
) -> dict[str, TopicInfo]:
    missing: dict[str, TopicInfo] = {}
    for one in configured.values():
        for topic in (*one.described.repartition_source_topics, *one.described.state_changelog_topics):
            count = existing(topic.name)
            if count is None:
                missing[topic.name] = topic
            elif count != topic.partitions:
                detail = (
                    f"Existing topic {topic.name} has different number of partitions: expected {topic.partitions}, "
                    f"found {count}"
                )
                raise _TopicError(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return missing


class _Counts:
    """The decided partition counts of internal topics."""

    def __init__(self, subtopologies: Collection[Subtopology], existing: PartitionCount) -> None:
        self._subtopologies = subtopologies
        self._existing = existing
        repartition_topics = [topic for one in subtopologies for topic in one.repartition_source_topics]
        self._decided = {topic.name: topic.partitions for topic in repartition_topics if topic.partitions}
        self._fixed = sorted(self._decided)
        self._repartition_names = frozenset(topic.name for topic in repartition_topics)
        self._decide_repartition_topics()
        for one in subtopologies:
            for topics in copartitioned_topics(one):
                if topics:
                    self._decide_copartitioned(topics)
        self._decide_changelogs()

    def decide(self, topic: TopicInfo) -> TopicInfo:
        partitions = topic.partitions or self._decided[topic.name]
        if partitions < 1:
            message = "Number of partitions must be at least 1."
            raise InvalidTopologyError(message, ErrorCode.UNKNOWN_SERVER_ERROR)
        return replace(topic, partitions=partitions)

    def largest_input(self, subtopology: Subtopology) -> int:
        largest = max(map(self._count, inputs_of(subtopology)), default=None)
        if largest is None:
            raise InvalidTopologyError(f"No source topics found for subtopology {subtopology.subtopology_id}")
        return largest

    def _count(self, topic: str) -> int:
        count = self._existing(topic)
        return self._decided[topic] if count is None else count

    def _decide_repartition_topics(self) -> None:
        decided = self._decided
        undecided = [(topic, one) for one in self._subtopologies for topic in one.repartition_sink_topics]
        while undecided := [(topic, one) for topic, one in undecided if topic not in decided]:
            before = len(decided)
            for topic, one in undecided:
                known = [decided.get(source.name) for source in one.repartition_source_topics]
                known += map(self._existing, one.source_topics)
                counts = [count for count in known if count is not None]
                if topic not in decided and counts:
                    decided[topic] = max(counts)
            if len(decided) == before:
                raise InvalidTopologyError(
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the "
                    "topology that cannot be resolved."
                )
        if not self._repartition_names <= decided.keys():
            raise InvalidTopologyError(
                "Failed to compute number of partitions for all repartition topics, because a repartition source topic "
                "is never used as a sink topic."
            )

    def _decide_copartitioned(self, topics: frozenset[str]) -> None:
        repartition = {topic: self._count(topic) for topic in sorted(topics & self._repartition_names)}
        sources = {topic: self._count(topic) for topic in sorted(topics - self._repartition_names)}
        if sources:
            wanted = _same_count(sources, sources)
        elif self._fixed:
            # As in Kafka, all fixed counts of the topology must be equal.
            wanted = _same_count({topic: self._count(topic) for topic in self._fixed}, repartition)
        else:
            wanted = max(repartition.values())
        for topic, count in repartition.items():
            if topic in self._fixed and count != wanted:
                detail = (
                    f"Number of partitions [{count}] of repartition topic [{topic}] doesn't match number of partitions "
                    f"[{wanted}] of the source topic."
                )
                raise _TopicError(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
            self._decided[topic] = wanted

    def _decide_changelogs(self) -> None:
        for one in self._subtopologies:
            count = self.largest_input(one)
            for topic in one.state_changelog_topics:
                self._decided[topic.name] = count


def _same_count(counts: Mapping[str, int], named: Mapping[str, int]) -> int:
    if len(set(counts.values())) > 1:
        topics = ", ".join(f"{topic}={count}" for topic, count in named.items())
        detail = f"Following topics do not have the same number of partitions: [{{{topics}}}]"
        raise _TopicError(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return next(iter(counts.values()))
