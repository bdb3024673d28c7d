"""Throttle times as a client would tell them: averages and maxima over two samples of 30 s."""

from math import isnan

import pytest

from sluice.quotas.client_throttle_times import ThrottleTimeStats

# Answers as moment and throttle time; then when it is asked, the average and the maximum.
CASES: dict[str, tuple[list[tuple[int, int]], int, float, float]] = {
    "one wait": ([(0, 300)], 10, 300.0, 300.0),
    "zeros count": ([(0, 300), (1, 0), (2, 0)], 10, 100.0, 300.0),
    "zeros before": ([(0, 0), (1, 0), (2, 300)], 10, 100.0, 300.0),
    "only zeros": ([(0, 0), (5, 0)], 10, 0.0, 0.0),
    "after two samples of silence a wait is forgotten": ([(0, 300)], 60_000, -1.0, -1.0),
    "what came later still counts": ([(0, 300), (31_000, 100)], 60_000, 100.0, 100.0),
    "zeros that were never put into a sample are forgotten too": ([(0, 0), (1, 0)], 90_000, -1.0, -1.0),
    "zeros of the last half minute are not": ([(0, 0), (29_000, 0)], 59_000, 0.0, 0.0),
    "many zeros": ([(at_ms, 0) for at_ms in range(0, 59_000, 100)] + [(59_000, 590)], 59_000, 590 / 591, 590.0),
}


@pytest.mark.parametrize(("answers", "at_ms", "average", "maximum"), CASES.values(), ids=CASES)
def test_what_a_client_was_told(answers: list[tuple[int, int]], at_ms: int, average: float, maximum: float) -> None:
    told = ThrottleTimeStats()
    for now_ms, throttle_ms in answers:
        if throttle_ms:
            told.record(throttle_ms, now_ms)
        else:
            told.zeros += 1
            if now_ms >= told.put_by_ms:
                told.put_zeros(now_ms)
    for _ in range(2):  # asking changes nothing
        found = told.average(at_ms), told.maximum(at_ms)
        if average < 0:
            assert [isnan(each) for each in found] == [True, True], "no answers"
        else:
            assert found[0] == pytest.approx(average)
            assert found[1] == maximum
