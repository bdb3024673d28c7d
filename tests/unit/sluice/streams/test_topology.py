"""Topologies: subtopologies, topic names, and validation."""

from collections.abc import Callable

import pytest

from sluice.streams.errors import TopologyException
from sluice.streams.processor import Context, Record
from sluice.streams.topology import Topology
from tests.support.streaming import split, word_count


def keep(ctx: Context, record: Record) -> None:
    ctx.forward(record)


def test_repartition_topic_splits_a_topology() -> None:
    first, second = word_count().build("app").subtopologies
    assert set(first.sources) == {"lines"}
    assert first.sinks == {"app-words-repartition"}
    assert first.stores == {}
    assert set(second.sources) == second.repartition_sources == {"app-words-repartition"}
    assert second.sinks == {"word-counts"}
    assert second.stores == {"counts": "app-counts-changelog"}


def numbers(topology: Topology) -> list[list[str]]:
    return [sorted(part.sources) for part in topology.build("app").subtopologies]


def test_connected_nodes_form_one_subtopology() -> None:
    topology = Topology()
    topology.store("shared")
    a, b, c, d = (topology.source(topic) for topic in "abcd")
    a.process(keep).sink("out-a")
    b.process(keep, d).sink("out-bd")
    c.process(keep, stores=["shared"])
    a.process(keep, stores=["shared"])
    assert numbers(topology) == [["a", "c"], ["b", "d"]], "a and c share the store, b and d the processor"


def test_subtopologies_are_numbered_by_their_first_nodes() -> None:
    topology = Topology()
    topology.source("z").sink("out-z")
    topology.source("a").sink("out-a")
    assert numbers(topology) == [["z"], ["a"]]


def test_default_node_names() -> None:
    topology = Topology()
    source = topology.source("in", "more")
    nodes = [source, source.process(keep), source.process(keep), source.process(split, name="words")]
    assert [node.name for node in nodes] == ["source in, more", "keep", "keep-2", "words"]


def two_sources_of_a_topic(topology: Topology) -> None:
    topology.source("in", "a")
    topology.source("b", "in")


def two_stores_of_a_name(topology: Topology) -> None:
    topology.global_table("x", "topic")
    topology.store("x")


def an_unused_store(topology: Topology) -> None:
    topology.store("x")
    topology.source("in").sink("out")


INVALID = {
    "nothing": (lambda _: None, "the topology has no source and no global table"),
    "no topics": (lambda topology: topology.source(), "source: expected at least one topic"),
    "a topic read twice": (two_sources_of_a_topic, "topic in is already read by source in, a"),
    "one name twice": (two_stores_of_a_name, "store or global table x already exists"),
    "an unused store": (an_unused_store, "no processor uses store x"),
    "a missing store": (
        lambda topology: topology.source("in").process(keep, stores=["x"]),
        "processor keep: store x does not exist; add it with store()",
    ),
    "two repartition topics of one name": (
        lambda topology: [topology.source("in").repartition("x") for _ in range(2)],
        "source in already exists",
    ),
}


@pytest.mark.parametrize(("make", "message"), INVALID.values(), ids=INVALID)
def test_invalid_topology_is_rejected(make: Callable[[Topology], object], message: str) -> None:
    def build() -> None:
        topology = Topology()
        make(topology)
        topology.build("app")

    with pytest.raises(TopologyException, match=message):
        build()
