"""The size of a deviation: how many times a measured value is outside of its expected range."""

import re
from math import inf

from sluice.audit.judge.model.verdict import Verdict

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LEAST = 1e-3  # of a value that should not be zero


def size_of(verdict: Verdict) -> float:
    """Return the largest factor by which a value is too small or too large; at least 1."""
    factors = [
        _factor(float(value), verdict.expected[name])
        for name, value in verdict.measured.items()
        if name in verdict.expected and not isinstance(value, str)
    ]
    return max(factors, default=1.0)


def _factor(value: float, expected: str) -> float:
    """Return the factor to the nearest value of a range, such as `80 to 120 ms`, `at most 4` or `0`; 1 within it."""
    low, high = _range(expected)
    if value < low:
        return low / max(value, _LEAST * low)
    return value / high if value > high > 0 else 1.0


def _range(expected: str) -> tuple[float, float]:
    numbers = [float(each) for each in _NUMBER.findall(expected)]
    if not numbers:
        return 0.0, inf
    if expected.startswith(("at most", "below")):
        return 0.0, numbers[0]
    return numbers[0], inf if expected.startswith("at least") else numbers[-1]
