from random import Random

import pytest

from sluice.client.metadata.cluster import PartitionMetadata
from sluice.client.producer.partitioner import StickyPartitioner, murmur2, partition_for_key

# The hashes of Kafka's own tests, which print signed integers.
KEY_HASHES = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


@pytest.mark.parametrize(("key", "expected"), KEY_HASHES)
def test_key_hash_equals_kafkas(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected % 2**32
    assert partition_for_key(key, 7) == (expected & 0x7FFFFFFF) % 7


def partitions(*leaders: int) -> dict[int, PartitionMetadata]:
    return {number: PartitionMetadata(leader_id=leader) for number, leader in enumerate(leaders)}


QUEUES = {
    "short queues are preferred": ({0: 0, 1: 3, 2: 1}, [4000, 1000, 3000]),
    "unknown queues are uniform": (None, [1000, 1000]),
    "equal queues are uniform": ({0: 2, 1: 2}, [1000, 1000]),
    "no queues are uniform": ({}, [1000, 1000]),
}


class TestStickyPartitioner:
    def test_partition_changes_after_a_full_batch(self) -> None:
        partitioner = StickyPartitioner(100, Random(1))
        known = partitions(1, 1, 1, 1)
        first = partitioner.current(known)
        partitioner.produced(99, known, may_switch=True)
        assert partitioner.current(known) == first
        seen = {first}
        for _ in range(50):
            partitioner.produced(100, known, may_switch=True)
            seen.add(partitioner.current(known))
        assert seen == {0, 1, 2, 3}

    def test_unfilled_batch_keeps_its_partition_up_to_twice_the_batch_size(self) -> None:
        partitioner = StickyPartitioner(100, Random(1))
        known = partitions(*[1] * 100)
        first = partitioner.current(known)
        partitioner.produced(199, known, may_switch=False)
        assert partitioner.current(known) == first
        partitioner.produced(1, known, may_switch=False)
        assert partitioner.current(known) != first

    def test_partitions_without_a_leader_are_skipped(self) -> None:
        partitioner = StickyPartitioner(1, Random(1))
        known = partitions(1, -1, 1)
        seen = set()
        for _ in range(50):
            seen.add(partitioner.current(known))
            partitioner.produced(1, known, may_switch=True)
        assert seen == {0, 2}

    def test_any_partition_is_used_if_none_has_a_leader(self) -> None:
        assert StickyPartitioner(1, Random(1)).current(partitions(-1, -1)) in (0, 1)

    @pytest.mark.parametrize(("queues", "expected"), QUEUES.values(), ids=QUEUES)
    def test_partitions_are_weighed_by_their_queues(self, queues: dict[int, int] | None, expected: list[int]) -> None:
        partitioner = StickyPartitioner(1, Random(1))
        known = partitions(*[1] * len(expected))
        partitioner.weigh(queues, len(expected))
        counts = [0] * len(expected)
        for _ in range(sum(expected)):
            partitioner.produced(1, known, may_switch=True)
            counts[partitioner.current(known)] += 1
        assert counts == pytest.approx(expected, rel=0.1)
