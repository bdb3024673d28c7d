import pytest

from sluice.broker.faults.matching.schedule import new_schedule
from sluice.broker.faults.matching.values import RuleProblem

HIT, MISS = "x", "."


def calls(count: int, **given: object) -> str:
    """Return which of `count` calls, 1 ms apart, are hit; `|` marks the end of the schedule."""
    schedule = new_schedule(**({"times": None, "during": None, "on": None, "schedule": None} | given))  # type: ignore[arg-type]  # test values
    pattern = ""
    for number in range(count):
        pattern += HIT if schedule.hits(float(number)) else MISS
        if schedule.is_over:
            return pattern + "|"
    return pattern


SCHEDULES = {
    "always": ({}, "xxxxxx"),
    "three times": ({"times": 3}, "xxx|"),
    "first and fourth call": ({"on": [1, 4]}, "x..x|"),
    "second call": ({"on": [2]}, ".x|"),
    "fails twice, then ends": ({"schedule": "2 fail"}, "xx|"),
    "passes first": ({"schedule": "1 pass, 2 fail"}, ".xx|"),
    "trailing pass ends the schedule": ({"schedule": "2 fail, 1 pass"}, "xx.|"),
    "repeats from the first phase": ({"schedule": "2 fail, 1 pass, repeat"}, "xx.xx."),
    "spaces are ignored": ({"schedule": "1 fail,1 pass,  repeat"}, "x.x.x."),
    "two milliseconds from the first hit": ({"during": 2}, "xx.|"),
}


@pytest.mark.parametrize(("given", "expected"), SCHEDULES.values(), ids=SCHEDULES)
def test_schedule_hits_the_expected_calls(given: dict[str, object], expected: str) -> None:
    assert calls(6, **given) == expected


def test_duration_starts_with_the_first_hit() -> None:
    schedule = new_schedule(None, "1s", None, None)
    assert [schedule.hits(at_ms) for at_ms in (70_000.0, 70_999.0, 71_000.0)] == [True, True, False]


INVALID_SCHEDULES = {
    "times and during": ({"times": 1, "during": "5s"}, "during", "got times and during"),
    "on and schedule": ({"on": [1], "schedule": "1 fail"}, "schedule", "got on and schedule"),
    "zero times": ({"times": 0}, "times", "expected 1 or more"),
    "zero duration": ({"during": 0}, "during", "expected more than 0"),
    "invalid duration": ({"during": "soon"}, "during", "250ms, 5s, 2m"),
    "empty list of calls": ({"on": []}, "on", "expected numbers from 1"),
    "call zero": ({"on": [0, 1]}, "on", "expected numbers from 1"),
    "only passes": ({"schedule": "3 pass"}, "schedule", "a phase that fails"),
    "only fails, repeated": ({"schedule": "3 fail, repeat"}, "schedule", "a phase that passes"),
    "repeat without phases": ({"schedule": "repeat"}, "schedule", "a phase that fails"),
    "repeat at the start": ({"schedule": "repeat, 3 fail"}, "schedule", "only at the end"),
    "phase of length zero": ({"schedule": "0 fail, 1 pass"}, "schedule", "a phase of 1 to"),
    "numbers in words": ({"schedule": "three fail"}, "schedule", "'N fail'"),
    "empty": ({"schedule": ""}, "schedule", "'N fail'"),
}


@pytest.mark.parametrize(("given", "path", "error"), INVALID_SCHEDULES.values(), ids=INVALID_SCHEDULES)
def test_invalid_schedule_is_rejected(given: dict[str, object], path: str, error: str) -> None:
    with pytest.raises(RuleProblem) as raised:
        calls(1, **given)
    assert raised.value.path == path
    assert error in raised.value.problem
