"""Controller mutation quotas (KIP-599): rejected requests, throttle times and remaining tokens."""

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


def test_kip_599_example() -> None:
    # 5 partitions/s over 100 samples of 1 s: 500 at once. 560 are accepted, then 12 s must pass.
    manager = manager_with(num_samples=100)
    assert request(manager).record(560)
    assert usage_of(manager).tokens == -60.0
    refused = request(manager, NOW_MS + 2_000)
    assert not refused.record(1)
    assert (refused.is_exceeded, refused.throttle_time_ms()) == (True, 10_000)
    assert request(manager, NOW_MS + 13_000).record(1)


REJECTED = {
    "strict: rejected from the first that finds a debt": (True, [True, False, False], -45.0, 9_000, True),
    "permissive: none rejected, all charged": (False, [True, True, True], -147.0, 29_400, False),
}


@pytest.mark.parametrize(("strict", "accepted", "tokens", "throttle_ms", "exceeded"), REJECTED.values(), ids=REJECTED)
def test_rejected_topics_of_a_request(
    strict: bool, accepted: list[bool], tokens: float, throttle_ms: int, exceeded: bool
) -> None:
    manager = manager_with()
    quota = request(manager, strict=strict)
    assert [quota.record(permits) for permits in (100, 2, 100)] == accepted
    assert (usage_of(manager).tokens, quota.throttle_time_ms(), quota.is_exceeded) == (tokens, throttle_ms, exceeded)


def test_strict_request_that_causes_the_debt_is_not_throttled() -> None:
    quota = request(manager_with())
    assert quota.record(1_000)
    assert quota.throttle_time_ms() == 0


def test_throttle_time_shrinks_while_the_request_is_delayed() -> None:
    quota = request(manager_with(), strict=False)
    quota.record(60)
    assert [quota.throttle_time_ms(passed_ms) for passed_ms in (0, 400, 1_000, 5_000)] == [1_000, 600, 0, 0]


def test_changed_quota_applies_to_the_existing_bucket() -> None:
    manager = manager_with(5.0)
    request(manager).record(65)
    manager.set_quota(EVERYONE, 10.0)
    quota = request(manager)
    quota.record(1)
    assert (usage_of(manager).bound, quota.throttle_time_ms()) == (10.0, 1_000)


def test_without_a_quota_nothing_is_rejected_or_counted() -> None:
    manager = manager_with(None)
    quota = request(manager)
    assert quota.record(1e9)
    assert (quota.throttle_time_ms(), quota.is_exceeded, manager.snapshot(NOW_MS)) == (0, False, [])


def test_rate_is_used_only_for_metrics() -> None:
    manager = manager_with()
    request(manager).record(60)
    assert (usage_of(manager).rate, usage_of(manager).window_size_ms) == (2.0, 30_000)


def test_reading_the_tokens_has_no_side_effects() -> None:
    looked, alone = manager_with(), manager_with()
    for manager in (looked, alone):
        request(manager).record(60.3)
    for later_ms in range(0, 900, 7):
        usage_of(looked, NOW_MS + later_ms)
    assert usage_of(looked, NOW_MS + 1_000) == usage_of(alone, NOW_MS + 1_000)


def test_last_delay_is_kept_for_explanations() -> None:
    manager = manager_with()
    request(manager, strict=False).record(65)
    sensors = manager.peek_sensors((None, "c"))
    assert sensors is not None
    assert sensors.quota.last_violation == Violation(NOW_MS, 65, -10.0, 5.0, 0, 2_000)


def test_forwarded_charge_uses_tokens_and_returns_the_throttle_time() -> None:
    manager = manager_with()
    for charge, throttle_ms, violation in [
        (54.5, 0, None),
        (0.5, 0, None),  # the last tokens
        (5.0, 1_000, Violation(NOW_MS, 5.0, -5.0, 5.0, 0, 1_000)),
    ]:
        assert manager.record("ANONYMOUS", "c", charge, NOW_MS) == throttle_ms
        sensors = manager.peek_sensors((None, "c"))
        assert sensors is not None
        assert sensors.quota.last_violation == violation
