"""DescribeLogDirs: one directory, which is memory; sizes of partitions, and of the whole since version 4."""

from typing import Any

import pytest

from sluice.protocol.apis.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.support.records import batch, produce
from tests.support.virtual_broker import VirtualBroker

SIZE = len(batch())


def asked_for(name: str, *indexes: int) -> DescribableLogDirTopic:
    return DescribableLogDirTopic(topic=name, partitions=list(indexes))


def describe(broker: VirtualBroker, topics: list[DescribableLogDirTopic] | None, version: int = 5) -> Any:
    response = broker.client().ask(DescribeLogDirsRequest(topics=topics), version)
    assert response.error_code == 0
    (result,) = response.results
    assert (result.error_code, result.log_dir, result.is_cordoned) == (0, "memory", False)
    return result


def sizes(result: Any) -> dict[str, dict[int, int]]:
    assert all((one.offset_lag, one.is_future_key) == (0, False) for topic in result.topics for one in topic.partitions)
    return {
        topic.name: {one.partition_index: one.partition_size for one in topic.partitions} for topic in result.topics
    }


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        pytest.param(None, {"a": {0: SIZE, 1: 0}, "b": {0: 0}}, id="null is all"),
        pytest.param([], {}, id="none is none"),
        pytest.param([asked_for("a", 0, 7), asked_for("no", 0)], {"a": {0: SIZE}}, id="what is not there is left out"),
        pytest.param(
            [asked_for("a", 1), asked_for("a", 0, 1)], {"a": {0: SIZE, 1: 0}}, id="a topic twice is told once"
        ),
        pytest.param([asked_for("a", 7)], {}, id="a topic without such a partition is not told"),
    ],
)
def test_partitions_are_told_with_their_sizes(
    topics: list[DescribableLogDirTopic] | None, expected: dict[str, dict[int, int]]
) -> None:
    broker = VirtualBroker()
    broker.topic("a", partitions=2)
    broker.topic("b")
    broker.client().ask(produce(9, topic="a"), 9)
    assert sizes(describe(broker, topics)) == expected


@pytest.mark.parametrize("version", range(6))
def test_since_version_4_the_memory_is_told_and_what_is_left_of_it(version: int) -> None:
    broker = VirtualBroker("sluice.log.memory.bytes=1Mi")
    broker.topic()
    before = describe(broker, None, version)
    broker.client().ask(produce(9), 9)
    after = describe(broker, None, version)
    if version < 4:
        assert (before.total_bytes, before.usable_bytes, after.usable_bytes) == (-1, -1, -1)
    else:
        assert (before.total_bytes, before.usable_bytes, after.total_bytes) == (2**20, 2**20, 2**20)
        assert 2**20 - after.usable_bytes == broker.broker.cluster.logs.budget.used_bytes > 0


def test_what_is_left_is_never_less_than_nothing() -> None:
    broker = VirtualBroker("sluice.log.memory.bytes=1")
    broker.topic()
    broker.client().ask(produce(9), 9)
    assert describe(broker, None).usable_bytes == 0
