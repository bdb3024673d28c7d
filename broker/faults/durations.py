"""Durations as people write them: "250ms", "5s", "2m", or a number of milliseconds."""

import re
from math import isfinite

from .errors import Problem

Duration = str | int | float

_WRITTEN = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m)", re.ASCII)
_MS = {"ms": 1, "s": 1_000, "m": 60_000}
_LONGEST_MS = 365 * 24 * 60 * 60_000  # a year: what is longer is a slip, and the timer wants an end


def parse_ms(duration: Duration, path: str) -> float:
    """Milliseconds. Raises Problem, at `path`, for what is none."""
    if isinstance(duration, str):
        written = _WRITTEN.fullmatch(duration.strip())
        if written is None:
            raise Problem(path, f"{duration!r} is no duration; write 250ms, 5s, 2m, or a number of milliseconds")
        milliseconds = float(written[1]) * _MS[written[2]]
    else:
        milliseconds = float(duration)
    if not isfinite(milliseconds) or not 0 <= milliseconds <= _LONGEST_MS:
        raise Problem(path, f"{duration} is out of range; a duration is between 0 and a year")
    return milliseconds
