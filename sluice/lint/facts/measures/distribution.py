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

    def share_up_to(self, value: int) -> float:
        """Return the share of values in the buckets up to that of `value`; 0 without values."""
        if not self.buckets:
            return 0.0
        return sum(count for bucket, count in self.buckets.items() if _upper(bucket) <= _upper_of(value)) / self.count


def _upper_of(value: int) -> int:
    shift = value.bit_length() - _BITS - 1
    return value if shift <= 0 else ((value >> shift) + 1 << shift) - 1


def _upper(bucket: int) -> int:
    if bucket < 2 << _BITS:
        return bucket
    shift = (bucket >> _BITS) - 1
    return ((bucket - (shift << _BITS)) + 1 << shift) - 1
