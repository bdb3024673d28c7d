"""Reports: what was tried, what breaks the program, and the steps that lead to it."""

import pytest

from sluice.explore.execution import Options, Outcome, Schedule
from sluice.explore.injection import Injection
from sluice.explore.output.regression import Explored
from sluice.explore.output.report import report
from sluice.explore.reduction import Found
from sluice.explore.search import Result

KILL = Injection("kill-before", "shop", "OffsetCommit", 1)
HAPPENED = [
    (0.0, "app-1 starts"),
    (0.0, "group shop is PreparingRebalance with 1 members"),
    (0.1, "group shop is Stable with 1 members"),
    (1.0, "app-1 processes orders-0 offset 0"),
    (2.0, "app-1 processes orders-0 offset 1"),
    (3.0, "app-1 processes orders-1 offset 0"),
    (4.0, KILL.sentence),
    (5.0, "app-1 is killed"),
    (6.0, "app-2 processes orders-0 offset 1 again"),
]
OUTCOME = Outcome("AtLeastOnce: no", happened=HAPPENED)


def test_steps_of_one_kind_are_one_step() -> None:
    lines = report(Result(9, Found(Schedule((KILL,)), OUTCOME)), Options(seed=7), Explored("orders")).splitlines()
    assert lines[:4] == [
        "1 failure breaks the program (9 runs, failures at 0 requests, 0 different states, seed 7):",
        f"  {KILL.sentence}",
        "then: AtLeastOnce: no",
        "what happened:",
    ]
    assert lines[4:12] == [
        "  1. +0.000 s: app-1 starts",
        "  2. +0.100 s: group shop is Stable with 1 members",
        "  3. +1.000 s: app-1 processes orders-0 offsets 0 to 1",
        "  4. +3.000 s: app-1 processes orders-1 offset 0",
        f"  5. +4.000 s: {KILL.sentence}",
        "  6. +5.000 s: app-1 is killed",
        "  7. +6.000 s: app-2 processes orders-0 offset 1 again",
        "a test that repeats this run without a search:",
    ]


def test_many_steps_are_those_around_the_failure() -> None:
    many = [*((float(at), f"app-{at} starts") for at in range(20)), *HAPPENED]
    many += [(float(at), f"app-{at} starts") for at in range(40, 60)]
    shown = report(Result(1, Found(Schedule((KILL,)), Outcome("no", happened=many))), Options(), None)
    assert "what happened:\n  ... 20 earlier\n  1. +0.000 s: app-1 starts\n" in shown
    assert shown.endswith(" starts\n  ... 13 later")


FOUND = {
    "a failure": (Schedule((KILL,)), "1 failure breaks the program:\n"),
    "two failures": (Schedule((KILL, KILL)), "2 failures break the program:\n"),
    "another order": (
        Schedule(order=3),
        "another order of events breaks the program:\n  events happen in another order (order 3)\n",
    ),
    "no failure": (Schedule(), "the program fails without any failure of the cluster:\n  AtLeastOnce: no"),
}


@pytest.mark.parametrize(("schedule", "expected"), FOUND.values(), ids=FOUND)
def test_what_breaks_the_program(schedule: Schedule, expected: str) -> None:
    assert report(Result(1, Found(schedule, OUTCOME)), Options(), None).startswith(expected)


def test_nothing_found() -> None:
    pairs = [("group shop is Stable", "Produce of app")]
    assert report(Result(9, None, 3, 2, 4, orders=5, one_order=pairs), Options(), None) == (
        "no failure found: 9 runs, failures at 4 requests, 3 different states\n"
        "in 2 runs, a failure was not injected, because its request was not sent\n"
        "5 pairs of events were seen in both orders, 1 in one order\n"
        "only in this order: group shop is Stable, then Produce of app"
    )
