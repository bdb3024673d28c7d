"""The quota manager: recording, quota changes and metrics."""

import tracemalloc
from collections.abc import Callable
from math import isnan
from sys import float_info

import pytest

from sluice.quotas.entity import DEFAULT, EmptyClientId, QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, ClientUsage, QuotaConfig
from sluice.quotas.sensor import UNLIMITED

ANONYMOUS = "ANONYMOUS"
HOUR_MS = 3_600_000
EVERYONE = QuotaEntity(client_id=DEFAULT)


def manager_with(
    *quotas: tuple[QuotaEntity, float], empty_client_id: EmptyClientId = "unlimited"
) -> ClientQuotaManager:
    manager = ClientQuotaManager("Produce", QuotaConfig(), QuotaTable(empty_client_id))
    for entity, bound in quotas:
        manager.set_quota(entity, bound)
    return manager


@pytest.fixture
def manager() -> ClientQuotaManager:
    return manager_with((EVERYONE, 100.0))


def rate_of(manager: ClientQuotaManager, client_id: str, now_ms: int, user: str = ANONYMOUS) -> float:
    usage = manager.measure(user, client_id, now_ms)
    assert usage is not None, f"no sensor for {client_id}"
    return usage.rate


def test_kip_13_example() -> None:
    manager = manager_with((EVERYONE, 5e6))
    for now_ms in range(0, 9000, 1000):
        assert manager.record(ANONYMOUS, "c", 5e6, now_ms) == 0
    assert manager.record(ANONYMOUS, "c", 15e6, 9000) == 2000


def test_nothing_is_recorded_without_quotas() -> None:
    manager = manager_with()
    assert manager.record(ANONYMOUS, "c", 1e12, 0) == 0
    manager.record_no_throttle(ANONYMOUS, "c", 1e12, 0)
    manager.unrecord(ANONYMOUS, "c", 1e12, 0)
    assert manager.snapshot(0) == []
    manager.set_quota(EVERYONE, 1.0)
    assert manager.record(ANONYMOUS, "c", 10.0, 1) == 0, "the first ten recorded bytes"


def test_each_client_id_has_the_default_quota_separately(manager: ClientQuotaManager) -> None:
    assert manager.record(ANONYMOUS, "a", 2000.0, 0) == 10_000
    assert manager.record(ANONYMOUS, "b", 1000.0, 0) == 0


def test_all_users_of_a_client_id_share_its_bucket(manager: ClientQuotaManager) -> None:
    assert manager.record("alice", "a", 1000.0, 0) == 0
    assert manager.record("bob", "a", 1000.0, 0) == 10_000


def test_override_takes_precedence_over_the_default_until_removed() -> None:
    manager = manager_with((EVERYONE, 100.0), (QuotaEntity(client_id="gold"), 400.0))
    assert manager.record(ANONYMOUS, "gold", 4000.0, 0) == 0
    manager.set_quota(QuotaEntity(client_id="gold"), None)
    assert manager.record(ANONYMOUS, "gold", 0.0, 0) == 30_000


CHANGED_QUOTAS = {"the default": (EVERYONE, 50.0), "an override": (QuotaEntity(client_id="c"), 50.0)}


@pytest.mark.parametrize(("entity", "bound"), CHANGED_QUOTAS.values(), ids=CHANGED_QUOTAS)
def test_changed_quota_applies_to_the_next_request_and_keeps_recorded_samples(
    manager: ClientQuotaManager, entity: QuotaEntity, bound: float
) -> None:
    assert manager.record(ANONYMOUS, "c", 1000.0, 0) == 0
    manager.set_quota(entity, bound)
    assert manager.record(ANONYMOUS, "c", 0.0, 0) == 10_000
    manager.set_quota(entity, 200.0)
    assert manager.record(ANONYMOUS, "c", 0.0, 0) == 0


def test_first_quota_of_another_level_moves_clients_to_new_buckets(manager: ClientQuotaManager) -> None:
    assert manager.record("alice", "c", 2000.0, 0) == 10_000
    manager.set_quota(QuotaEntity(user="alice"), 100.0)
    assert manager.record("alice", "c", 1000.0, 0) == 0
    manager.set_quota(QuotaEntity(user="alice"), None)
    assert manager.record("alice", "c", 0.0, 0) == 10_000, "the former bucket with its samples"


def test_clients_without_an_id_share_the_default_bucket_under_kip_13_semantics() -> None:
    manager = manager_with((EVERYONE, 100.0), empty_client_id="shares_default")
    assert manager.record("alice", "", 1000.0, 0) == 0
    assert manager.record("bob", "", 1000.0, 0) == 10_000
    assert manager.max_value_in_quota_window("bob", "") == 1000.0


def test_clients_without_an_id_are_unlimited_under_kafka_2_semantics() -> None:
    manager = manager_with((EVERYONE, 100.0), empty_client_id="unlimited")
    assert manager.record("alice", "", 1e12, 0) == 0
    usage = manager.measure("alice", "", 0)
    assert usage is not None
    assert (usage.rate, usage.bound) == (1e11, UNLIMITED), "recorded nevertheless"
    assert manager.max_value_in_quota_window("alice", "") == float_info.max


def test_charge_without_a_check_throttles_the_next_request(manager: ClientQuotaManager) -> None:
    manager.record_no_throttle(ANONYMOUS, "c", 2000.0, 0)
    assert manager.record(ANONYMOUS, "c", 0.0, 0) == 10_000


def test_unrecorded_fetch_costs_nothing(manager: ClientQuotaManager) -> None:
    assert manager.record(ANONYMOUS, "c", 2000.0, 0) == 10_000
    manager.unrecord(ANONYMOUS, "c", 2000.0, 0)
    assert rate_of(manager, "c", 0) == 0.0
    assert manager.record(ANONYMOUS, "c", 1000.0, 0) == 0


def test_unrecording_an_uncharged_value_leaves_no_negative_rate() -> None:
    manager = manager_with()
    assert manager.record(ANONYMOUS, "c", 1000.0, 0) == 0
    manager.set_quota(EVERYONE, 100.0)  # the quota was set during the fetch
    manager.unrecord(ANONYMOUS, "c", 1000.0, 0)
    assert manager.snapshot(0) == []


def test_unrecording_without_quotas_leaves_the_old_bucket_unchanged(manager: ClientQuotaManager) -> None:
    manager.record(ANONYMOUS, "c", 500.0, 0)
    manager.set_quota(EVERYONE, None)
    manager.record(ANONYMOUS, "c", 700.0, 0)
    manager.unrecord(ANONYMOUS, "c", 700.0, 0)
    assert rate_of(manager, "c", 0) == 50.0


# Quota, number of samples, window: the largest charge that an idle client may make at once.
LARGEST_CHARGES = {
    "ten windows with eleven samples": (100.0, 11, 1000, 1000.0),
    "windows of five seconds": (100.0, 11, 5000, 5000.0),
    "zero with one sample": (100.0, 1, 1000, 0.0),
}


@pytest.mark.parametrize(
    ("bound", "num_samples", "window_ms", "expected"), LARGEST_CHARGES.values(), ids=LARGEST_CHARGES
)
def test_largest_charge_without_throttling(bound: float, num_samples: int, window_ms: int, expected: float) -> None:
    manager = ClientQuotaManager("Fetch", QuotaConfig(num_samples, window_ms), QuotaTable("unlimited"))
    manager.set_quota(EVERYONE, bound)
    assert manager.max_value_in_quota_window(ANONYMOUS, "c") == expected
    assert manager.record(ANONYMOUS, "c", expected, 0) == 0
    assert manager.record(ANONYMOUS, "d", expected + 1.0, 0) > 0


def test_without_a_quota_the_largest_charge_is_unbounded() -> None:
    assert manager_with().max_value_in_quota_window(ANONYMOUS, "c") == float_info.max
    assert manager_with((QuotaEntity(client_id="d"), 1.0)).max_value_in_quota_window(ANONYMOUS, "c") == float_info.max


def test_bucket_expires_after_more_than_an_hour_without_requests(manager: ClientQuotaManager) -> None:
    manager.record(ANONYMOUS, "old", 1.0, 0)
    manager.record(ANONYMOUS, "young", 1.0, 1)
    manager.expire(HOUR_MS)
    assert [usage.client_id for usage in manager.snapshot(HOUR_MS)] == ["old", "young"], "exactly one hour"
    manager.expire(HOUR_MS + 1)
    assert [usage.client_id for usage in manager.snapshot(HOUR_MS + 1)] == ["young"]
    assert [*manager.buckets()] == [(None, "young")]
    assert manager.record(ANONYMOUS, "old", 1.0, HOUR_MS + 1) == 0
    assert len(manager.snapshot(HOUR_MS + 1)) == 2


USES = {
    "a request": ClientQuotaManager.record,
    "a charge without a check": ClientQuotaManager.record_no_throttle,
    "an unrecorded charge": ClientQuotaManager.unrecord,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_bucket_is_kept_for_an_hour_after(
    manager: ClientQuotaManager, use: Callable[[ClientQuotaManager, str, str, float, int], int | None]
) -> None:
    manager.record(ANONYMOUS, "c", 1.0, 0)
    use(manager, ANONYMOUS, "c", 1.0, 5)
    manager.expire(HOUR_MS + 5)
    assert len(manager.snapshot(HOUR_MS + 5)) == 1
    manager.expire(HOUR_MS + 6)
    assert manager.snapshot(HOUR_MS + 6) == []


def test_expired_bucket_is_not_charged_through_a_stale_reference(manager: ClientQuotaManager) -> None:
    manager.record(ANONYMOUS, "c", 1.0, 0)
    manager.expire(HOUR_MS + 1)
    manager.record(ANONYMOUS, "c", 500.0, HOUR_MS + 1)
    assert rate_of(manager, "c", HOUR_MS + 1) == 50.0


def test_throttle_times_are_averaged_over_a_minute_and_counted_permanently(manager: ClientQuotaManager) -> None:
    manager.record(ANONYMOUS, "c", 0.0, 0)
    for throttle_ms in (100, 0, 300):  # 0 is not a throttle time
        manager.record_throttle_time(ANONYMOUS, "c", throttle_ms, 0)

    def throttle_times(now_ms: int) -> tuple[float, int]:
        (usage,) = manager.snapshot(now_ms)
        return usage.throttle_time_avg_ms, usage.throttle_time_total_ms

    assert throttle_times(59_999) == (200.0, 400)
    average, total = throttle_times(60_000)
    assert isnan(average)
    assert total == 400


def test_metrics_name_buckets_as_kafka_does() -> None:
    manager = manager_with((QuotaEntity("CN=ü", "c:1"), 7.0), (QuotaEntity(user="bob"), 8.0))
    for user, client_id in (("CN=ü", "c:1"), ("bob", "any"), ("eve", "c:1")):
        manager.record(user, client_id, 10.0, 0)
    assert [(usage.user, usage.client_id, usage.bound) for usage in manager.snapshot(0)] == [
        ("CN%3D%C3%BC", "c:1", 7.0),
        ("bob", "", 8.0),
        ("", "c:1", UNLIMITED),
    ]


def test_scraping_does_not_change_enforcement() -> None:
    scraped, alone = manager_with((EVERYONE, 1000.0)), manager_with((EVERYONE, 1000.0))
    # Requests after 0 to 35 s of silence: some scrapes find stale samples.
    now_ms = 1_000_000
    for burst in range(40):
        for scrape_ms in range(now_ms, now_ms + burst * burst * 23, 997):
            scraped.snapshot(scrape_ms)
        now_ms += burst * burst * 23
        for client_id in ("a", "b"):
            value = 9000.0 + burst * 100
            assert scraped.record(ANONYMOUS, client_id, value, now_ms) == alone.record(
                ANONYMOUS, client_id, value, now_ms
            )


MEASURES = {"scraping does not move the average": (False, 250.0), "measuring moves it, as in Kafka": (True, 300.0)}


@pytest.mark.parametrize(("measures", "average"), MEASURES.values(), ids=MEASURES)
def test_average_throttle_time_depends_on_measurements_in_between(measures: bool, average: float) -> None:
    manager = manager_with((EVERYONE, 100.0))
    manager.record_throttle_time(ANONYMOUS, "c", 100, 0)
    if measures:
        manager.measure(ANONYMOUS, "c", 60_000)  # the stale sample of 0 restarts here
    else:
        manager.snapshot(60_000)
    manager.record_throttle_time(ANONYMOUS, "c", 200, 89_000)
    manager.record_throttle_time(ANONYMOUS, "c", 300, 91_000)  # in a separate sample only after a measurement
    (usage,) = manager.snapshot(150_000)
    assert usage.throttle_time_avg_ms == average


def test_measuring_drops_stale_samples_as_kafka_metrics_do() -> None:
    measured, alone = manager_with((EVERYONE, 1000.0)), manager_with((EVERYONE, 1000.0))
    for manager in (measured, alone):
        manager.record(ANONYMOUS, "c", 1.0, 0)
    measured.measure(ANONYMOUS, "c", 20_000)  # the stale sample now starts at 20,000
    assert measured.record(ANONYMOUS, "c", 20_000.0, 20_500) == 9500, "over 10.5 s"
    assert alone.record(ANONYMOUS, "c", 20_000.0, 20_500) == 10_000, "over 10 s"


def test_client_without_records_has_no_measurement() -> None:
    assert manager_with((EVERYONE, 1.0)).measure(ANONYMOUS, "c", 0) is None


def test_snapshot_equals_measurement(manager: ClientQuotaManager) -> None:
    manager.record(ANONYMOUS, "c", 1050.0, 0)
    manager.record_throttle_time(ANONYMOUS, "c", 500, 0)
    expected = ClientUsage(
        user="",
        client_id="c",
        rate=1050.0 / 10.25,
        bound=100.0,
        window_size_ms=10_250,
        throttle_time_avg_ms=500.0,
        throttle_time_total_ms=500,
    )
    assert manager.snapshot(250) == [expected]
    assert manager.measure(ANONYMOUS, "c", 250) == expected


def test_client_with_all_samples_filled_uses_little_memory() -> None:
    clients = [f"client-{number}" for number in range(500)]
    manager = manager_with((EVERYONE, 1e6))
    tracemalloc.start()
    try:
        for window_ms in range(1_700_000_000_000, 1_700_000_012_000, 1_000):
            for number, client_id in enumerate(clients):
                # Distinct float objects, which Python does not share.
                manager.record(ANONYMOUS, client_id, 100.5 + number, window_ms + number // 4)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / len(clients) < 1_200, "100,000 clients use less than 120 MB"
