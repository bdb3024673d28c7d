"""The token bucket of KIP-599."""

import pytest

from sluice.quotas.sensor import MAX_THROTTLE_TIME_MS
from sluice.quotas.token_bucket import TokenBucket

NOW_MS = 1_700_000_000_000  # with timestamps since 1970, an unused bucket is full


def test_kip_example_waits_twelve_seconds() -> None:
    bucket = TokenBucket(5.0, num_samples=100, window_ms=1000)
    bucket.record(560.0, NOW_MS)
    assert bucket.measure(NOW_MS) == -60.0
    assert bucket.throttle_time_ms(NOW_MS) == 12_000
    assert bucket.throttle_time_ms(NOW_MS + 1000) == 11_000
    assert bucket.throttle_time_ms(NOW_MS + 12_000) == 0
    assert bucket.measure(NOW_MS + 500_000) == 500.0, "the capacity is the sum of all samples"


def test_empty_bucket_has_no_debt() -> None:
    bucket = TokenBucket(5.0, num_samples=11, window_ms=1000)
    bucket.record(55.0, NOW_MS)
    assert bucket.measure(NOW_MS) == 0.0
    assert bucket.throttle_time_ms(NOW_MS) == 0


def test_bucket_that_starts_with_the_clock_is_empty() -> None:
    assert TokenBucket(5.0, num_samples=11, window_ms=1000).measure(0) == 0.0


def test_returned_tokens_do_not_overflow_the_bucket() -> None:
    bucket = TokenBucket(5.0, num_samples=11, window_ms=1000)
    bucket.record(-100.0, NOW_MS)
    assert bucket.measure(NOW_MS) == 55.0
    bucket.record(-100.0, NOW_MS)
    bucket.bound = 50.0
    assert bucket.measure(NOW_MS) == 55.0, "nor do they reappear when the bucket grows"


@pytest.mark.parametrize("bound", [0.0, 5e-324], ids=["a quota of 0", "the smallest quota"])
def test_unpayable_debt_gives_the_longest_throttle_time(bound: float) -> None:
    bucket = TokenBucket(bound, num_samples=11, window_ms=1000)
    bucket.record(bucket.measure(NOW_MS), NOW_MS)
    assert bucket.throttle_time_ms(NOW_MS) == 0
    bucket.record(1.0, NOW_MS)
    assert bucket.throttle_time_ms(NOW_MS) == MAX_THROTTLE_TIME_MS
