"""The guided strategy, on points without a program."""

import pytest

from sluice.explore.execution import Outcome, Schedule
from sluice.explore.guided import Guided
from sluice.explore.history import Point
from sluice.explore.injection import KINDS, Injection

APPLICATION = frozenset({"application"})


def points(*apis: str, needs: frozenset[str] = APPLICATION) -> list[Point]:
    found: list[Point] = []
    for number, api in enumerate(apis):
        nth = 1 + sum(each.api == api for each in found)
        found.append(Point("shop", api, nth, apis[number - 1] if number else "", number, needs, number, 0.0))
    return found


def proposed(strategy: Guided, count: int) -> list[Injection]:
    return [injection for schedule in strategy.propose(count) for injection in schedule.injections]


def test_each_kind_is_tried_at_each_api() -> None:
    strategy = Guided(Outcome("", points=points("JoinGroup", "Fetch", "OffsetCommit")), ["slow", "kill-after"], 0)
    tried = {(each.kind, each.api) for each in proposed(strategy, 30)}
    assert tried == {(kind, api) for kind in ("slow", "kill-after") for api in ("JoinGroup", "Fetch", "OffsetCommit")}


def test_kinds_are_left_out_where_they_cannot_hit() -> None:
    first = Outcome("", points=points("Fetch", "Produce", needs=frozenset()))
    needless = {kind for kind in KINDS if not KINDS[kind].needs}
    assert {each.kind for each in proposed(Guided(first, [*KINDS], 0), 200)} <= needless


def test_kinds_that_did_not_hit_are_not_tried_again() -> None:
    strategy = Guided(Outcome("", points=points("Fetch")), ["slow", "stalled"], 0)
    missed = Injection("slow", "shop", "Fetch", 1)
    strategy.read(Schedule((missed,)), Outcome("", missed=[missed]))
    assert {each.kind for each in proposed(strategy, 20)} == {"stalled"}


def test_kinds_that_earlier_failures_prevented_are_tried_again() -> None:
    strategy = Guided(Outcome("", points=points("Fetch", "Fetch")), ["slow", "stalled"], 0)
    first, missed = Injection("stalled", "shop", "Fetch", 1), Injection("slow", "shop", "Fetch", 2)
    strategy.read(Schedule((first, missed)), Outcome("", missed=[missed]))
    strategy.read(Schedule((missed,), order=3), Outcome("", missed=[missed]))
    assert {each.kind for each in proposed(strategy, 20)} == {"slow", "stalled"}


def test_one_run_kills_one_broker() -> None:
    first = Outcome("", points=points(*["Produce"] * 9))
    for schedule in Guided(first, ["broker-killed", "broker-lost", "broker-power-lost"], 0).propose(50):
        assert len(schedule.injections) == 1


def test_failures_of_a_run_are_at_different_requests() -> None:
    for schedule in Guided(Outcome("", points=points("Fetch", "Produce")), ["slow", "stalled"], 0).propose(20):
        apis = [each.api for each in schedule.injections]
        assert len(apis) == len({*apis})


@pytest.mark.parametrize("seed", range(5))
def test_failures_of_a_run_have_different_effects(seed: int) -> None:
    first = Outcome("", points=points(*["Produce"] * 9))
    (schedule,) = Guided(first, ["kill-after", "cancelled", "paused", "response-lost"], seed).propose(1)
    kinds = {each.kind for each in schedule.injections}
    assert len(kinds) == 3
    assert kinds > {"paused", "response-lost"}


def test_run_with_new_states_is_varied_after_its_last_failure() -> None:
    strategy = Guided(Outcome("", points=points("Fetch")), ["slow", "stalled"], 0)
    base = Schedule((Injection("slow", "shop", "Fetch", 2),))
    after = points("Fetch", "Fetch", "Produce", "Produce")
    strategy.read(base, Outcome("", points=after, states=frozenset({1, 2})))
    varied = [each for each in strategy.propose(30) if each.injections[0] == base.injections[0]]
    assert varied
    assert {each.api for schedule in varied for each in schedule.injections[1:]} == {"Produce"}


def test_same_seed_proposes_the_same() -> None:
    first = Outcome("", points=points("JoinGroup", "Fetch", "Produce", "OffsetCommit"))
    one, same, other = (Guided(first, [*KINDS], seed).propose(40) for seed in (1, 1, 2))
    assert one == same != other


def test_without_points_only_orders_are_varied() -> None:
    schedules = Guided(Outcome(""), [*KINDS], 0).propose(5)
    assert [each.order for each in schedules] == [1, 2, 3, 4, 5]
    assert not any(each.injections for each in schedules)
