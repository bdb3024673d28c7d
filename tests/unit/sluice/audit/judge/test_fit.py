"""The model fit, on waits with a known rule and machine lag."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.audit.judge.fit import CONSTANT, EXPONENTIAL, LINEAR, fit
from sluice.audit.judge.model.verdict import Fit

ROWS, LENGTH = 200, 9  # of 50 rows, 1 in 100 with the largest jitter and multiplier has a multiplier of 3.3


def exponential(random: Random, base_ms: float, multiplier: float, cap_ms: float, jitter: float) -> list[list[float]]:
    """Draw waits as Kafka's class does: the cap is applied last."""
    return [
        [
            min(min(base_ms * multiplier**n, cap_ms) * random.uniform(1 - jitter, 1 + jitter), cap_ms)
            for n in range(LENGTH)
        ]
        for _ in range(ROWS)
    ]


def late(rows: list[list[float]], random: Random, mean_ms: float) -> list[list[float]]:
    """Add scheduling lag with this mean; waits get longer, never shorter."""
    return [[wait + (random.expovariate(1 / mean_ms) if mean_ms else 0) for wait in row] for row in rows]


def fitted(rows: list[list[float]], seed: int = 0) -> Fit:
    found = fit(rows, Random(seed))
    assert found is not None
    return found


@given(
    seed=st.integers(0, 2**32),
    base_ms=st.sampled_from([50.0, 100.0, 250.0]),
    multiplier=st.sampled_from([1.5, 2.0, 3.0]),
    jitter=st.sampled_from([0.1, 0.2, 0.3]),
)
@settings(max_examples=10)
def test_base_multiplier_cap_and_jitter_are_found(seed: int, base_ms: float, multiplier: float, jitter: float) -> None:
    random = Random(seed)
    cap_ms = 10 * base_ms
    found = fitted(exponential(random, base_ms, multiplier, cap_ms, jitter))
    assert (found.model, found.multiplier) == (EXPONENTIAL, multiplier)
    assert found.base_ms == pytest.approx(base_ms, rel=0.05)
    assert found.cap_ms == pytest.approx(cap_ms, rel=0.05)
    assert found.jitter == pytest.approx(jitter, abs=0.1 * jitter + 0.01)
    assert found.confidence > 0.9


@given(seed=st.integers(0, 2**32), mean_ms=st.sampled_from([0.5, 2.0, 5.0]))
@settings(max_examples=6)
def test_machine_lag_keeps_the_model_and_nearly_its_numbers(seed: int, mean_ms: float) -> None:
    random = Random(seed)
    found = fitted(late(exponential(random, 100, 2, 1000, 0.2), random, mean_ms))
    assert (found.model, found.multiplier) == (EXPONENTIAL, 2)
    assert 95 <= found.base_ms <= 105 + 3 * mean_ms
    assert found.cap_ms is not None
    assert 1000 <= found.cap_ms <= 1000 + 4 * mean_ms


@pytest.mark.parametrize(
    ("looks", "rows", "cap_ms"),
    [(1, 200, 1000), (2, 700, 1000), (2, 900, 850)],
    ids=["polled once", "polled twice", "polled twice, with the wait before the cap near it"],
)
@pytest.mark.parametrize("seed", range(2))
def test_repeated_draws_keep_base_cap_and_jitter(seed: int, looks: int, rows: int, cap_ms: float) -> None:
    random = Random(seed)

    def redrawn(value_ms: float) -> float:
        waited = 0.0
        while True:
            draws = [min(value_ms * random.uniform(0.8, 1.2), cap_ms) for _ in range(looks)]
            if all(draw <= waited for draw in draws):
                return waited
            waited = next(draw for draw in draws if draw > waited)

    found = fitted([[redrawn(100 * 2**n) for n in range(6)] for _ in range(rows)])
    assert (found.model, found.multiplier) == (EXPONENTIAL, 2)
    assert found.base_ms == pytest.approx(100, rel=0.05)
    assert found.cap_ms == pytest.approx(cap_ms)
    assert found.jitter == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize("jitter", [0.0, 0.1, 0.2])
def test_equal_waits_are_constant(jitter: float) -> None:
    random = Random(3)
    found = fitted([[100 * random.uniform(1 - jitter, 1 + jitter) for _ in range(8)] for _ in range(8)])
    assert (found.model, found.multiplier, found.cap_ms) == (CONSTANT, 1, None)
    assert found.base_ms == pytest.approx(100, rel=0.05)
    assert found.jitter == pytest.approx(jitter, abs=0.02)


def test_waits_with_a_fixed_increment_are_linear_up_to_their_cap() -> None:
    found = fitted([[min(100.0 * (n + 1), 800) for n in range(14)] for _ in range(5)])
    assert (found.model, found.cap_ms) == (LINEAR, 800)
    assert found.base_ms == pytest.approx(100, rel=0.05)
    assert found.multiplier == pytest.approx(100, rel=0.05)


def test_cap_before_jitter_is_in_the_middle_of_the_observed_waits() -> None:
    random = Random(5)
    rows = [[min(50 * 2**n, 1000) * random.uniform(0.8, 1.2) for n in range(14)] for _ in range(10)]
    found = fitted(rows)
    assert found.cap_ms == pytest.approx(1000, rel=0.05)


CAPS = {
    "a fifth of many waits are equal: that is the cap": (9, 800),
    "fewer equal waits may be chance: the cap is in the middle": (5, 720),
}


@pytest.mark.parametrize(("capped", "cap_ms"), CAPS.values(), ids=CAPS)
def test_cap_that_draws_rarely_reach(capped: int, cap_ms: float) -> None:
    others = 32 - capped
    draws = [800.0] * capped + [640 + 158 * number / others for number in range(others)]
    found = fitted([[100.0, 200.0, 400.0, 800.0, draw] for draw in draws])
    assert found.cap_ms == pytest.approx(cap_ms)


def test_outlier_does_not_move_the_base() -> None:
    found = fitted([[100.0 + number % 3 for number in range(30)], [2000.0]], 1)
    assert found.model == CONSTANT
    assert found.base_ms == pytest.approx(101, abs=1)
    assert found.jitter < 0.02


def test_two_waits_fit_any_model() -> None:
    assert fit([[100, 200]], Random(0)) is None


def test_fit_is_deterministic() -> None:
    rows = exponential(Random(9), 100, 2, 1000, 0.2)
    assert fit(rows, Random(4)) == fit(rows, Random(4))
