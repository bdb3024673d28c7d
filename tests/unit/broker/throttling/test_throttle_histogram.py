"""Throttle times by client and API: what is noted, the cap, and when it is forgotten."""

from sluice.broker.throttling.throttle_histogram import OTHER, ThrottleHistograms
from sluice.metrics import THROTTLE_SECONDS_BOUNDS

HOUR_MS = 3_600_000


def test_waits_are_counted_by_how_long_they_were() -> None:
    times = ThrottleHistograms(5)
    for throttle_ms in (1, 2, 1_000, 1_001, 100_000):
        times.add("Produce", "u", "c", throttle_ms, 0)
    found = times.by_api["Produce", "u", "c"]
    counted = dict(zip([*THROTTLE_SECONDS_BOUNDS, "more"], found.counts, strict=True))
    assert {bound: count for bound, count in counted.items() if count} == {0.001: 1, 0.01: 1, 1.0: 1, 2.0: 1, "more": 1}
    assert found.total_ms == 102_004


def test_clients_past_the_cap_are_added_up() -> None:
    times = ThrottleHistograms(2)
    for client_id in ("a", "b", "c", "d", "a"):
        times.add("Fetch", "u", client_id, 10, 0)
    times.add("Produce", "u", "c", 10, 0)
    assert {key: sum(each.counts) for key, each in times.by_api.items()} == {
        ("Fetch", "u", "a"): 2,
        ("Fetch", "u", "b"): 1,
        ("Fetch", "", OTHER): 2,
        ("Produce", "", OTHER): 1,
    }


def test_a_client_that_did_not_wait_for_over_an_hour_makes_room_for_another() -> None:
    times = ThrottleHistograms(1)
    times.add("Fetch", "u", "a", 10, 0)
    times.expire(HOUR_MS)
    assert list(times.by_api) == [("Fetch", "u", "a")]
    times.expire(HOUR_MS + 1)
    times.add("Fetch", "u", "b", 10, HOUR_MS + 1)
    assert list(times.by_api) == [("Fetch", "u", "b")]
