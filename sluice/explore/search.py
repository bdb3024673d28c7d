"""The search for failures that break a program, and its reduction.

It proposes generations of schedules, and reads their outcomes in order. A generation does not depend on its own
outcomes, so it can be divided among processes, and the findings are the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from .execution import Outcome, Schedule
from .guided import Guided
from .injection import CHANGES, KINDS
from .reduction import Found, reduced

# The first generations are small, as most failures are found soon. The largest is enough for the cores of one machine;
# in a larger one, what its first runs have reached would guide the others later.
_FIRST_GENERATION, _LARGEST_GENERATION = 2, 16
_SHOWN_PAIRS = 5

# Returns outcomes in the order of the schedules; fewer end the search.
Evaluate = Callable[[Sequence[Schedule]], Iterable[Outcome]]


class Strategy(Protocol):
    """What proposes schedules."""

    def propose(self, count: int) -> Sequence[Schedule]:
        """Return up to `count` schedules; none end the search."""

    def read(self, schedule: Schedule, outcome: Outcome) -> None:
        """Learn from a run that did not fail."""


class Result(msgspec.Struct):
    """The result of a search.

    runs: number of runs, with those of the reduction
    found: the failure, or None
    covered: number of different states of the cluster
    missed: number of runs in which a failure did not hit
    points: number of different requests at which failures were injected
    orders: number of pairs of events that were seen in both orders
    one_order: pairs of events that were seen in one order only
    """

    runs: int = 0
    found: Found | None = None
    covered: int = 0
    missed: int = 0
    points: int = 0
    orders: int = 0
    one_order: Sequence[tuple[str, str]] = ()


def coverage(result: Result) -> Iterator[str]:
    """Yield which pairs of events were seen in both orders, and examples of those that were not."""
    yield f"{result.orders} pairs of events were seen in both orders, {len(result.one_order)} in one order"
    changes = [pair for pair in result.one_order if all(map(_is_change, pair))]
    for before, after in changes[:_SHOWN_PAIRS]:
        yield f"only in this order: {before}, then {after}"


def _is_change(event: str) -> bool:
    """Whether an event is that of a group or a transaction, or a request that changes something."""
    return " is " in event or event.partition(" ")[0] in CHANGES


def search(
    evaluate: Evaluate,
    runs: int,
    seed: int,
    failures: Sequence[str] = tuple(KINDS),
    strategy: Callable[[Outcome, Sequence[str], int], Strategy] = Guided,
) -> Result:
    """Run a program up to `runs` times; return the first failure, reduced."""
    result = Result()
    states: set[int] = set()
    points: set[tuple[str, str, int]] = set()
    pairs: set[tuple[str, str]] = set()

    def run(schedules: Sequence[Schedule]) -> Iterator[tuple[Schedule, Outcome]]:
        for schedule, outcome in zip(schedules, evaluate(schedules), strict=False):
            result.runs += 1
            states.update(outcome.states)
            pairs.update(outcome.pairs)
            hit = [each for each in schedule.injections if each not in outcome.missed]
            points.update((each.client_id, each.api, each.nth) for each in hit)
            result.missed += len(hit) < len(schedule.injections)
            yield schedule, outcome

    for schedule, first in run([Schedule()]):
        if first.error:
            result.found = Found(schedule, first)
        else:
            result.found = _first_failure(strategy(first, failures, seed), run, lambda: runs - result.runs)
    result.covered, result.points = len(states), len(points)
    result.one_order = sorted(pair for pair in pairs if pair[::-1] not in pairs)
    result.orders = (len(pairs) - len(result.one_order)) // 2
    return result


def _first_failure(
    strategy: Strategy,
    run: Callable[[Sequence[Schedule]], Iterator[tuple[Schedule, Outcome]]],
    runs_left: Callable[[], int],
) -> Found | None:
    size = _FIRST_GENERATION
    while generation := strategy.propose(min(size, runs_left())):
        size = min(2 * size, _LARGEST_GENERATION)
        read = 0
        for schedule, outcome in run(generation):
            read += 1
            if outcome.error:
                return reduced(Found(schedule, outcome), run)
            strategy.read(schedule, outcome)
        if read < len(generation):
            break
    return None
