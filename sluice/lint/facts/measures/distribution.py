"""A distribution of whole numbers in a bounded number of buckets, each at most 1/8 wider than its lower bound."""

_BITS = 3


class Distribution:
    """Counts of values >= 0; a lower value counts as 0."""

    __slots__ = ("buckets", "highest", "lowest", "total")

    def __init__(self) -> None:
        self.total = self.lowest = self.highest = 0
        self.buckets: dict[int, int] = {}

    def add(self, value: int) -> None:
        buckets = self.buckets
        if value < self.lowest or not buckets:
            self.lowest = value = max(value, 0)
        if value > self.highest:
            self.highest = value
        self.total += value
        shift = value.bit_length() - _BITS - 1
        bucket = value if shift <= 0 else (shift << _BITS) + (value >> shift)
        if bucket in buckets:
            buckets[bucket] += 1
        else:
            buckets[bucket] = 1

    @property
    def count(self) -> int:
        return sum(self.buckets.values())

    @property
    def mean(self) -> float:
        return self.total / self.count if self.buckets else 0.0

    def quantile(self, share: float) -> int:
        """Return a value at or below which this share of the values is, up to 1/8 too high; 0 without values."""
        wanted, found = share * self.count, 0
        for bucket in sorted(self.buckets):
            found += self.buckets[bucket]
            if found >= wanted:
                return max(self.lowest, min(self.highest, _upper(bucket)))
        return self.highest


def _upper(bucket: int) -> int:
    if bucket < 2 << _BITS:
        return bucket
    shift = (bucket >> _BITS) - 1
    return ((bucket - (shift << _BITS)) + 1 << shift) - 1
