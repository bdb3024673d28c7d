"""The order in which Kafka returns what it keeps in a `java.util.HashMap`."""

from collections.abc import Callable, Iterable
from typing import TypeVar

_Item = TypeVar("_Item")

_LEAST_BUCKETS = 16
_LOAD_FACTOR = 0.75
_MASK = 0xFFFF_FFFF


def in_hash_map_order(items: Iterable[_Item], hash_of: Callable[[_Item], int]) -> list[_Item]:
    """Return items, in the order of their insertion, by the buckets of a map that never had more of them."""
    found = list(items)
    buckets = _LEAST_BUCKETS
    while len(found) > buckets * _LOAD_FACTOR:
        buckets *= 2

    def bucket(item: _Item) -> int:
        hash_code = hash_of(item) & _MASK
        return (hash_code ^ hash_code >> 16) & (buckets - 1)

    return sorted(found, key=bucket)


def long_hash(value: int) -> int:
    """Return the hash code of a `Long`."""
    return (value ^ (value & 0xFFFF_FFFF_FFFF_FFFF) >> 32) & _MASK


def topic_partition_hash(topic: str, partition: int) -> int:
    """Return the hash code of a `TopicPartition`."""
    text = 0
    for character in topic.encode("ascii"):  # as the names of topics are
        text = text * 31 + character & _MASK
    return (31 + partition) * 31 + text & _MASK
