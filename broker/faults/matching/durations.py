"""Durations as people write them: "250ms", "5s", "2m", or a number of milliseconds."""

import re

from .errors import RuleProblem

Duration = str | int | float
# What a text may be, in words that JSON Schema has as well: scenarios publish it.
WRITTEN = r"^ *([0-9]+(?:\.[0-9]+)?) ?(ms|s|m) *$"

_WRITTEN = re.compile(WRITTEN)
_MS = {"ms": 1, "s": 1_000, "m": 60_000}
_LONGEST_MS = 365 * 24 * 60 * 60_000  # a year: what is longer is a slip, and the timer wants an end


def parse_ms(duration: Duration, path: str) -> float:
    """Milliseconds. Raises RuleProblem, at `path`, for what is none."""
    if isinstance(duration, str):
        written = _WRITTEN.fullmatch(duration)
        if written is None:
            raise RuleProblem(path, f"{duration!r} is no duration; write 250ms, 5s, 2m, or a number of milliseconds")
        milliseconds = float(written[1]) * _MS[written[2]]
    else:
        milliseconds = duration
    if not 0 <= milliseconds <= _LONGEST_MS:  # in this way NaN is refused, and so are integers that no float holds
        raise RuleProblem(path, f"{duration} is out of range; a duration is between 0 and a year")
    return float(milliseconds)
