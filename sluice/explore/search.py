"""The search for failures that break a program, and its reduction.

It proposes generations of schedules, and reads their outcomes in order. A generation does not depend on its own
outcomes, so it can be divided among processes, and the findings are the same.

The first run has no failures. Its requests are the points at which failures are injected: first each alone, those at
requests that change something first, then pairs, where a run that has covered something new is varied again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random  # noqa: TID251  (the search's single source of randomness)

import msgspec

from .execution import Outcome, Schedule
from .injection import CHANGES, KINDS, Injection

# Later requests to the same API rarely behave differently.
_FIRST, _MOST_PER_API = 3, 5
_ORDERS = 4  # one of so many pairs is tried in another order of events
# Enough for the cores of one machine; in a larger one, what its first runs have covered would guide the others later.
_GENERATION = 16

# Returns outcomes in the order of the schedules; fewer end the search.
Evaluate = Callable[[Sequence[Schedule]], Iterable[Outcome]]


class Found(msgspec.Struct):
    """A schedule that breaks the program, reduced, and its outcome."""

    schedule: Schedule
    outcome: Outcome


class Result(msgspec.Struct):
    """The result of a search.

    runs: number of runs, with those of the reduction
    found: the failure, or None
    covered: number of different steps that followed each other
    missed: number of runs in which a failure did not hit
    points: number of different requests at which failures were injected
    """

    runs: int = 0
    found: Found | None = None
    covered: int = 0
    missed: int = 0
    points: int = 0


def search(evaluate: Evaluate, runs: int, seed: int) -> Result:
    """Run a program up to `runs` times; return the first failure, reduced to the fewest injections."""
    result = Result()
    covered: set[tuple[str, object, object]] = set()
    points: set[tuple[str, str, int]] = set()

    def run(schedules: Sequence[Schedule]) -> Iterator[tuple[Schedule, Outcome]]:
        for schedule, outcome in zip(schedules, evaluate(schedules), strict=False):
            result.runs += 1
            yield schedule, outcome

    corpus: list[tuple[Schedule, Outcome]] = []
    for schedule, first in run([Schedule()]):
        covered |= first.covered
        corpus.append((schedule, first))
        if first.error:
            result.found = Found(schedule, first)
    if not corpus or result.found is not None:
        return result
    schedules = _schedules(corpus, Random(seed))  # noqa: S311  (repeatable on purpose)
    while result.found is None and (generation := list(islice(schedules, min(_GENERATION, runs - result.runs)))):
        read = 0
        for schedule, outcome in run(generation):
            read += 1
            points.update((each.client_id, each.api, each.nth) for each in schedule.injections)
            result.missed += bool(outcome.missed)
            if outcome.error:
                result.found = _reduced(Found(schedule, outcome), run)
                break
            if not outcome.covered <= covered:
                covered |= outcome.covered
                corpus.append((schedule, outcome))
        if read < len(generation):
            break
    result.covered, result.points = len(covered), len(points)
    return result


def _schedules(corpus: list[tuple[Schedule, Outcome]], random: Random) -> Iterator[Schedule]:
    """Yield schedules without end; `corpus` grows meanwhile."""
    tried: set[Schedule] = set()
    for injection in _injections(corpus[0][1].requests, random):
        schedule = Schedule((injection,))
        tried.add(schedule)
        yield schedule
    number = 0
    while True:
        number += 1
        base, outcome = random.choice(corpus)
        kept = base.injections[-1:] if base.injections else ()
        more = list(_injections(outcome.requests, random))
        if not more:
            schedule = Schedule(kept, order=number)
        else:
            order = number if number % _ORDERS == 0 else 0
            schedule = Schedule(tuple(sorted({*kept, random.choice(more)})), order)
        if schedule not in tried or schedule.order:
            tried.add(schedule)
            yield schedule


def _injections(requests: Mapping[tuple[str, str], int], random: Random) -> Iterator[Injection]:
    """Yield an injection of each kind at several requests, those at changes first, else in random order."""
    found = [
        Injection(name, client_id, api, nth)
        for (client_id, api), count in requests.items()
        for name, kind in KINDS.items()
        if api in kind.apis
        for nth in _numbers(count)
    ]
    random.shuffle(found)
    yield from sorted(found, key=lambda each: each.api not in CHANGES)


def _numbers(count: int) -> list[int]:
    """Return the first numbers up to `count`, the middle one, and the last one."""
    return sorted({*range(1, min(_FIRST, count) + 1), (count + 1) // 2, count})[:_MOST_PER_API]


def _reduced(found: Found, run: Callable[[Sequence[Schedule]], Iterator[tuple[Schedule, Outcome]]]) -> Found:
    """Return the failure with as few injections as possible, in the default order, at requests as early as possible."""
    smaller: Found | None = found
    while smaller is not None:
        found = smaller
        outcomes = run(list(_smaller(found.schedule)))
        smaller = next((Found(*each) for each in outcomes if each[1].error and not each[1].missed), None)
    return found


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    injections = schedule.injections
    for left_out in range(len(injections)):
        yield Schedule(injections[:left_out] + injections[left_out + 1 :], schedule.order)
    if schedule.order:
        yield Schedule(injections)
    for place, injection in enumerate(injections):
        if injection.nth > 1:
            first = msgspec.structs.replace(injection, nth=1)
            yield Schedule((*injections[:place], first, *injections[place + 1 :]), schedule.order)
