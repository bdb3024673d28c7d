"""Kafka's windowed arithmetic: golden figures and invariants for any recorded history."""

from copy import deepcopy
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.quotas.sensor import MAX_THROTTLE_TIME_MS, UNLIMITED, Rate, RateUpTo37, Sensor, throttle_time_ms, whole_ms

MB = 1e6
Q = 5 * MB  # the quota of the golden figures, bytes/s
History = list[tuple[int, float]]  # (ms, bytes)

COLD_BURST = [(t, 5 * MB) for t in range(0, 9000, 1000)] + [(9000, 15 * MB)]
STEADY = [(t, 5 * MB) for t in range(0, 20000, 1000)]
ONE_BURST = [(0, 60 * MB)]
SMOOTH = [(t, 50_000.0) for t in range(0, 20501, 10)]
GAP = [(0, MB), (900, MB), (11500, MB)]
UNEVEN = [(t, 1.85 * MB) for t in range(0, 29971, 370)]

# Figures of the real classes of Kafka 3.8 and later: history, probe (ms), rate, window size (ms), throttle time (ms).
GOLDEN: dict[str, tuple[History, int, float, int, int]] = {
    "KIP-13's example waits 2 s": (COLD_BURST, 9000, 6000000.0, 10000, 2000),
    "half a second after the burst the open window counts": (COLD_BURST, 9500, 5714285.714285715, 10500, 1500),
    "just before the window is full the divisor is largest": (COLD_BURST, 9999, 5455041.3673970355, 10999, 1001),
    "one full window later the divisor falls back to the minimum": (COLD_BURST, 10000, 6000000.0, 10000, 2000),
    "the sawtooth restarts": (COLD_BURST, 10001, 5999400.059994001, 10001, 1999),
    "2 s later the client is still above its quota": (COLD_BURST, 11000, 5500000.0, 10000, 1000),
    "a client that obeyed is throttled again": ([*COLD_BURST, (11000, 5 * MB)], 11000, 6000000.0, 10000, 2000),
    "a new sensor accepts 5 MB/s on full seconds": (STEADY[:10], 9000, 5000000.0, 10000, 0),
    "a sensor ten seconds old throttles 5 MB/s on full seconds": (STEADY[:11], 10000, 5500000.0, 10000, 1000),
    "and continues to do so": (STEADY, 19000, 5500000.0, 10000, 1000),
    "KIP-13's example waits 3 s on a warm sensor": ([*STEADY, (20000, 15 * MB)], 20000, 6500000.0, 10000, 3000),
    "3 s later the warm sensor is at its quota": ([*STEADY, (20000, 15 * MB)], 23000, 5000000.0, 10000, 0),
    "one burst is averaged over ten seconds": (ONE_BURST, 0, 6e6, 10000, 2000),
    "one burst 1 ms later": (ONE_BURST, 1, 5999400.059994001, 10001, 1999),
    "one burst 999 ms later": (ONE_BURST, 999, 5455041.3673970355, 10999, 1001),
    "one burst 1 s later looks new": (ONE_BURST, 1000, 6e6, 10000, 2000),
    "one burst counts for 11 s": (ONE_BURST, 10999, 5455041.3673970355, 10999, 1001),
    "one burst expires after 11 s": (ONE_BURST, 11000, 0.0, 10000, 0),
    "a rate at the bound is not above it": ([(0, 50_000_000.0)], 0, 5000000.0, 10000, 0),
    "above the bound by less than half a millisecond": ([(0, 50_002_499.0)], 0, 5000249.9, 10000, 0),
    "above the bound by half a millisecond": ([(0, 50_002_500.0)], 0, 5000250.0, 10000, 1),
    "a sample counts for 11 s from its last event": (GAP, 11500, 260869.5652173913, 11500, 0),
    "smooth traffic at the quota, at a full second": (SMOOTH[:2001], 20000, 5004545.454545454, 11000, 10),
    "smooth traffic at the quota, half a second later": (SMOOTH, 20500, 5004347.826086956, 11500, 10),
    "requests that straddle window boundaries": (UNEVEN, 29970, 5166666.666666667, 11100, 370),
    "an unrecorded fetch leaves no trace": ([(0, 70 * MB), (0, -70 * MB)], 0, 0.0, 10000, 0),
}


def quota_sensor(bound: float, num_samples: int = 11, window_ms: int = 1000) -> Sensor:
    return Sensor(Rate(num_samples, window_ms), bound, 0)


@pytest.mark.parametrize(("history", "probe_ms", "rate", "window_ms", "throttle_ms"), GOLDEN.values(), ids=GOLDEN)
def test_golden_figure(history: History, probe_ms: int, rate: float, window_ms: int, throttle_ms: int) -> None:
    sensor = quota_sensor(Q)
    response = None
    for now_ms, value in history:
        response = sensor.record_and_get_throttle_time_ms(value, now_ms)
        last_ms = now_ms
    if probe_ms == last_ms:
        assert response == throttle_ms, "the throttle time of the last request"
    assert sensor.rate.measure(probe_ms).hex() == rate.hex()
    assert sensor.rate.window_size_ms(probe_ms) == window_ms
    assert (throttle_time_ms(rate, Q, window_ms) if rate > Q else 0) == throttle_ms


# The same histories in Kafka 3.7.1, where the figures differ from those above.
GOLDEN_UP_TO_37: dict[str, tuple[History, int, float, int, int]] = {
    "a sample counts for 11 s from its start": (GAP, 11500, 100000.0, 10000, 0),
    "smooth traffic at the quota, at a full second": (SMOOTH[:2001], 20000, 5005000.0, 10000, 10),
    "smooth traffic at the quota, half a second later": (SMOOTH, 20500, 5004761.904761905, 10500, 10),
    "requests that straddle window boundaries": (UNEVEN, 29970, 4713375.796178344, 10990, 0),
    "KIP-13's example waits 2 s in 3.7 as well": (COLD_BURST, 9000, 6000000.0, 10000, 2000),
}


@pytest.mark.parametrize(
    ("history", "probe_ms", "rate", "window_ms", "throttle_ms"), GOLDEN_UP_TO_37.values(), ids=GOLDEN_UP_TO_37
)
def test_golden_figure_up_to_kafka_3_7(
    history: History, probe_ms: int, rate: float, window_ms: int, throttle_ms: int
) -> None:
    sensor = Sensor(RateUpTo37(11, 1000), Q, 0)
    for now_ms, value in history:
        response = sensor.record_and_get_throttle_time_ms(value, now_ms)
    assert response == throttle_ms, "the throttle time of the last request"
    assert sensor.rate.measure(probe_ms).hex() == rate.hex()
    assert sensor.rate.window_size_ms(probe_ms) == window_ms


def test_client_that_serves_its_delays_sees_the_known_sequence() -> None:
    sensor = quota_sensor(1e6)
    now_ms, throttled = 0, []
    for _ in range(60):
        throttle_ms = sensor.record_and_get_throttle_time_ms(1e6, now_ms)
        if throttle_ms > 1:
            throttled.append((now_ms, throttle_ms))
        now_ms += max(throttle_ms, 1)
    assert throttled[:13] == [
        (10, 990),
        (1000, 2000),
        (3000, 3000),
        (6000, 4000),
        (10000, 5000),
        (15008, 992),
        (16000, 2000),
        (18000, 2000),
        (20000, 3000),
        (23000, 3000),
        (26000, 3000),
        (29007, 993),
        (30000, 2000),
    ]


THROTTLE_TIMES = {
    "half a millisecond rounds up": (5000250.0, Q, 10000, 1),
    "just under half rounds down": (0.49999999999999994, 0.0, 0, 0),
    "one and a half rounds up, not to the even neighbour above": (2.5, 0.0, 0, 3),
    "the largest int32 is the limit where Kafka up to 4.3 wraps to -2094977296": (
        220000.0,
        1.0,
        10000,
        MAX_THROTTLE_TIME_MS,
    ),
    "an infinite rate gives the longest throttle time": (float("inf"), 1.0, 10000, MAX_THROTTLE_TIME_MS),
    "a quota of 0 gives the longest throttle time": (1.0, 0.0, 10000, MAX_THROTTLE_TIME_MS),
    "the smallest quota gives the longest throttle time": (1.0, 5e-324, 10000, MAX_THROTTLE_TIME_MS),
}


@pytest.mark.parametrize(("rate", "bound", "window_ms", "expected_ms"), THROTTLE_TIMES.values(), ids=THROTTLE_TIMES)
def test_throttle_time(rate: float, bound: float, window_ms: int, expected_ms: int) -> None:
    # With a window of 0, `rate` is the unrounded throttle time.
    found_ms = throttle_time_ms(rate, bound, window_ms) if window_ms else whole_ms(rate)
    assert found_ms == expected_ms


def test_sensor_without_a_limit_never_throttles() -> None:
    assert quota_sensor(UNLIMITED).record_and_get_throttle_time_ms(2.0**63, 0) == 0


def test_values_are_added_with_one_rounding_each() -> None:
    rate = Rate(11, 1000)
    for slot in range(11):
        rate.record(0.1, slot * 1000)
    # Eleven tenths add up to 1.1 in exact or compensated arithmetic, but to 1.0999999999999999 one after the other.
    assert rate.measure(10_000) == 1.0999999999999999 / 10.0 != 1.1 / 10.0


def test_values_are_added_in_slot_order_not_in_time_order() -> None:
    rate = Rate(2, 1000)  # three slots
    for now_ms, value in ((0, 1.0), (1000, 1.0), (1900, 0.0), (2000, 1.0), (3000, 1e16)):
        rate.record(value, now_ms)
    # 1e16 is in the first slot. Adding 1 to it changes nothing; adding 2 would.
    assert rate.measure(3000) == 1e16 / 2.0 != (1.0 + 1.0 + 1e16) / 2.0


def test_clock_stepping_back_before_the_oldest_sample_shortens_the_window_like_javas_remainder() -> None:
    rate = Rate(11, 1000)
    rate.record(1.0, 10_000)
    assert rate.window_size_ms(9_700) == 10_000 - 300


def test_quota_of_0_does_not_throttle_without_usage() -> None:
    sensor = quota_sensor(0.0)
    assert sensor.record_and_get_throttle_time_ms(0.0, 0) == 0
    assert sensor.record_and_get_throttle_time_ms(1.0, 0) == MAX_THROTTLE_TIME_MS


# Clock steps: mostly small, sometimes longer than one or all windows, sometimes backward.
STEPS = st.one_of(st.integers(0, 400), st.sampled_from([999, 1000, 1001, 10999, 11000, 11001, 30000, -1, -700, -15000]))
EVENTS = st.lists(st.tuples(STEPS, st.integers(-1000, 10**9), st.booleans()), min_size=1, max_size=60)


@given(EVENTS, st.integers(1, 12), st.sampled_from([2**63, 3, 1]))
def test_record_and_measure_in_one_step_equal_two_separate_steps(
    events: list[tuple[int, int, bool]], num_samples: int, event_window: int
) -> None:
    in_one, apart = Rate(num_samples, 1000, event_window), Rate(num_samples, 1000, event_window)
    now_ms = 50_000
    for step_ms, value, only_record in events:
        now_ms += step_ms
        apart.record(value, now_ms)
        if only_record:
            in_one.record(value, now_ms)
        else:
            assert in_one.record_and_measure(value, now_ms).hex() == apart.measure(now_ms).hex()
            assert in_one.window_size_ms(now_ms) == apart.window_size_ms(now_ms)


@given(EVENTS, st.integers(1, 12), st.integers(1, 10**11), st.sampled_from([Rate, RateUpTo37]), st.integers(1, 60))
def test_combined_sensor_equals_record_measure_and_compare(
    events: list[tuple[int, int, bool]], num_samples: int, bound: int, arithmetic: type[Rate], peeks_every: int
) -> None:
    sensor, apart = Sensor(arithmetic(num_samples, 1000), float(bound), 0), arithmetic(num_samples, 1000)
    now_ms = 50_000
    for number, (step_ms, value, only_record) in enumerate(events):
        now_ms += step_ms
        apart.record(value, now_ms)
        if only_record:
            sensor.record(value, now_ms)
            continue
        if number == 30:
            bound //= 2
            sensor.hold_to(float(bound))
        found = sensor.record_and_get_throttle_time_ms(value, now_ms)
        rate = apart.measure(now_ms)
        expected = throttle_time_ms(rate, float(bound), apart.window_size_ms(now_ms)) if rate > bound else 0
        assert found == expected
        if number % peeks_every == 0:  # merge the sensor's own count into its rate
            assert sensor.rate.peek(now_ms).hex() == apart.peek(now_ms).hex()
    assert sensor.rate.peek(now_ms).hex() == apart.peek(now_ms).hex()


@given(
    st.lists(st.tuples(st.integers(0, 200), st.floats(0, 5000)), min_size=5, max_size=120),
    st.sampled_from([Rate, RateUpTo37]),
    st.integers(1, 60),
)
def test_fractions_below_the_bound_are_added_as_the_plain_rate_adds_them(
    events: list[tuple[int, float]], arithmetic: type[Rate], peeks_every: int
) -> None:
    sensor, apart = Sensor(arithmetic(11, 1000), 1e6, 0), arithmetic(11, 1000)
    now_ms = 50_000
    for number, (step_ms, value) in enumerate(events):
        now_ms += step_ms
        apart.record_and_measure(value, now_ms)
        assert sensor.record_and_get_throttle_time_ms(value, now_ms) == 0
        if number % peeks_every == 0:
            assert sensor.rate.peek_samples(now_ms) == apart.peek_samples(now_ms)
    assert sensor.rate.peek_samples(now_ms) == apart.peek_samples(now_ms)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5000)), min_size=20, max_size=120),
    st.integers(1000, 300_000),
    st.sampled_from([Rate, RateUpTo37]),
)
def test_values_recorded_in_bulk_equal_values_recorded_one_by_one(
    events: list[tuple[int, int]], bound: int, arithmetic: type[Rate]
) -> None:
    at_once, apart = (Sensor(arithmetic(11, 1000), float(bound), 0) for _ in range(2))
    now_ms, run = 50_000, [0, 0, 0]  # value, count, ms of the last
    for step_ms, value in events:
        now_ms += step_ms
        throttle_ms = apart.record_and_get_throttle_time_ms(float(value), now_ms)
        room = at_once.room()
        if run[0] + value < room.value and room.from_ms <= now_ms < room.until_ms:
            assert throttle_ms == 0
            run = [run[0] + value, run[1] + 1, now_ms]
            continue
        if run[1]:
            at_once.record_in_room(float(run[0]), run[1], run[2])
            run = [0, 0, 0]
        assert at_once.record_and_get_throttle_time_ms(float(value), now_ms) == throttle_ms
        assert at_once.rate.peek_samples(now_ms) == apart.rate.peek_samples(now_ms)
        assert at_once.last_record_ms == apart.last_record_ms


@given(EVENTS, st.integers(1, 12))
def test_cached_staleness_equals_a_scan_of_all_samples(events: list[tuple[int, int, bool]], num_samples: int) -> None:
    cached, looked_up = Rate(num_samples, 1000), Rate(num_samples, 1000)
    now_ms = 50_000
    for step_ms, value, measures in events:
        now_ms += step_ms
        cached.record(value, now_ms)
        looked_up.record(value, now_ms)
        if measures:
            looked_up._fresh_until_ms = now_ms  # to purge samples
            assert cached.measure(now_ms).hex() == looked_up.measure(now_ms).hex()
            assert cached.window_size_ms(now_ms) == looked_up.window_size_ms(now_ms)


@given(EVENTS, st.integers(1, 12), STEPS)
def test_peeking_returns_the_measured_value_without_side_effects(
    events: list[tuple[int, int, bool]], num_samples: int, last_step_ms: int
) -> None:
    watched, alone = Rate(num_samples, 1000), Rate(num_samples, 1000)
    now_ms = 50_000
    for step_ms, value, peeks in [*events, (last_step_ms, 1, True)]:
        now_ms += step_ms
        if peeks:
            measured = deepcopy(alone)
            assert watched.peek(now_ms).hex() == measured.measure(now_ms).hex()
            assert watched.peek_window_size_ms(now_ms) == measured.window_size_ms(now_ms)
        assert watched.record_and_measure(value, now_ms).hex() == alone.record_and_measure(value, now_ms).hex()


@given(EVENTS, st.integers(1, 12))
def test_window_covers_the_full_windows_and_at_most_two_more(
    events: list[tuple[int, int, bool]], num_samples: int
) -> None:
    rate = Rate(num_samples, 1000)
    now_ms = 50_000
    for step_ms, value, _ in events:
        now_ms += max(step_ms, 0)  # a backward clock step may go below the minimum, by less than one window
        rate.record(value, now_ms)
        assert max((num_samples - 1) * 1000, 1) <= rate.window_size_ms(now_ms) < (num_samples + 1) * 1000


def test_backward_clock_step_never_makes_the_window_empty() -> None:
    for num_samples in (1, 2, 11):
        rate = Rate(num_samples, 1000)
        rate.record(1.0, 10_000)
        sizes = [rate.window_size_ms(now_ms) for now_ms in range(10_000, 0, -100)]
        assert min(sizes) >= max((num_samples - 2) * 1000, 1)


@given(bound=st.integers(10_000, 10**9), requests_per_s_at_quota=st.floats(10, 200), gap_ms=st.integers(1, 2))
def test_serving_the_delays_keeps_a_client_at_its_quota_over_whole_cycles(
    bound: int, requests_per_s_at_quota: float, gap_ms: int
) -> None:
    # The client sends as fast as allowed: the next request `gap_ms` after the previous one, or when its delay is over.
    # A cycle starts with an accepted request and ends with the first accepted one at least ten windows later: a
    # burst, then a delay until the samples of the burst have expired.
    sensor = quota_sensor(float(bound))
    value = bound / requests_per_s_at_quota
    now_ms, sent, cycles = 0, 0.0, [(0, 0.0)]
    while now_ms < 36_000:
        throttle_ms = sensor.record_and_get_throttle_time_ms(value, now_ms)
        if throttle_ms == 0 and now_ms - cycles[-1][0] >= 10_000:
            cycles.append((now_ms, sent))
        sent += value
        now_ms += max(throttle_ms, gap_ms)
    assert len(cycles) >= 3, "two cycles of 11 to 12 s in 36 s"
    for (start_ms, sent_before), (end_ms, sent_by_then) in pairwise(cycles):
        ratio = (sent_by_then - sent_before) / ((end_ms - start_ms) / 1000) / bound
        assert 0.95 <= ratio <= 1.05, f"from {start_ms} to {end_ms} ms"
