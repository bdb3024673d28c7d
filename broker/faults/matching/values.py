"""Durations (250, "250ms", "5s", "2m") and rates in bytes per second (50000, "50k", "1M", "64Ki") in rules."""

import re
from math import isfinite

from sluice.config.value_types import parse_rate

Duration = str | int | float
Rate = str | int | float
_RATE = "expected 50k, 1M, 64Ki, or a number of bytes per second"
# Valid in Python and in JSON Schema, where scenarios publish it.
WRITTEN = r"^ *([0-9]+(?:\.[0-9]+)?) ?(ms|s|m) *$"

_WRITTEN = re.compile(WRITTEN)
_MS = {"ms": 1, "s": 1_000, "m": 60_000}
_LONGEST_MS = 365 * 24 * 60 * 60_000  # a year; longer ones are mistakes, and timers are bounded


class RuleProblem(ValueError):  # noqa: N818  (internal; becomes a FaultError)
    """A rule that cannot work, with the path inside the rule: `action.code`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem


def parse_ms(duration: Duration, path: str) -> float:
    if isinstance(duration, str):
        written = _WRITTEN.fullmatch(duration)
        if written is None:
            raise RuleProblem(path, f"expected 250ms, 5s, 2m, or a number of milliseconds, got {duration!r}")
        milliseconds = float(written[1]) * _MS[written[2]]
    else:
        milliseconds = duration
    if not 0 <= milliseconds <= _LONGEST_MS:  # also false for NaN, and for integers too large for a float
        raise RuleProblem(path, f"expected a duration from 0 to a year, got {duration}")
    return float(milliseconds)


def parse_positive_ms(duration: Duration, path: str) -> float:
    milliseconds = parse_ms(duration, path)
    if not milliseconds:
        raise RuleProblem(path, f"expected more than 0, got {duration}")
    return milliseconds


def parse_bytes_per_s(rate: Rate | None, path: str) -> float | None:
    if rate is None:
        return None
    try:
        bytes_per_s = parse_rate(rate) if isinstance(rate, str) else float(rate)
    except (ValueError, OverflowError):
        raise RuleProblem(path, f"{_RATE}, at least 1, got {rate!r}") from None
    if not isfinite(bytes_per_s) or bytes_per_s <= 0:
        raise RuleProblem(path, f"{_RATE}, above 0, got {rate}")
    return bytes_per_s
