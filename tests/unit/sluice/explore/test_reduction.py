"""The reduction of a failing run."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from sluice.explore.execution import Outcome, Schedule
from sluice.explore.injection import Injection
from sluice.explore.reduction import Found, reduced

KILL, SLOW, LOST = (Injection(kind, "shop", "Fetch", 3) for kind in ("kill-after", "slow", "response-lost"))
FIRST = Injection("kill-after", "shop", "Fetch", 1)


def kinds(schedule: Schedule) -> set[str]:
    return {each.kind for each in schedule.injections}


# A program: the schedules that break it, the one that was found, and the smallest.
PROGRAMS: dict[str, tuple[Callable[[Schedule], bool], Schedule, Schedule]] = {
    "one failure of three": (
        lambda schedule: "kill-after" in kinds(schedule),
        Schedule((SLOW, KILL, LOST), 7),
        Schedule((FIRST,)),
    ),
    "two failures": (
        lambda schedule: kinds(schedule) >= {"kill-after", "slow"},
        Schedule((SLOW, KILL, LOST)),
        Schedule((Injection("slow", "shop", "Fetch", 1), FIRST)),
    ),
    "another order": (lambda schedule: schedule.order == 7, Schedule((KILL,), 7), Schedule((), 7)),
    "a later request": (lambda schedule: KILL in schedule.injections, Schedule((KILL,)), Schedule((KILL,))),
    "a smaller size": (
        lambda schedule: bool(schedule.injections) and dict(schedule.sizes).get("records", 20) >= 5,
        Schedule((FIRST,)),
        Schedule((FIRST,), sizes=(("records", 5),)),
    ),
}


def outcome_of(schedule: Schedule, *, is_broken: bool) -> Outcome:
    size = dict(schedule.sizes).get("records", 20)
    return Outcome("AtLeastOnce: lost" if is_broken else "", sizes={"records": size})


@pytest.mark.parametrize(("breaks", "found", "smallest"), PROGRAMS.values(), ids=PROGRAMS)
def test_reduction(breaks: Callable[[Schedule], bool], found: Schedule, smallest: Schedule) -> None:
    ran = 0

    def run(schedules: Sequence[Schedule]) -> Iterator[tuple[Schedule, Outcome]]:
        nonlocal ran
        for schedule in schedules:
            ran += 1
            yield schedule, outcome_of(schedule, is_broken=breaks(schedule))

    result = reduced(Found(found, outcome_of(found, is_broken=True)), run).schedule
    if not smallest.sizes:
        result = Schedule(result.injections, result.order)
    assert result == smallest
    assert ran <= 40


OTHER_OUTCOMES = {"another error": Outcome("InOrder: another"), "a miss": Outcome("AtLeastOnce: lost", [KILL])}


@pytest.mark.parametrize("smaller", OTHER_OUTCOMES.values(), ids=OTHER_OUTCOMES)
def test_other_outcomes_are_not_smaller(smaller: Outcome) -> None:
    found = Found(Schedule((SLOW, KILL)), Outcome("AtLeastOnce: lost"))
    assert reduced(found, lambda schedules: ((each, smaller) for each in schedules)) == found


def test_failures_that_miss_are_left_out_together() -> None:
    found = Found(Schedule((KILL, SLOW, LOST)), Outcome("AtLeastOnce: lost", [SLOW, LOST]))

    def run(schedules: Sequence[Schedule]) -> Iterator[tuple[Schedule, Outcome]]:
        for schedule in schedules:
            missed = [each for each in schedule.injections if each.kind != "kill-after"]
            yield schedule, Outcome("AtLeastOnce: lost" if "kill-after" in kinds(schedule) else "", missed)

    assert reduced(found, run).schedule == Schedule((FIRST,))
