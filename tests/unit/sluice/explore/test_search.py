"""The search, with outcomes without a program, and its coverage."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from sluice.explore.execution import Outcome, Schedule
from sluice.explore.history import Point
from sluice.explore.search import Result, coverage, search

POINTS = [Point("shop", "OffsetCommit", 1, "Fetch", 1, frozenset({"application"}), 1, 0.0)]
KILL = "kill-after"
NEVER = 10**9


def evaluating(
    fails: Callable[[Schedule], bool], most: int = NEVER
) -> Callable[[Sequence[Schedule]], Iterator[Outcome]]:
    """Return a function that evaluates up to `most` schedules."""
    ran = 0

    def evaluate(schedules: Sequence[Schedule]) -> Iterator[Outcome]:
        nonlocal ran
        for schedule in schedules:
            if ran == most:
                return
            ran += 1
            pairs = frozenset({("a", "b"), ("b", "a")} if ran > 1 else {("a", "b"), ("c", "d")})
            yield Outcome(
                "AtLeastOnce: lost" if fails(schedule) else "", points=POINTS, states=frozenset({ran}), pairs=pairs
            )

    return evaluate


def has_kill(schedule: Schedule) -> bool:
    return any(each.kind == KILL for each in schedule.injections)


def test_failure_is_found_and_reduced() -> None:
    result = search(evaluating(has_kill), 100, seed=0)
    assert result.found is not None
    assert [each.kind for each in result.found.schedule.injections] == [KILL]
    assert result.points == 1


def test_first_run_that_fails_needs_no_failure() -> None:
    result = search(evaluating(lambda schedule: True), 100, seed=0)
    assert (result.runs, result.found and result.found.schedule) == (1, Schedule())


@pytest.mark.parametrize(("runs", "most", "expected"), [(50, NEVER, 50), (50, 20, 20), (50, 0, 0)])
def test_search_ends_after_its_runs_or_with_its_evaluation(runs: int, most: int, expected: int) -> None:
    result = search(evaluating(lambda schedule: False, most), runs, seed=0, failures=["slow"])
    assert (result.runs, result.found, result.covered) == (expected, None, expected)


def test_generations_grow() -> None:
    evaluate, sizes = evaluating(lambda schedule: False), list[int]()

    def counted(schedules: Sequence[Schedule]) -> Iterator[Outcome]:
        sizes.append(len(schedules))
        return evaluate(schedules)

    search(counted, 50, seed=0, failures=["slow"])
    assert sizes == [1, 2, 4, 8, 16, 16, 3]


def test_pairs_of_events_are_counted() -> None:
    result = search(evaluating(lambda schedule: False), 5, seed=0)
    assert (result.orders, result.one_order) == (1, [("c", "d")])


def test_coverage_names_pairs_that_change_something() -> None:
    pairs = [("Metadata of a", "Fetch of b"), ("Produce of a", "group b is Stable"), ("Produce of a", "Fetch of b")]
    assert [*coverage(Result(orders=7, one_order=pairs))] == [
        "7 pairs of events were seen in both orders, 3 in one order",
        "only in this order: Produce of a, then group b is Stable",
    ]
