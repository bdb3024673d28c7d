"""Ranges of versions as Kafka writes them."""

import pytest

from sluice.protocol.types import LAST_VERSION, Range, Versions


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [("3+", 3, LAST_VERSION), ("0-14", 0, 14), ("5", 5, 5), ("10-12", 10, 12)],
)
def test_a_range_holds_both_its_ends_and_nothing_outside(text: str, first: int, last: int) -> None:
    versions = Range(text)
    assert (versions.first, versions.last) == (first, last)
    assert first in versions
    assert last in versions
    assert first - 1 not in versions
    assert last + 1 not in versions


def test_none_holds_no_version() -> None:
    versions = Range("none")
    assert not any(version in versions for version in range(LAST_VERSION + 2))


def test_an_api_without_flexible_versions_has_none_of_them() -> None:
    versions = Versions("0-1", flexible="none")
    assert (versions.min, versions.max, versions.latest_unstable) == (0, 1, False)
    assert 0 not in versions.flexible
    assert versions.flexible.first > 1
