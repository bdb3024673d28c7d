"""Version ranges in Kafka's notation."""

import pytest

from sluice.protocol.types import LAST_VERSION, Range, Versions


@pytest.mark.parametrize(
    ("text", "first", "last"), [("3+", 3, LAST_VERSION), ("0-14", 0, 14), ("5", 5, 5), ("10-12", 10, 12)]
)
def test_range_contains_both_ends_and_nothing_outside(text: str, first: int, last: int) -> None:
    versions = Range(text)
    assert (versions.first, versions.last) == (first, last)
    assert first in versions
    assert last in versions
    assert first - 1 not in versions
    assert last + 1 not in versions


def test_none_contains_no_version() -> None:
    versions = Range("none")
    assert not any(version in versions for version in range(LAST_VERSION + 2))


def test_api_without_flexible_versions() -> None:
    versions = Versions("0-1", flexible="none")
    assert (versions.min, versions.max, versions.latest_unstable) == (0, 1, False)
    assert 0 not in versions.flexible
    assert versions.flexible.first > 1
