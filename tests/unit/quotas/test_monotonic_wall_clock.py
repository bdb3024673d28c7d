"""Time for quotas: the wall clock with large backward steps removed."""

import pytest

from sluice.quotas.entity import QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.quotas.monotonic_wall_clock import MonotonicWallClock
from sluice.quotas.mutation_quota import ControllerMutationQuotaManager

HOUR_MS = 3_600_000
C = QuotaEntity(client_id="c")


READINGS = {
    "advances with the clock": ([5, 5, 9], [5, 5, 9]),
    "jumps forward with the clock": ([5_000, 99_000], [5_000, 99_000]),
    "a backward step of one window is kept": ([5_000, 4_000, 5_001], [5_000, 4_000, 5_001]),
    "a larger backward step is removed": ([5_000, 3_999, 4_100], [5_000, 5_000, 5_101]),
    "repeated backward steps": ([9_000, 5_000, 1_000, 1_500], [9_000, 9_000, 9_000, 9_500]),
    "many small backward steps": ([9_000, 8_500, 7_900, 7_950], [9_000, 8_500, 9_000, 9_050]),
}


@pytest.mark.parametrize(("readings", "times"), READINGS.values(), ids=READINGS)
def test_quota_time(readings: list[int], times: list[int]) -> None:
    clock = MonotonicWallClock(window_ms=1000)
    assert [clock.at(wall_ms) for wall_ms in readings] == times


def test_clock_set_back_does_not_throttle_a_client_for_an_hour() -> None:
    # With the plain clock, one sample would stay open for the hour and sum up all traffic.
    manager = ClientQuotaManager("Produce", QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(C, 1000.0)
    clock, wall_ms, throttles = MonotonicWallClock(1000), 10 * HOUR_MS, []
    for second in range(300):
        if second == 100:
            wall_ms -= HOUR_MS
        throttles.append(manager.record("ANONYMOUS", "c", 800.0, clock.at(wall_ms)))
        wall_ms += 1000
    assert throttles == [0] * 300


def test_clock_set_back_removes_no_tokens() -> None:
    manager = ControllerMutationQuotaManager(QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(C, 10.0)
    clock = MonotonicWallClock(1000)
    for wall_ms in (10 * HOUR_MS, 9 * HOUR_MS):
        quota = manager.quota_for("ANONYMOUS", "c", clock.at(wall_ms), strict=True)
        assert quota.record(50)
    assert quota.throttle_time_ms() == 0
