"""The histograms of throttle times by client and API: buckets, the limit of clients, and expiration."""

from sluice.broker.throttling.request_charges import OTHER, ThrottleHistograms
from sluice.metrics import THROTTLE_SECONDS_BOUNDS

HOUR_MS = 3_600_000


def test_throttle_times_are_counted_by_bucket() -> None:
    times = ThrottleHistograms(5)
    for throttle_ms in (1, 2, 1_000, 1_001, 100_000):
        times.add("Produce", "u", "c", throttle_ms, 0)
    histogram = times.by_api["Produce", "u", "c"]
    counted = dict(zip([*THROTTLE_SECONDS_BOUNDS, "more"], histogram.counts, strict=True))
    assert {bound: count for bound, count in counted.items() if count} == {0.001: 1, 0.01: 1, 1.0: 1, 2.0: 1, "more": 1}
    assert histogram.total_ms == 102_004


def test_clients_above_the_limit_share_one_histogram() -> None:
    times = ThrottleHistograms(2)
    for client_id in ("a", "b", "c", "d", "a"):
        times.add("Fetch", "u", client_id, 10, 0)
    times.add("Produce", "u", "c", 10, 0)
    assert {key: sum(entry.counts) for key, entry in times.by_api.items()} == {
        ("Fetch", "u", "a"): 2,
        ("Fetch", "u", "b"): 1,
        ("Fetch", "", OTHER): 2,
        ("Produce", "", OTHER): 1,
    }


def test_client_without_throttle_time_for_over_an_hour_is_removed() -> None:
    times = ThrottleHistograms(1)
    times.add("Fetch", "u", "a", 10, 0)
    times.expire(HOUR_MS)
    assert list(times.by_api) == [("Fetch", "u", "a")]
    times.expire(HOUR_MS + 1)
    times.add("Fetch", "u", "b", 10, HOUR_MS + 1)
    assert list(times.by_api) == [("Fetch", "u", "b")]
