"""The last offset of each key in the part of a log that is being cleaned: Kafka's OffsetMap.

Kafka's SkimpyOffsetMap keeps 24 bytes a key, a hash and the offset, and so many of them as fit into
`log.cleaner.dedupe.buffer.size`. Dictionaries take more and know the keys themselves, so that no two are confused.
There are many small ones: one large one would stop the event loop for 40 ms when it grows beyond 700,000 keys.
"""

# What an entry of a dictionary takes with a short key: 33 bytes and the key, 32 of the offset, about 60 of the table.
BYTES_A_KEY = 160
SHARDS = 64
SHARD_MASK = SHARDS - 1


class OffsetMap:
    """Offsets by key, of at most `most_keys` keys, for records up to `latest_offset`.

    The key `k` is in `shards[hash(k) & SHARD_MASK]`.
    """

    __slots__ = ("latest_offset", "most_keys", "shards")

    def __init__(self, most_keys: int) -> None:
        self.most_keys = most_keys
        self.latest_offset = -1
        self.shards: tuple[dict[bytes, int], ...] = tuple({} for _ in range(SHARDS))

    def room(self) -> int:
        """How many keys more it may hold."""
        return self.most_keys - sum(map(len, self.shards))
