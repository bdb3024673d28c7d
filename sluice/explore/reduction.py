"""The reduction of a failing run: fewer failures, asyncio's order, earlier requests, and smaller sizes."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from .execution import Outcome, Schedule

_MOST_RUNS = 40


class Found(msgspec.Struct):
    """A schedule that breaks the program, and its outcome."""

    schedule: Schedule
    outcome: Outcome


def reduced(found: Found, run: Callable[[Sequence[Schedule]], Iterator[tuple[Schedule, Outcome]]]) -> Found:
    """Return the smallest failure that a few runs find: with an error of the same kind, and failures that all hit."""
    tried = {found.schedule, Schedule()}
    smaller: Found | None = found
    while smaller is not None:
        found, smaller = smaller, None
        candidates = [each for each in dict.fromkeys(_smaller(found)) if each not in tried]
        for schedule, outcome in run(candidates[: max(0, _MOST_RUNS - len(tried))]):
            tried.add(schedule)
            if _kind(outcome) == _kind(found.outcome) and not outcome.missed:
                smaller = Found(schedule, outcome)
                break
    return found


def _kind(outcome: Outcome) -> str:
    return outcome.error.partition(":")[0]


def _smaller(found: Found) -> Iterator[Schedule]:
    schedule, replace = found.schedule, msgspec.structs.replace
    injections = schedule.injections
    if found.outcome.missed:
        yield replace(schedule, injections=tuple(each for each in injections if each not in found.outcome.missed))
    for left_out in range(len(injections)):
        yield replace(schedule, injections=injections[:left_out] + injections[left_out + 1 :])
    if schedule.order:
        yield replace(schedule, order=0)
    for place, injection in enumerate(injections):
        if injection.nth > 1:
            first = replace(injection, nth=1)
            yield replace(schedule, injections=(*injections[:place], first, *injections[place + 1 :]))
    for name, size in found.outcome.sizes.items():
        for less in dict.fromkeys((1, 2, size // 2, size - 1)):
            if 0 < less < size:
                sizes = dict(schedule.sizes) | {name: less}
                yield replace(schedule, sizes=tuple(sorted(sizes.items())))
