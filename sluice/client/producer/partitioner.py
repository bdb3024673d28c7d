"""The default partitioner (Kafka's BuiltInPartitioner; KIP-480, KIP-794).

A key's partition is the 32-bit murmur2 hash of its bytes, without the sign, modulo the number of partitions.

Records without a key stick to one partition until `batch.size` bytes are produced to it; then the next one is drawn.
The switch waits until the open batch is full, at most for another `batch.size` bytes. With
`partitioner.adaptive.partitioning.enable`, the draw prefers short queues: with 0, 3 and 1 queued batches, the
probabilities are 4/8, 1/8 and 3/8.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from random import Random  # noqa: TID251  (the type of an argument; nothing is drawn from the module)

from sluice.client.metadata.cluster import NO_LEADER, Partitions

_SEED, _MULTIPLIER, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def murmur2(data: bytes) -> int:
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
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitioner:
    def __init__(self, batch_size: int, random: Random) -> None:
        self._batch_size = batch_size
        self._random = random
        self._current = -1
        self._produced_bytes = 0
        self._chances: tuple[Sequence[int], Sequence[int]] | None = None  # cumulative weights, and their partitions

    def current(self, partitions: Partitions) -> int:
        if self._current < 0 or self._current not in partitions:
            self._switch_partition(partitions)
        return self._current

    def produced(self, size: int, partitions: Partitions, *, may_switch: bool) -> None:
        """Count bytes for the current partition. `may_switch`: it has no open batch."""
        self._produced_bytes += size
        if (self._produced_bytes >= self._batch_size and may_switch) or self._produced_bytes >= 2 * self._batch_size:
            self._switch_partition(partitions)

    def weigh(self, queued: Mapping[int, int] | None, of_partitions: int) -> None:
        """Set the queue lengths of the available partitions; None for equal weights."""
        alike = queued is None or (len(queued) == of_partitions and len(set(queued.values())) == 1)
        if queued is None or alike or not queued or of_partitions < 2:
            self._chances = None
            return
        most = max(queued.values()) + 1
        self._chances = tuple(accumulate(most - each for each in queued.values())), tuple(queued)

    def _switch_partition(self, partitions: Partitions) -> None:
        self._produced_bytes = 0
        if self._chances is not None:
            sums, numbers = self._chances
            self._current = numbers[bisect_right(sums, self._random.randrange(sums[-1]))]
            return
        led = [number for number, partition in partitions.items() if partition.leader_id != NO_LEADER]
        self._current = self._random.choice(led or list(partitions))
