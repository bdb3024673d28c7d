"""Kafka's backoff to the millisecond, the KIPs' variants, and injected randomness."""

from collections.abc import Callable
from random import Random

import pytest

from sluice.client.backoff import (
    Backoff,
    ExponentialBackoff,
    KipReconnectBackoff,
    KipRetryBackoff,
    StaticBackoff,
    Uniform,
)


def always(factor: float) -> Uniform:
    return lambda low, high: low + (high - low) * factor


def kafka(base_ms: int, max_ms: int, uniform: Uniform) -> Backoff:
    return ExponentialBackoff(base_ms, 2, max_ms, 0.2, uniform)


MIDDLE, LOWEST, HIGHEST = always(0.5), always(0.0), always(1.0)
CASES = {
    "KIP-580 doubles": (KipRetryBackoff, 100, 1000, MIDDLE, [100, 200, 400, 800, 1000, 1000]),
    "KIP-580 caps after jitter": (KipRetryBackoff, 100, 1000, HIGHEST, [119, 239, 479, 959, 1000, 1000]),
    "KIP-580 has jitter if both are equal": (KipRetryBackoff, 100, 100, LOWEST, [80, 100, 100]),
    "KIP-580 is constant if the base is above the maximum": (KipRetryBackoff, 500, 200, LOWEST, [200, 200]),
    "KIP-144's jitter exceeds the maximum": (KipReconnectBackoff, 100, 1000, HIGHEST, [119, 239, 479, 959, 1199, 1199]),
    "KIP-144's jitter goes below": (KipReconnectBackoff, 100, 1000, LOWEST, [80, 160, 320, 640, 800, 800]),
}


@pytest.mark.parametrize(("make", "base_ms", "max_ms", "uniform", "expected"), CASES.values(), ids=CASES)
def test_backoff(
    make: Callable[[int, int, Uniform], Backoff], base_ms: int, max_ms: int, uniform: Uniform, expected: list[int]
) -> None:
    backoff = make(base_ms, max_ms, uniform)
    assert [backoff.backoff(attempts) for attempts in range(len(expected))] == expected


@pytest.mark.parametrize("make", [kafka, KipRetryBackoff, KipReconnectBackoff])
def test_backoff_after_a_week_of_failures_is_the_maximum(make: Callable[[int, int, Uniform], Backoff]) -> None:
    assert make(100, 1000, MIDDLE).backoff(1_000_000) == 1000


def test_same_seed_gives_the_same_backoffs() -> None:
    series = [[kafka(100, 1000, Random(seed).uniform).backoff(n) for n in range(5)] for seed in (7, 7, 8)]
    assert series[0] == series[1]
    assert series[0] != series[2]


def test_static_backoff_is_constant() -> None:
    assert [StaticBackoff(100).backoff(attempts) for attempts in (0, 1, 9)] == [100, 100, 100]
