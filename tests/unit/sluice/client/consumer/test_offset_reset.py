"""Offset reset policies as timestamps."""

import pytest

from sluice.client.consumer.offset_reset import offset_reset

NOW_MS = 1_700_000_000_000


POLICIES = [
    ("earliest", -2),
    ("latest", -1),
    ("by_duration:PT0S", NOW_MS),
    ("by_duration:P1D", NOW_MS - 86_400_000),
    ("by_duration:P1DT2H3M4.5S", NOW_MS - 86_400_000 - 7_200_000 - 180_000 - 4_500),
    ("by_duration:pt5m", NOW_MS - 300_000),
]


@pytest.mark.parametrize(("configured", "timestamp"), POLICIES)
def test_timestamp_of_the_policy(configured: str, timestamp: int) -> None:
    assert offset_reset(configured).timestamp(NOW_MS) == timestamp
