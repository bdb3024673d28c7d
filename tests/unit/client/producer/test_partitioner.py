from random import Random

import pytest

from sluice.client.metadata.cluster import PartitionMetadata
from sluice.client.producer.partitioner import StickyPartitioner, murmur2, partition_for_key


# The hashes that Kafka's own tests have, of ints that are signed there.
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_has_kafkas_hash(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected % 2**32
    assert partition_for_key(key, 7) == (expected & 0x7FFFFFFF) % 7


def partitions(*leaders: int) -> dict[int, PartitionMetadata]:
    return {number: PartitionMetadata(leader_id=leader) for number, leader in enumerate(leaders)}


class TestStickyPartitioner:
    def test_stays_for_a_batch_and_then_goes_on(self) -> None:
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

    def test_does_not_leave_a_batch_that_is_not_full_before_twice_as_much(self) -> None:
        partitioner = StickyPartitioner(100, Random(1))
        known = partitions(*[1] * 100)
        first = partitioner.current(known)
        partitioner.produced(199, known, may_switch=False)
        assert partitioner.current(known) == first
        partitioner.produced(1, known, may_switch=False)
        assert partitioner.current(known) != first

    def test_leaves_out_partitions_without_a_leader(self) -> None:
        partitioner = StickyPartitioner(1, Random(1))
        known = partitions(1, -1, 1)
        seen = set()
        for _ in range(50):
            seen.add(partitioner.current(known))
            partitioner.produced(1, known, may_switch=True)
        assert seen == {0, 2}

    def test_takes_one_of_them_where_none_has(self) -> None:
        assert StickyPartitioner(1, Random(1)).current(partitions(-1, -1)) in (0, 1)

    def test_prefers_those_that_few_batches_wait_for(self) -> None:
        partitioner = StickyPartitioner(1, Random(1))
        known = partitions(1, 1, 1)
        partitioner.weigh({0: 0, 1: 3, 2: 1}, 3)
        counts = [0, 0, 0]
        for _ in range(8000):
            partitioner.produced(1, known, may_switch=True)
            counts[partitioner.current(known)] += 1
        assert counts == pytest.approx([4000, 1000, 3000], rel=0.1)

    @pytest.mark.parametrize("waiting", [None, {0: 2, 1: 2}, {}], ids=str)
    def test_takes_all_alike_where_they_are(self, waiting: dict[int, int] | None) -> None:
        partitioner = StickyPartitioner(1, Random(1))
        known = partitions(1, 1)
        partitioner.weigh(waiting, 2)
        counts = [0, 0]
        for _ in range(2000):
            partitioner.produced(1, known, may_switch=True)
            counts[partitioner.current(known)] += 1
        assert counts == pytest.approx([1000, 1000], rel=0.1)
