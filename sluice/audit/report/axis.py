"""Axes of plots: mapping of values to coordinates, and ticks."""

from math import ceil, floor, log10
from typing import NamedTuple

WIDE = 30.0
_MOST_TICKS = 6


class Axis(NamedTuple):
    """Values from `low` to `high` at coordinates from `start` to `end`, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool

    def at(self, value: float) -> float:
        kept = min(max(value, self.low), self.high)
        if self.is_log:
            share = log10(kept / self.low) / log10(self.high / self.low)
        else:
            share = (kept - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        return _log_ticks(self.low, self.high) if self.is_log else _linear_ticks(self.low, self.high)


def axis_of(values: list[float], start: float, end: float) -> Axis:
    positive = [value for value in values if value > 0]
    high = max(positive, default=1.0)
    low = min(positive, default=1.0)
    if high / low > WIDE:
        return Axis(low / 1.25, high * 1.25, start, end, is_log=True)
    return Axis(0.0, high * 1.08, start, end, is_log=False)


def _linear_ticks(low: float, high: float) -> list[float]:
    step = _round_step((high - low) / _MOST_TICKS)
    first = ceil(low / step)
    return [number * step for number in range(first, floor(high / step) + 1)]


def _round_step(least: float) -> float:
    power = 10.0 ** floor(log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least)


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [digit * 10.0**power for power in powers for digit in digits if low <= digit * 10.0**power <= high]
        if len(found) <= _MOST_TICKS:
            return found
    return found[:: ceil(len(found) / _MOST_TICKS)]
