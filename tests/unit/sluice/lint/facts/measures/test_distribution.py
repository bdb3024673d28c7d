"""Distributions: exact below 16, and within 1/8 above."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.lint.facts.measures.distribution import Distribution


def of(values: list[int]) -> Distribution:
    found = Distribution()
    for value in values:
        found.add(value)
    return found


def test_an_empty_distribution_is_zero() -> None:
    found = of([])
    assert (found.mean, found.quantile(0.5)) == (0.0, 0)


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 2), (0.75, 3), (1.0, 10)])
def test_small_values_are_exact(share: float, value: int) -> None:
    assert of([1, 2, 3, 10]).quantile(share) == value


@given(st.lists(st.integers(0, 1 << 40), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_at_most_an_eighth_too_high(values: list[int], share: float) -> None:
    found = of(values)
    exact = sorted(values)[max(0, -int(-share * len(values) // 1) - 1)]
    assert exact <= found.quantile(share) <= exact * 9 / 8
    assert found.mean == sum(values) / len(values)
