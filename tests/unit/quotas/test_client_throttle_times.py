"""Throttle times as client metrics: average and maximum over two samples of 30 s."""

from math import isnan

import pytest

from sluice.quotas.client_throttle_times import ThrottleTimeStats

# Responses as (moment, throttle time); then the moment of measurement, the average and the maximum.
CASES: dict[str, tuple[list[tuple[int, int]], int, float, float]] = {
    "one wait": ([(0, 300)], 10, 300.0, 300.0),
    "zeros count": ([(0, 300), (1, 0), (2, 0)], 10, 100.0, 300.0),
    "zeros before": ([(0, 0), (1, 0), (2, 300)], 10, 100.0, 300.0),
    "only zeros": ([(0, 0), (5, 0)], 10, 0.0, 0.0),
    "a throttle time expires after two silent samples": ([(0, 300)], 60_000, -1.0, -1.0),
    "a later response still counts": ([(0, 300), (31_000, 100)], 60_000, 100.0, 100.0),
    "zeros that were never put into a sample expire too": ([(0, 0), (1, 0)], 90_000, -1.0, -1.0),
    "zeros within the last 30 s do not expire": ([(0, 0), (29_000, 0)], 59_000, 0.0, 0.0),
    "many zeros": ([(at_ms, 0) for at_ms in range(0, 59_000, 100)] + [(59_000, 590)], 59_000, 590 / 591, 590.0),
}


@pytest.mark.parametrize(("answers", "at_ms", "average", "maximum"), CASES.values(), ids=CASES)
def test_average_and_maximum_throttle_time(
    answers: list[tuple[int, int]], at_ms: int, average: float, maximum: float
) -> None:
    responses = ThrottleTimeStats()
    for now_ms, throttle_ms in answers:
        if throttle_ms:
            responses.record(throttle_ms, now_ms)
        else:
            responses.zeros += 1
            if now_ms >= responses.put_by_ms:
                responses.put_zeros(now_ms)
    for _ in range(2):  # measuring changes nothing
        found = responses.average(at_ms), responses.maximum(at_ms)
        if average < 0:
            assert [isnan(each) for each in found] == [True, True], "no responses"
        else:
            assert found[0] == pytest.approx(average)
            assert found[1] == maximum
