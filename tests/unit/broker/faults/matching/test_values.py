import pytest

from sluice.broker.faults.matching.values import Duration, Rate, RuleProblem, parse_bytes_per_s, parse_ms


@pytest.mark.parametrize(
    ("written", "ms"),
    [("250ms", 250), ("5s", 5_000), ("2m", 120_000), ("0.5s", 500), (" 5 s ", 5_000), (7, 7), (0.5, 0.5), ("0ms", 0)],
)
def test_duration_is_parsed(written: Duration, ms: float) -> None:
    assert parse_ms(written, "after") == ms


INVALID_DURATIONS = [
    *("", "5", "5 parsecs", "-5s", "5s 3ms", "5\ns", "1h", "9999999m", "9" * 400 + "s"),
    *(-1, float("nan"), float("inf"), 10**400),
]


@pytest.mark.parametrize("written", INVALID_DURATIONS)
def test_invalid_duration_is_rejected(written: Duration) -> None:
    with pytest.raises(RuleProblem) as raised:
        parse_ms(written, "after")
    assert raised.value.path == "after"


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
