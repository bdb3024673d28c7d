"""Time for quotas: the wall clock's, but never far back."""

import pytest

from sluice.quotas.entity import QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.quotas.monotonic_wall_clock import MonotonicWallClock
from sluice.quotas.mutation_quota import ControllerMutationQuotaManager

HOUR_MS = 3_600_000
C = QuotaEntity(client_id="c")


@pytest.mark.parametrize(
    ("readings", "times"),
    [
        pytest.param([5, 5, 9], [5, 5, 9], id="goes on as the clock does"),
        pytest.param([5_000, 99_000], [5_000, 99_000], id="jumps as the clock does"),
        pytest.param([5_000, 4_000, 5_001], [5_000, 4_000, 5_001], id="a window back is left alone"),
        pytest.param([5_000, 3_999, 4_100], [5_000, 5_000, 5_101], id="more is taken out"),
        pytest.param([9_000, 5_000, 1_000, 1_500], [9_000, 9_000, 9_000, 9_500], id="again and again"),
        pytest.param([9_000, 8_500, 7_900, 7_950], [9_000, 8_500, 9_000, 9_050], id="little by little"),
    ],
)
def test_time(readings: list[int], times: list[int]) -> None:
    clock = MonotonicWallClock(window_ms=1000)
    assert [clock.at(wall_ms) for wall_ms in readings] == times


def test_a_clock_set_back_makes_no_client_wait_for_ever() -> None:
    # By the clock itself one sample stays open for the hour, and sums up all that is sent meanwhile.
    manager = ClientQuotaManager("Produce", QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(C, 1000.0)
    clock, wall_ms, throttles = MonotonicWallClock(1000), 10 * HOUR_MS, []
    for second in range(300):
        if second == 100:
            wall_ms -= HOUR_MS
        throttles.append(manager.record("ANONYMOUS", "c", 800.0, clock.at(wall_ms)))
        wall_ms += 1000
    assert throttles == [0] * 300


def test_a_clock_set_back_takes_no_tokens() -> None:
    manager = ControllerMutationQuotaManager(QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(C, 10.0)
    clock = MonotonicWallClock(1000)
    for wall_ms in (10 * HOUR_MS, 9 * HOUR_MS):
        quota = manager.quota_for("ANONYMOUS", "c", clock.at(wall_ms), strict=True)
        assert quota.record(50)
    assert quota.throttle_time_ms() == 0
