"""The last offset of each key in the dirty part of a log: Kafka's OffsetMap.

Kafka's SkimpyOffsetMap uses 24 bytes per key, a hash and the offset, up to `log.cleaner.dedupe.buffer.size`.
Dictionaries use more, but cannot mix up keys with equal hashes. There are many small ones, because the growth of a
large one would block the event loop for 40 ms.
"""

# A dictionary entry with a short key: 33 bytes and the key, 32 for the offset, about 60 for the table.
BYTES_A_KEY = 160
SHARDS = 64
SHARD_MASK = SHARDS - 1


class OffsetMap:
    """Offsets by key, for up to `most_keys` keys and records up to `latest_offset`.

    The key `k` is in `shards[hash(k) & SHARD_MASK]`.
    """

    def __init__(self, most_keys: int) -> None:
        self.most_keys = most_keys
        self.latest_offset = -1
        self.shards: tuple[dict[bytes, int], ...] = tuple({} for _ in range(SHARDS))

    def room(self) -> int:
        return self.most_keys - sum(map(len, self.shards))
