"""Requests of the three APIs that change committed offsets, with repeated and empty topics, and Kafka's responses."""

from collections.abc import Iterable
from typing import Any

import pytest

KNOWN, OTHER, MISSING = "t", "u", "missing"
each_request = pytest.mark.parametrize(
    ("requested", "expected"),
    [
        pytest.param([(KNOWN, [0]), (KNOWN, [1])], [(KNOWN, [0]), (KNOWN, [1])], id="repeated topic"),
        pytest.param([(KNOWN, [0]), (KNOWN, [7])], [(KNOWN, [7, 0])], id="repeated topic with a failed partition"),
        pytest.param(
            [(OTHER, [0]), (KNOWN, [0]), (MISSING, [3]), (KNOWN, [1]), (MISSING, [4])],
            [(MISSING, [3, 4]), (OTHER, [0]), (KNOWN, [0, 1])],
            id="repeated topics with an unknown topic",
        ),
        pytest.param([(KNOWN, []), (OTHER, [0])], [(OTHER, [0])], id="topic without partitions"),
        pytest.param([(KNOWN, []), (MISSING, [])], [(MISSING, [])], id="unknown topic without partitions"),
    ],
)


def shown(topics: Iterable[Any], ids: dict[bytes, str]) -> list[tuple[str, list[int]]]:
    """Return the names and partition indexes of a response's topics; `ids` has the names of topic ids."""
    return [(topic.name or ids[topic.topic_id], [one.partition_index for one in topic.partitions]) for topic in topics]


def with_topics(broker: Any) -> dict[str, bytes]:
    """Create the known topics; return the id of each topic."""
    ids = {name: broker.topic(name, partitions=2).topic_id for name in (KNOWN, OTHER)}
    return ids | {MISSING: bytes(range(16))}
