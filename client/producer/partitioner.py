"""Which partition a record goes to, where nobody says: by its key, or, without one, where the last went, until that has
got a batch's worth. Follows Kafka's BuiltInPartitioner (KIP-480, KIP-794).

A key's partition is the 32-bit murmur2 hash of its bytes, without the sign, modulo the number of partitions: the same
in every Kafka client, so records of one key stay together whoever sends them.

Without a key, partitions are taken in turns of `batch.size` bytes, the next drawn at random. A turn does not end amidst
a batch that is not full, unless it has lasted for twice as much. With `partitioner.adaptive.partitioning.enable` the
draw is weighted by the batches that wait for each partition: of 0, 3 and 1 waiting, the chances are 4, 1 and 3 in 8.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)

from sluice.client.metadata.cluster import NO_LEADER, Partitions

_SEED, _MULTIPLIER, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash of `data`, from 0 to 2**32 - 1, as Kafka computes it."""
    size = len(data)
    value = _SEED ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        value = value * _MULTIPLIER & _MASK ^ word
    if size > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15


def partition_for_key(key: bytes, partitions: int) -> int:
    """Where a record with this key goes, of so many partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitioner:
    """The turns of one topic's records without keys."""

    __slots__ = ("_batch_size", "_chances", "_current", "_produced_bytes", "_random")

    def __init__(self, batch_size: int, random: Random) -> None:
        self._batch_size = batch_size
        self._random = random
        self._current = -1  # none yet
        self._produced_bytes = 0
        self._chances: tuple[Sequence[int], Sequence[int]] | None = None  # running sums, and their partitions

    def current(self, partitions: Partitions) -> int:
        """Where records go now."""
        if self._current < 0 or self._current not in partitions:
            self._switch_partition(partitions)
        return self._current

    def produced(self, size: int, partitions: Partitions, *, may_switch: bool) -> None:
        """So many bytes went to the current partition. `may_switch`: it has no batch that could take more."""
        self._produced_bytes += size
        if (self._produced_bytes >= self._batch_size and may_switch) or self._produced_bytes >= 2 * self._batch_size:
            self._switch_partition(partitions)

    def weigh(self, waiting: Mapping[int, int] | None, of_partitions: int) -> None:
        """Takes how many batches wait for each partition that may be drawn, of so many; None: all are alike."""
        alike = waiting is None or (len(waiting) == of_partitions and len(set(waiting.values())) == 1)
        if waiting is None or alike or not waiting or of_partitions < 2:
            self._chances = None
            return
        most = max(waiting.values()) + 1
        self._chances = tuple(accumulate(most - each for each in waiting.values())), tuple(waiting)

    def _switch_partition(self, partitions: Partitions) -> None:
        self._produced_bytes = 0
        if self._chances is not None:
            sums, numbers = self._chances
            self._current = numbers[bisect_right(sums, self._random.randrange(sums[-1]))]
            return
        led = [number for number, partition in partitions.items() if partition.leader_id != NO_LEADER]
        self._current = self._random.choice(led or list(partitions))
