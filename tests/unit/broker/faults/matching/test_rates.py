"""Rates in bytes per second."""

import pytest

from sluice.broker.faults.matching.errors import RuleProblem
from sluice.broker.faults.matching.rates import Rate, parse_bytes_per_s


@pytest.mark.parametrize(
    ("written", "bytes_per_s"), [(50_000, 5e4), (0.5, 0.5), ("50k", 5e4), ("1M", 1e6), ("64Ki", 65_536)]
)
def test_rate_is_parsed(written: Rate, bytes_per_s: float) -> None:
    assert parse_bytes_per_s(written, "rate") == bytes_per_s


def test_missing_rate_is_none() -> None:
    assert parse_bytes_per_s(None, "rate") is None


@pytest.mark.parametrize("written", ["fast", "", 0, -1, "0", float("inf"), float("nan"), 10**400])
def test_rate_that_is_not_a_positive_number_is_rejected(written: Rate) -> None:
    with pytest.raises(RuleProblem) as raised:
        parse_bytes_per_s(written, "action.in_bytes_per_s")
    assert raised.value.path == "action.in_bytes_per_s"
    assert raised.value.problem.startswith("expected 50k, 1M, 64Ki, or a number of bytes per second")
