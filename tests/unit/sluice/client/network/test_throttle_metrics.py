"""KIP-13's client metrics: average and maximum throttle time per node over a sliding window."""

import pytest

from sluice.client.network.throttle_metrics import ThrottleTime, ThrottleTimes

NOTHING = ThrottleTime(0.0, 0.0)


@pytest.fixture
def times() -> ThrottleTimes:
    return ThrottleTimes(2, 30_000)


def test_without_responses_metrics_are_0(times: ThrottleTimes) -> None:
    assert times.of_all(0.0) == NOTHING
    assert times.of_node(1, 0.0) == NOTHING
    assert times.nodes() == []


def test_unthrottled_responses_count(times: ThrottleTimes) -> None:
    for throttle_time_ms in (0, 300, 0, 100):
        times.record(1, throttle_time_ms, 1000.0)
    assert times.of_node(1, 1000.0) == ThrottleTime(100.0, 300.0)


def test_nodes_are_counted_separately_and_together(times: ThrottleTimes) -> None:
    times.record(1, 300, 0.0)
    times.record(2, 0, 0.0)
    assert times.of_node(1, 0.0) == ThrottleTime(300.0, 300.0)
    assert times.of_node(2, 0.0) == NOTHING
    assert times.of_all(0.0) == ThrottleTime(150.0, 300.0)
    assert times.nodes() == [1, 2]


def test_metric_names_are_kafkas(times: ThrottleTimes) -> None:
    times.record(1, 300, 0.0)
    times.record(2, 0, 0.0)
    assert times.metrics("fetch", 0.0) == {"fetch-throttle-time-avg": 150.0, "fetch-throttle-time-max": 300.0}
    assert times.metrics("produce", 0.0, 2) == {"produce-throttle-time-avg": 0.0, "produce-throttle-time-max": 0.0}


def test_samples_expire_at_the_window_length(times: ThrottleTimes) -> None:
    times.record(1, 300, 0.0)
    times.record(1, 100, 40_000.0)
    assert times.of_node(1, 59_999.0) == ThrottleTime(200.0, 300.0)
    assert times.of_node(1, 60_000.0) == ThrottleTime(100.0, 100.0)
    assert times.of_node(1, 100_000.0) == NOTHING


def test_sample_age_counts_from_its_last_event(times: ThrottleTimes) -> None:
    times.record(1, 300, 0.0)
    times.record(1, 100, 29_999.0)
    assert times.of_node(1, 89_998.0) == ThrottleTime(200.0, 300.0)
    assert times.of_node(1, 89_999.0) == NOTHING


def test_expired_samples_are_removed(times: ThrottleTimes) -> None:
    for sample in range(100):
        times.record(1, sample, sample * 30_000.0)
    assert times.of_node(1, 99 * 30_000.0) == ThrottleTime(98.5, 99.0)
