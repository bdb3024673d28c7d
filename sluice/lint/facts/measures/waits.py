"""Waits before retries, in rows: one row per streak of failures, as `sluice.audit.judge.fit` reads them."""

from collections.abc import Sequence
from random import Random  # noqa: TID251  (seeded: the same waits give the same fit)
from statistics import median
from typing import NamedTuple

from sluice.audit.judge.fit import CONSTANT, fit
from sluice.journal_events import Event

from .distribution import Distribution
from .examples import Examples

# The bounds of `fit`; more waits decide nothing.
_LONGEST_ROW, _MOST_ROWS = 40, 64
# A client whose first attempts are not in the journal may wait for its maximum each time. Shorter waits are no maximum:
# this is half of Kafka's default (retry.backoff.max.ms and reconnect.backoff.max.ms: 1000).
_BELOW_MAXIMUM_US = 500_000
# A wait this many times the last one is a pause between two streaks.
_PAUSE, _LEAST_PAUSE_US = 8, 1_000_000
# Waits double twice within three of them. The audit decides by as many steps (growth.py).
_LEAST_STEPS, _LEAST_WAITS = 3, 6
_SURELY = 0.7  # share of the resamples of the waits that must agree
# After five failures in a row, waits that double are 32 times as long as the first. Scheduling alters shorter ones too
# much for a fit.
_LATE_FROM, _TIGHT_MS, _MOSTLY = 5, 20.0, 0.9
_STEPS = 8  # Kafka's default backoff reaches its maximum after five waits
# A wait that doubles twice, with any jitter of Kafka's or librdkafka's, is then at least twice as long as the first.
_GROWN, _LEAST_ROWS = 1.5, 4
_NS_PER_US, _US_PER_MS = 1000, 1000


class Constant(NamedTuple):
    """Waits that do not grow."""

    base_ms: float
    waits: int


class Row:
    """The waits of one streak of failures.

    before_ns: time of the last event of the client before the streak; 0 if there was none
    first_ns: end of the first attempt
    """

    __slots__ = ("before_ns", "first_ns", "waits_us")

    def __init__(self, before_ns: int, first_ns: int) -> None:
        self.before_ns, self.first_ns = before_ns, first_ns
        self.waits_us: list[int] = []

    @property
    def is_whole(self) -> bool:
        """Whether no attempt preceded the first one in this row."""
        longest_us = max(self.waits_us)
        # An earlier attempt would be in the journal.
        is_seen = 0 < self.before_ns < self.first_ns - 2 * longest_us * _NS_PER_US
        return is_seen or longest_us < _BELOW_MAXIMUM_US


class Rows:
    """The rows of one kind of attempts.

    steps: waits in us before the first, second ... retry in a row
    examples: attempts after the third failure in a row
    """

    __slots__ = ("_rows", "examples", "steps")

    def __init__(self) -> None:
        self.steps: list[Distribution] = []
        self.examples = Examples()
        self._rows: list[Row] = []

    def add(self, row: Row, waited_us: int, event: Event) -> Row:
        """Add a wait, and return the row of the next one."""
        waits = row.waits_us
        if waits and waited_us > max(_PAUSE * waits[-1], _LEAST_PAUSE_US):
            return Row(row.first_ns, event.at_ns)
        number = len(waits)
        if number < _LONGEST_ROW:
            waits.append(waited_us)
        if number < _STEPS:
            if number == len(self.steps):
                self.steps.append(Distribution())
            self.steps[number].add(waited_us)
        if number + 1 == _LEAST_STEPS and len(self._rows) < _MOST_ROWS:
            self._rows.append(row)
        if number + 1 >= _LEAST_STEPS:
            self.examples.note(event)
        return row

    def constant(self) -> Constant | None:
        """Return how long the client waits each time if its waits certainly do not grow."""
        rows = [[waited_us / _US_PER_MS for waited_us in row.waits_us] for row in self._rows if row.is_whole]
        waits = sum(map(len, rows))
        if waits < _LEAST_WAITS:
            return None
        late = [waited_ms for row in rows for waited_ms in row[_LATE_FROM:]]
        if len(late) >= _LEAST_WAITS and sum(waited_ms < _TIGHT_MS for waited_ms in late) >= _MOSTLY * len(late):
            return Constant(median(late), waits)
        if _stays_short(rows):
            return Constant(median(waited_ms for row in rows for waited_ms in row), waits)
        found = fit(rows, Random(waits))  # noqa: S311  (resampling needs no secure randomness)
        if found is None or found.model != CONSTANT or found.confidence < _SURELY:
            return None
        return Constant(found.base_ms, waits)


def _stays_short(rows: Sequence[Sequence[float]]) -> bool:
    """Return whether the third wait is hardly longer than the first in nearly all rows."""
    short = sum(row[_LEAST_STEPS - 1] < _GROWN * row[0] for row in rows)
    return len(rows) >= _LEAST_ROWS and short >= _MOSTLY * len(rows)
