"""DescribeLogDirs: one in-memory directory with partition sizes, and total and usable bytes from version 4."""

from typing import Any

import pytest

from sluice.protocol.apis.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.support.records import batch, produce
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

SIZE = len(batch())


def describable(name: str, *indexes: int) -> DescribableLogDirTopic:
    return DescribableLogDirTopic(topic=name, partitions=list(indexes))


def describe(broker: VirtualBroker, topics: list[DescribableLogDirTopic] | None, version: int = 5) -> Any:
    response = broker.client().call(DescribeLogDirsRequest(topics=topics), version)
    assert response.error_code == 0
    (result,) = response.results
    assert (result.error_code, result.log_dir, result.is_cordoned) == (0, "memory", False)
    return result


def sizes(result: Any) -> dict[str, dict[int, int]]:
    assert all(
        (item.offset_lag, item.is_future_key) == (0, False) for topic in result.topics for item in topic.partitions
    )
    return {
        topic.name: {item.partition_index: item.partition_size for item in topic.partitions} for topic in result.topics
    }


SIZES = {
    "null requests all topics": (None, {"a": {0: SIZE, 1: 0}, "b": {0: 0}}),
    "empty list": ([], {}),
    "unknown items are omitted": ([describable("a", 0, 7), describable("no", 0)], {"a": {0: SIZE}}),
    "duplicate topic": ([describable("a", 1), describable("a", 0, 1)], {"a": {0: SIZE, 1: 0}}),
    "topic without a known partition is omitted": ([describable("a", 7)], {}),
}


@pytest.mark.parametrize(("topics", "expected"), SIZES.values(), ids=SIZES)
def test_partition_sizes_are_returned(
    broker: VirtualBroker, topics: list[DescribableLogDirTopic] | None, expected: dict[str, dict[int, int]]
) -> None:
    broker.topic("a", partitions=2)
    broker.topic("b")
    broker.client().call(produce(9, topic="a"), 9)
    assert sizes(describe(broker, topics)) == expected


@pytest.mark.parametrize("version", range(6))
def test_total_and_usable_bytes_are_returned_from_version_4(version: int) -> None:
    broker = broker_with_topic("sluice.log.memory.bytes=1Mi")
    before = describe(broker, None, version)
    broker.client().call(produce(9), 9)
    after = describe(broker, None, version)
    if version < 4:
        assert (before.total_bytes, before.usable_bytes, after.usable_bytes) == (-1, -1, -1)
    else:
        assert (before.total_bytes, before.usable_bytes, after.total_bytes) == (2**20, 2**20, 2**20)
        assert 2**20 - after.usable_bytes == broker.broker.cluster.logs.budget.used_bytes > 0


def test_usable_bytes_are_never_negative() -> None:
    broker = broker_with_topic("sluice.log.memory.bytes=1")
    broker.client().call(produce(9), 9)
    assert describe(broker, None).usable_bytes == 0
