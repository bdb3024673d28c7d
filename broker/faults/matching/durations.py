"""Durations as text: "250ms", "5s", "2m", or a number of milliseconds."""

import re

from .errors import RuleProblem

Duration = str | int | float
# Valid in Python and in JSON Schema, where scenarios publish it.
WRITTEN = r"^ *([0-9]+(?:\.[0-9]+)?) ?(ms|s|m) *$"

_WRITTEN = re.compile(WRITTEN)
_MS = {"ms": 1, "s": 1_000, "m": 60_000}
_LONGEST_MS = 365 * 24 * 60 * 60_000  # a year; longer ones are mistakes, and timers are bounded


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
