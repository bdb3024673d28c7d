"""Partition counts of internal topics, and the problems of topologies."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from sluice.broker.coordinator.group.streams.configured_topology import configure, summarize
from sluice.broker.coordinator.group.streams.topology import InvalidTopologyError, Status, Topology
from sluice.protocol.apis.streams_group_heartbeat import CopartitionGroup, KeyValue, Subtopology, TopicInfo
from sluice.protocol.errors import ErrorCode


def sub(name: str, *sources: str, **fields: Any) -> Subtopology:
    for topics in ("repartition_source_topics", "state_changelog_topics"):
        given = fields.get(topics, ())
        fields[topics] = [TopicInfo(name=one) if isinstance(one, str) else one for one in given]
    return Subtopology(subtopology_id=name, source_topics=list(sources), **fields)


def topology(*subtopologies: Subtopology) -> Topology:
    return Topology(1, {one.subtopology_id: one for one in subtopologies})


def both(*sources: int, repartition: Sequence[int] = ()) -> list[CopartitionGroup]:
    return [CopartitionGroup(source_topics=list(sources), repartition_source_topics=list(repartition))]


WORD_COUNT = topology(
    sub("0", "lines", repartition_sink_topics=("r",)),
    sub("1", repartition_source_topics=("r",), state_changelog_topics=("c",)),
)
JOIN = sub(
    "1", "orders", repartition_source_topics=("r",), copartition_groups=both(0, repartition=(0,)),
    state_changelog_topics=("c",),
)  # fmt: skip


def fixed(first: int, second: int) -> Topology:
    topics = [TopicInfo(name="r", partitions=first), TopicInfo(name="q", partitions=second)]
    return topology(
        sub("0", "lines", repartition_sink_topics=("r", "q")),
        sub("1", repartition_source_topics=topics, copartition_groups=both(repartition=(0, 1))),
    )


COUNTS = {
    "largest source topic": (topology(sub("0", "a", "b")), {"a": 2, "b": 5}, {"0": 5}, {}),
    "word count": (WORD_COUNT, {"lines": 3}, {"0": 3, "1": 3}, {"r": 3, "c": 3}),
    "internal topics exist": (WORD_COUNT, {"lines": 3, "r": 3, "c": 3}, {"0": 3, "1": 3}, {}),
    "a repartition topic follows the source topic it is joined with": (
        topology(sub("0", "lines", repartition_sink_topics=("r",)), JOIN),
        {"lines": 3, "orders": 8},
        {"0": 3, "1": 8},
        {"r": 8, "c": 8},
    ),
    "joined repartition topics get the largest count": (
        topology(
            sub("0", "a", repartition_sink_topics=("r",)),
            sub("1", "b", repartition_sink_topics=("q",)),
            sub("2", repartition_source_topics=("r", "q"), copartition_groups=both(repartition=(0, 1))),
        ),
        {"a": 2, "b": 7},
        {"0": 2, "1": 7, "2": 7},
        {"r": 7, "q": 7},
    ),
    "a chain of repartition topics in any order": (
        topology(
            sub("1", repartition_source_topics=("r",), repartition_sink_topics=("q",)),
            sub("2", repartition_source_topics=("q",), state_changelog_topics=("c",)),
            sub("0", "a", repartition_sink_topics=("r",)),
        ),
        {"a": 4},
        {"0": 4, "1": 4, "2": 4},
        {"r": 4, "q": 4, "c": 4},
    ),
    "fixed counts": (fixed(6, 6), {"lines": 1}, {"0": 1, "1": 6}, {"r": 6, "q": 6}),
    "empty group": (topology(sub("0", "a", copartition_groups=[CopartitionGroup()])), {"a": 1}, {"0": 1}, {}),
}


@pytest.mark.parametrize(("given", "existing", "tasks", "missing"), COUNTS.values(), ids=COUNTS)
def test_counts_of_tasks_and_missing_topics(
    given: Topology, existing: Mapping[str, int], tasks: dict[str, int], missing: dict[str, int]
) -> None:
    configured = configure(given, existing.get)
    assert {name: one.task_count for name, one in configured.subtopologies.items()} == tasks
    assert {name: topic.partitions for name, topic in configured.missing.items()} == missing
    assert (configured.problem is None) == (not missing)


@pytest.mark.parametrize(
    ("given", "existing", "status", "detail"),
    [
        pytest.param(
            topology(sub("0", "d", "a", "c", "b", "e")),
            {"e": 1},
            Status.MISSING_SOURCE_TOPICS,
            "Source topics a, b, c and 1 additional topics are missing.",
            id="missing source topics",
        ),
        pytest.param(
            WORD_COUNT, {"lines": 1, "r": 1}, Status.MISSING_INTERNAL_TOPICS, "Internal topics are missing: c",
            id="missing internal topics",
        ),
        pytest.param(
            WORD_COUNT,
            {"lines": 3, "r": 3, "c": 2},
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            "Existing topic c has different number of partitions: expected 3, found 2",
            id="changelog topic with another count",
        ),
        pytest.param(
            topology(sub("0", "a", "b", copartition_groups=both(0, 1))),
            {"a": 1, "b": 2},
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            "Following topics do not have the same number of partitions: [{a=1, b=2}]",
            id="source topics that are not copartitioned",
        ),
        pytest.param(
            fixed(6, 7),
            {"lines": 1},
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            "Following topics do not have the same number of partitions: [{q=7, r=6}]",
            id="fixed counts that differ",
        ),
        pytest.param(
            topology(
                sub("0", "lines", repartition_sink_topics=("r",)),
                replace(JOIN, repartition_source_topics=[TopicInfo(name="r", partitions=4)]),
            ),
            {"lines": 1, "orders": 8},
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            "Number of partitions [4] of repartition topic [r] doesn't match number of partitions [8] of the source "
            "topic.",
            id="fixed count that differs from the source topic",
        ),
    ],
)  # fmt: skip
def test_a_problem_with_topics(given: Topology, existing: Mapping[str, int], status: Status, detail: str) -> None:
    assert configure(given, existing.get).problem == (status, detail)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        pytest.param(
            topology(sub("0", "a", repartition_source_topics=("r",))),
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            "never used as a sink topic",
            id="no sub-topology writes a repartition topic",
        ),
        pytest.param(
            topology(
                sub("0", repartition_source_topics=("r",), repartition_sink_topics=("q",)),
                sub("1", repartition_source_topics=("q",), repartition_sink_topics=("r",)),
            ),
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            "loops",
            id="loop",
        ),
        pytest.param(
            topology(sub("0")), ErrorCode.STREAMS_INVALID_TOPOLOGY, "No source topics found for subtopology 0",
            id="no inputs",
        ),
        *(
            pytest.param(topology(sub("0", "a", copartition_groups=both(index))), ErrorCode.UNKNOWN_SERVER_ERROR,
                         "index", id=f"copartition group with index {index}")
            for index in (1, -1)
        ),
        pytest.param(topology(sub("0", "a", state_changelog_topics=("c", "c"))), ErrorCode.UNKNOWN_SERVER_ERROR,
                     "repeated", id="repeated changelog topic"),
        pytest.param(fixed(-1, -1), ErrorCode.UNKNOWN_SERVER_ERROR, "at least 1", id="negative count"),
    ],
)  # fmt: skip
def test_an_invalid_topology(given: Topology, error: ErrorCode, message: str) -> None:
    with pytest.raises(InvalidTopologyError, match=message) as raised:
        configure(given, {"a": 1, "lines": 1}.get)
    assert raised.value.error is error


def test_described_topics_have_their_counts_and_configs() -> None:
    topic = TopicInfo(name="c", topic_configs=[KeyValue(key="cleanup.policy", value="compact")], replication_factor=2)
    configured = configure(topology(sub("0", "a", state_changelog_topics=(topic,))), {"a": 3}.get)
    assert configured.missing == {"c": replace(topic, partitions=3)}
    assert configured.subtopologies["0"].described.state_changelog_topics == [replace(topic, partitions=3)]
    assert configured.subtopologies["0"].is_stateful


def test_summary_of_few_topics() -> None:
    assert summarize(["a", "b", "c"]) == "a, b, c"
