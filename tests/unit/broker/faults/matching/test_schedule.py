import pytest

from sluice.broker.faults.matching.errors import RuleProblem
from sluice.broker.faults.matching.schedule import new_schedule

HIT, MISS = "x", "."


def calls(count: int, **given: object) -> str:
    """Which of so many calls, a millisecond apart, are hit; `|` where the schedule says that it is over."""
    schedule = new_schedule(**({"times": None, "during": None, "on": None, "schedule": None} | given))  # type: ignore[arg-type]  # the test's
    shown = ""
    for number in range(count):
        shown += HIT if schedule.hits(float(number)) else MISS
        if schedule.is_over:
            return shown + "|"
    return shown


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, "xxxxxx", id="always"),
        pytest.param({"times": 3}, "xxx|", id="three times"),
        pytest.param({"on": [1, 4]}, "x..x|", id="on the first and the fourth call"),
        pytest.param({"on": [2]}, ".x|", id="on the second call"),
        pytest.param({"schedule": "2 fail"}, "xx|", id="fails twice, and no more"),
        pytest.param({"schedule": "1 pass, 2 fail"}, ".xx|", id="passes first"),
        pytest.param({"schedule": "2 fail, 1 pass"}, "xx.|", id="a phase that passes at the end is the end"),
        pytest.param({"schedule": "2 fail, 1 pass, repeat"}, "xx.xx.", id="from the first phase again"),
        pytest.param({"schedule": "1 fail,1 pass,  repeat"}, "x.x.x.", id="spaces do not matter"),
        pytest.param({"during": 2}, "xx.|", id="for two milliseconds from the first on"),
    ],
)
def test_a_schedule_hits(given: dict[str, object], expected: str) -> None:
    assert calls(6, **given) == expected


def test_a_duration_begins_with_the_first_that_is_hit() -> None:
    schedule = new_schedule(None, "1s", None, None)
    assert [schedule.hits(at_ms) for at_ms in (70_000.0, 70_999.0, 71_000.0)] == [True, True, False]


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        pytest.param({"times": 1, "during": "5s"}, "during", "got times and during", id="two of them"),
        pytest.param({"on": [1], "schedule": "1 fail"}, "schedule", "got on and schedule", id="numbers and a schedule"),
        pytest.param({"times": 0}, "times", "expected 1 or more", id="no times"),
        pytest.param({"during": 0}, "during", "expected more than 0", id="no time"),
        pytest.param({"during": "soon"}, "during", "250ms, 5s, 2m", id="no duration"),
        pytest.param({"on": []}, "on", "expected numbers from 1", id="no call"),
        pytest.param({"on": [0, 1]}, "on", "expected numbers from 1", id="call zero"),
        pytest.param({"schedule": "3 pass"}, "schedule", "a phase that fails", id="only passes"),
        pytest.param({"schedule": "3 fail, repeat"}, "schedule", "a phase that passes", id="only fails, for ever"),
        pytest.param({"schedule": "repeat"}, "schedule", "a phase that fails", id="repeats nothing"),
        pytest.param({"schedule": "repeat, 3 fail"}, "schedule", "only at the end", id="repeats first"),
        pytest.param({"schedule": "0 fail, 1 pass"}, "schedule", "a phase of 1 to", id="a phase of nothing"),
        pytest.param({"schedule": "three fail"}, "schedule", "'N fail'", id="numbers in words"),
        pytest.param({"schedule": ""}, "schedule", "'N fail'", id="empty"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(given: dict[str, object], path: str, words: str) -> None:
    with pytest.raises(RuleProblem) as refused:
        calls(1, **given)
    assert refused.value.path == path
    assert words in refused.value.problem
