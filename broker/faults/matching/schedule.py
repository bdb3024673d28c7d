"""How often a rule hits its matches: state machines that are called once per match, in order.

    always         every match
    times = 3      the first three
    during = "5s"  every match within five seconds of the first
    on = [1, 4]    the first and the fourth
    schedule = "3 fail, 2 pass, repeat"

`is_over` is set when no further match can be hit; then the rule is removed from its routes.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import inf

from .values import Duration, RuleProblem, parse_positive_ms

_PHASE = re.compile(r"(\d{1,9}) +(fail|pass)", re.ASCII)
_REPEAT = "repeat"
_EXAMPLE = "such as '3 fail, 2 pass, repeat'"
_MOST_CALLS = 1_000_000_000


class Calls:
    """Hits the calls whose number (the first is 1) satisfies `is_hit`, up to the last one."""

    def __init__(self, is_hit: Callable[[int], bool] = lambda _: True, last: float = inf) -> None:
        self._is_hit = is_hit
        self._last = last
        self._call = 0

    @property
    def is_over(self) -> bool:
        return self._call >= self._last

    def hits(self, now_ms: float) -> bool:
        """Return whether to hit a match at a monotonic time."""
        self._call += 1
        return self._call <= self._last and self._is_hit(self._call)


class During:
    def __init__(self, duration_ms: float) -> None:
        self.is_over = False
        self._duration_ms = duration_ms
        self._until_ms: float | None = None

    def hits(self, now_ms: float) -> bool:
        if self._until_ms is None:
            self._until_ms = now_ms + self._duration_ms
        self.is_over = now_ms >= self._until_ms
        return not self.is_over


Schedule = Calls | During


def _phases(text: str, path: str) -> Calls:
    words = [word.strip() for word in text.split(",")]
    repeats = words[-1] == _REPEAT
    if _REPEAT in words[:-1]:
        raise RuleProblem(path, f"expected 'repeat' only at the end, {_EXAMPLE}, got {text!r}")
    phases: list[tuple[int, bool]] = []
    for word in words[:-1] if repeats else words:
        phase = _PHASE.fullmatch(word)
        if phase is None:
            raise RuleProblem(path, f"expected 'N fail', 'N pass' or, last, 'repeat', {_EXAMPLE}, got {word!r}")
        if not 1 <= int(phase[1]) <= _MOST_CALLS:
            raise RuleProblem(path, f"expected a phase of 1 to {_MOST_CALLS:,} calls, {_EXAMPLE}, got {word!r}")
        phases.append((int(phase[1]), phase[2] == "fail"))
    if not any(fails for _, fails in phases):
        raise RuleProblem(path, f"expected a phase that fails, {_EXAMPLE}, got {text!r}")
    if repeats and all(fails for _, fails in phases):
        raise RuleProblem(path, f"expected a phase that passes, {_EXAMPLE}, got {text!r}. Omit it to hit always")
    ends = [*accumulate(calls for calls, _ in phases)]

    def is_hit(call: int) -> bool:
        return phases[bisect_right(ends, (call - 1) % ends[-1])][1]

    return Calls(is_hit, inf if repeats else ends[-1])


def new_schedule(
    times: int | None, during: Duration | None, on: Sequence[int] | None, schedule: str | None
) -> Schedule:
    """Raise RuleProblem for an invalid schedule, or several."""
    given = [
        name
        for name, value in (("times", times), ("during", during), ("on", on), ("schedule", schedule))
        if value is not None
    ]
    if len(given) > 1:
        raise RuleProblem(given[1], f"expected at most one of times, during, on, schedule, got {' and '.join(given)}")
    if times is not None:
        if times < 1:
            raise RuleProblem("times", f"expected 1 or more, got {times}")
        return Calls(last=times)
    if during is not None:
        return During(parse_positive_ms(during, "during"))
    if on is not None:
        if not on or min(on) < 1 or max(on) > _MOST_CALLS:
            raise RuleProblem("on", f"expected numbers from 1, such as [1, 4], got {list(on)}")
        return Calls(frozenset(on).__contains__, max(on))
    return Calls() if schedule is None else _phases(schedule, "schedule")
