"""Quotas of controller mutations (KIP-599): what is refused, what waits, and what tokens are left."""

import pytest

from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import QuotaConfig
from sluice.quotas.mutation_quota import ControllerMutationQuota, ControllerMutationQuotaManager, MutationUsage
from sluice.quotas.sensor import Violation

EVERYONE = QuotaEntity(client_id=DEFAULT)
NOW_MS = 1_700_000_000_000  # the bucket is full on first use


def manager_with(rate: float | None = 5.0, num_samples: int = 11) -> ControllerMutationQuotaManager:
    manager = ControllerMutationQuotaManager(QuotaConfig(num_samples), QuotaTable("unlimited"))
    manager.set_quota(EVERYONE, rate)
    return manager


def request(
    manager: ControllerMutationQuotaManager, now_ms: int = NOW_MS, *, strict: bool = True
) -> ControllerMutationQuota:
    return manager.quota_for("ANONYMOUS", "c", now_ms, strict=strict)


def usage_of(manager: ControllerMutationQuotaManager, now_ms: int = NOW_MS) -> MutationUsage:
    (usage,) = manager.snapshot(now_ms)
    assert isinstance(usage, MutationUsage)
    return usage


def test_the_example_of_kip_599() -> None:
    # 5 partitions/s over 100 samples of 1 s: 500 at once. 560 are let through, and then 12 s must pass.
    manager = manager_with(num_samples=100)
    assert request(manager).record(560)
    assert usage_of(manager).tokens == -60.0
    refused = request(manager, NOW_MS + 2_000)
    assert not refused.record(1)
    assert (refused.is_exceeded, refused.throttle_time_ms()) == (True, 10_000)
    assert request(manager, NOW_MS + 13_000).record(1)


@pytest.mark.parametrize(
    ("strict", "accepted", "tokens", "throttle_ms", "exceeded"),
    [
        pytest.param(True, [True, False, False], -45.0, 9_000, True, id="strictly: the first that finds a debt"),
        pytest.param(False, [True, True, True], -147.0, 29_400, False, id="permissively: none, and all are charged"),
    ],
)
def test_which_topics_of_a_request_are_refused(
    strict: bool, accepted: list[bool], tokens: float, throttle_ms: int, exceeded: bool
) -> None:
    manager = manager_with()
    quota = request(manager, strict=strict)
    assert [quota.record(permits) for permits in (100, 2, 100)] == accepted
    assert (usage_of(manager).tokens, quota.throttle_time_ms(), quota.is_exceeded) == (tokens, throttle_ms, exceeded)


def test_a_strict_request_that_goes_into_debt_is_not_made_to_wait_itself() -> None:
    quota = request(manager_with())
    assert quota.record(1_000)
    assert quota.throttle_time_ms() == 0


def test_the_wait_gets_shorter_while_the_request_waits() -> None:
    quota = request(manager_with(), strict=False)
    quota.record(60)
    assert [quota.throttle_time_ms(passed_ms) for passed_ms in (0, 400, 1_000, 5_000)] == [1_000, 600, 0, 0]


def test_a_changed_quota_holds_for_the_bucket_that_is_there() -> None:
    manager = manager_with(5.0)
    request(manager).record(65)
    manager.set_quota(EVERYONE, 10.0)
    quota = request(manager)
    quota.record(1)
    assert (usage_of(manager).bound, quota.throttle_time_ms()) == (10.0, 1_000)


def test_without_a_quota_nothing_is_refused_or_counted() -> None:
    manager = manager_with(None)
    quota = request(manager)
    assert quota.record(1e9)
    assert (quota.throttle_time_ms(), quota.is_exceeded, manager.snapshot(NOW_MS)) == (0, False, [])


def test_the_rate_is_for_the_metrics_alone() -> None:
    manager = manager_with()
    request(manager).record(60)
    assert (usage_of(manager).rate, usage_of(manager).window_size_ms) == (2.0, 30_000)


def test_looking_at_the_tokens_leaves_no_trace() -> None:
    looked, alone = manager_with(), manager_with()
    for manager in (looked, alone):
        request(manager).record(60.3)
    for later_ms in range(0, 900, 7):
        usage_of(looked, NOW_MS + later_ms)
    assert usage_of(looked, NOW_MS + 1_000) == usage_of(alone, NOW_MS + 1_000)


def test_the_numbers_of_the_last_delay_are_kept() -> None:
    manager = manager_with()
    request(manager, strict=False).record(65)
    sensors = manager.peek_sensors((None, "c"))
    assert sensors is not None
    assert sensors.quota.last_violation == Violation(NOW_MS, 65, -10.0, 5.0, 0, 2_000)


def test_a_charge_as_of_another_manager_takes_tokens_and_tells_the_wait() -> None:
    manager = manager_with()
    assert manager.record("ANONYMOUS", "c", 55.0, NOW_MS) == 0
    assert manager.record("ANONYMOUS", "c", 5.0, NOW_MS) == 1_000
