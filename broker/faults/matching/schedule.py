"""How often a rule hits its matches: state machines that are called once per match, in order.

    always         every match
    times = 3      the first three
    during = "5s"  every match within five seconds of the first
    on = [1, 4]    the first and the fourth
    schedule = "3 fail, 2 pass, repeat"

`is_over` is set when no further match can be hit; then the rule is removed from its routes.
"""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

from .durations import Duration, parse_ms
from .errors import RuleProblem

_PHASE = re.compile(r"(\d{1,9}) +(fail|pass)", re.ASCII)
_REPEAT = "repeat"
_EXAMPLE = "such as '3 fail, 2 pass, repeat'"
_MOST_CALLS = 1_000_000_000


class Schedule(Protocol):
    @property
    def is_over(self) -> bool:
        """Whether no further match will be hit."""

    def hits(self, now_ms: float) -> bool:
        """Return whether to hit a match at a monotonic time."""


class Always:
    is_over = False

    def hits(self, now_ms: float) -> bool:
        return True


class Times:
    def __init__(self, times: int) -> None:
        self._left = times

    @property
    def is_over(self) -> bool:
        return not self._left

    def hits(self, now_ms: float) -> bool:
        if not self._left:
            return False
        self._left -= 1
        return True


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


class On:
    def __init__(self, calls: Sequence[int]) -> None:
        self._calls = frozenset(calls)
        self._last = max(calls)
        self._call = 0

    @property
    def is_over(self) -> bool:
        return self._call >= self._last

    def hits(self, now_ms: float) -> bool:
        self._call += 1
        return self._call in self._calls


class Phases:
    """Cycles through phases of calls that fail or pass, once or repeatedly."""

    def __init__(self, phases: Sequence[tuple[int, bool]], *, repeats: bool) -> None:
        self._ends = list(accumulate(calls for calls, _ in phases))
        self._fails = [fails for _, fails in phases]
        self._repeats = repeats
        self._call = 0

    @property
    def is_over(self) -> bool:
        return not self._repeats and self._call >= self._ends[-1]

    def hits(self, now_ms: float) -> bool:
        if self._call >= self._ends[-1]:
            if not self._repeats:
                return False
            self._call = 0
        phase = next(number for number, end in enumerate(self._ends) if self._call < end)
        self._call += 1
        return self._fails[phase]


def parse_schedule(text: str, path: str) -> Phases:
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
    return Phases(phases, repeats=repeats)


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
        return Times(times)
    if during is not None:
        duration_ms = parse_ms(during, "during")
        if not duration_ms:
            raise RuleProblem("during", f"expected more than 0, got {during}")
        return During(duration_ms)
    if on is not None:
        if not on or min(on) < 1 or max(on) > _MOST_CALLS:
            raise RuleProblem("on", f"expected numbers from 1, such as [1, 4], got {list(on)}")
        return On(on)
    return Always() if schedule is None else parse_schedule(schedule, "schedule")
