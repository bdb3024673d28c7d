"""The order of Java's hash maps."""

import pytest

from sluice.broker.handlers.java_hash_map import in_hash_map_order, long_hash, topic_partition_hash

HASHES = {
    "empty": ([], []),
    "by bucket": ([3, 1, 2], [1, 2, 3]),
    "by insertion within one of 16 buckets": ([17, 33, 1, 16], [16, 17, 33, 1]),
    "a map of 13 has 32 buckets": ([*range(16, 28), 1], [1, *range(16, 28)]),
    "the high bits count": ([0x10000, 0, 0x20000], [0, 0x10000, 0x20000]),
}


@pytest.mark.parametrize(("hashes", "expected"), HASHES.values(), ids=HASHES)
def test_items_are_ordered_by_bucket(hashes: list[int], expected: list[int]) -> None:
    assert in_hash_map_order(hashes, lambda value: value) == expected


def test_hash_codes_are_those_of_java() -> None:
    assert topic_partition_hash("__consumer_offsets", 48) == -970368920 & 0xFFFF_FFFF
    assert (long_hash(5), long_hash(5 + 2**32), long_hash(-1)) == (5, 4, 0)
