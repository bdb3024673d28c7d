"""Request time quotas (KIP-124)."""

import pytest

from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import QuotaConfig
from sluice.quotas.request_quota import ClientRequestQuotaManager

EVERYONE = QuotaEntity(client_id=DEFAULT)
MS = 1_000_000  # in nanoseconds


def manager_with(percent: float | None, window_ms: int = 1000) -> ClientRequestQuotaManager:
    manager = ClientRequestQuotaManager(QuotaConfig(window_ms=window_ms), QuotaTable("unlimited"))
    manager.set_quota(EVERYONE, percent)
    return manager


def use(manager: ClientRequestQuotaManager, work_ms: int, now_ms: int = 0) -> int:
    return manager.record("ANONYMOUS", "c", manager.percentage(work_ms * MS), now_ms)


THROTTLES = {
    "15 s, capped at a window of one second": (1.0, 250, 1000, 1000),
    "capped at a window of five seconds": (1.0, 2500, 5000, 5000),
    "exactly the quota": (1.0, 100, 1000, 0),
    "slightly above the quota": (1.0, 101, 1000, 100),
    "more than one thread": (200.0, 19_000, 1000, 0),
}


@pytest.mark.parametrize(("percent", "work_ms", "window_ms", "throttle_ms"), THROTTLES.values(), ids=THROTTLES)
def test_client_is_throttled_for_request_time_above_its_quota(
    percent: float, work_ms: int, window_ms: int, throttle_ms: int
) -> None:
    assert use(manager_with(percent, window_ms), work_ms) == throttle_ms


def test_percentage_refers_to_one_thread() -> None:
    manager = manager_with(50.0)
    for now_ms in range(0, 10_000, 1000):
        use(manager, 300, now_ms)
    usage = manager.measure("ANONYMOUS", "c", 9000)
    assert usage is not None
    assert usage.rate == 30.0


def test_exempt_request_time_is_counted_separately_and_throttles_no_client() -> None:
    manager = manager_with(1.0)
    manager.record_exempt(manager.percentage(6000 * MS), 0)
    assert manager.exempt_request_time(0) == 20.0, "600 percent-seconds over 30 s"
    assert manager.snapshot(0) == []


def test_nothing_is_counted_without_a_quota() -> None:
    manager = manager_with(None)
    manager.record_exempt(100.0, 0)
    assert (use(manager, 10_000), manager.exempt_request_time(0), manager.snapshot(0)) == (0, 0.0, [])
