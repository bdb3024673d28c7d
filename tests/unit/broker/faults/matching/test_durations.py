import pytest

from sluice.broker.faults.matching.durations import Duration, parse_ms
from sluice.broker.faults.matching.errors import RuleProblem


@pytest.mark.parametrize(
    ("written", "ms"),
    [("250ms", 250), ("5s", 5_000), ("2m", 120_000), ("0.5s", 500), (" 5 s ", 5_000), (7, 7), (0.5, 0.5), ("0ms", 0)],
)
def test_duration_is_parsed(written: Duration, ms: float) -> None:
    assert parse_ms(written, "after") == ms


@pytest.mark.parametrize(
    "written",
    [
        *("", "5", "5 parsecs", "-5s", "5s 3ms", "5\ns", "1h", "9999999m", "9" * 400 + "s"),
        *(-1, float("nan"), float("inf"), 10**400),
    ],
)
def test_invalid_duration_is_rejected(written: Duration) -> None:
    with pytest.raises(RuleProblem) as raised:
        parse_ms(written, "after")
    assert raised.value.path == "after"
