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


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, "xxxxxx", id="always"),
        pytest.param({"times": 3}, "xxx|", id="three times"),
        pytest.param({"on": [1, 4]}, "x..x|", id="first and fourth call"),
        pytest.param({"on": [2]}, ".x|", id="second call"),
        pytest.param({"schedule": "2 fail"}, "xx|", id="fails twice, then ends"),
        pytest.param({"schedule": "1 pass, 2 fail"}, ".xx|", id="passes first"),
        pytest.param({"schedule": "2 fail, 1 pass"}, "xx.|", id="trailing pass ends the schedule"),
        pytest.param({"schedule": "2 fail, 1 pass, repeat"}, "xx.xx.", id="repeats from the first phase"),
        pytest.param({"schedule": "1 fail,1 pass,  repeat"}, "x.x.x.", id="spaces are ignored"),
        pytest.param({"during": 2}, "xx.|", id="two milliseconds from the first hit"),
    ],
)
def test_schedule_hits_the_expected_calls(given: dict[str, object], expected: str) -> None:
    assert calls(6, **given) == expected


def test_duration_starts_with_the_first_hit() -> None:
    schedule = new_schedule(None, "1s", None, None)
    assert [schedule.hits(at_ms) for at_ms in (70_000.0, 70_999.0, 71_000.0)] == [True, True, False]


@pytest.mark.parametrize(
    ("given", "path", "error"),
    [
        pytest.param({"times": 1, "during": "5s"}, "during", "got times and during", id="times and during"),
        pytest.param({"on": [1], "schedule": "1 fail"}, "schedule", "got on and schedule", id="on and schedule"),
        pytest.param({"times": 0}, "times", "expected 1 or more", id="zero times"),
        pytest.param({"during": 0}, "during", "expected more than 0", id="zero duration"),
        pytest.param({"during": "soon"}, "during", "250ms, 5s, 2m", id="invalid duration"),
        pytest.param({"on": []}, "on", "expected numbers from 1", id="empty list of calls"),
        pytest.param({"on": [0, 1]}, "on", "expected numbers from 1", id="call zero"),
        pytest.param({"schedule": "3 pass"}, "schedule", "a phase that fails", id="only passes"),
        pytest.param({"schedule": "3 fail, repeat"}, "schedule", "a phase that passes", id="only fails, repeated"),
        pytest.param({"schedule": "repeat"}, "schedule", "a phase that fails", id="repeat without phases"),
        pytest.param({"schedule": "repeat, 3 fail"}, "schedule", "only at the end", id="repeat at the start"),
        pytest.param({"schedule": "0 fail, 1 pass"}, "schedule", "a phase of 1 to", id="phase of length zero"),
        pytest.param({"schedule": "three fail"}, "schedule", "'N fail'", id="numbers in words"),
        pytest.param({"schedule": ""}, "schedule", "'N fail'", id="empty"),
    ],
)
def test_invalid_schedule_is_rejected(given: dict[str, object], path: str, error: str) -> None:
    with pytest.raises(RuleProblem) as raised:
        calls(1, **given)
    assert raised.value.path == path
    assert error in raised.value.problem
