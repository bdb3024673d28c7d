"""Pure chance, to compare the guided strategy with: failures of any kind, at any request of the first run."""

from collections.abc import Sequence
from random import Random

from sluice.explore.execution import Outcome, Schedule
from sluice.explore.injection import KINDS, Injection

_MOST_INJECTIONS = 2


class Chance:
    def __init__(self, first: Outcome, failures: Sequence[str], seed: int) -> None:
        self._random = Random(seed)
        self._points = {kind: [each for each in first.points if each.api in KINDS[kind].apis] for kind in failures}
        self._points = {kind: points for kind, points in self._points.items() if points}
        self._number = 0

    def propose(self, count: int) -> Sequence[Schedule]:
        return [self._schedule() for _ in range(count)]

    def read(self, schedule: Schedule, outcome: Outcome) -> None:
        """Learn nothing."""

    def _schedule(self) -> Schedule:
        self._number += 1
        count = self._random.randint(1, _MOST_INJECTIONS)
        injections = tuple(self._injection() for _ in range(count))
        return Schedule(injections, self._random.choice((0, self._number)))

    def _injection(self) -> Injection:
        kind = self._random.choice([*self._points])
        point = self._random.choice(self._points[kind])
        return Injection(kind, point.client_id, point.api, point.nth)
