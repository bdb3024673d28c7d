"""docs/explanation/limits.md is up to date, and each limit has a test."""

import pytest

from tools.docs.limits import PAGE, ROOT, SECTIONS, Limit, page

LIMITS = [limit for limits in SECTIONS.values() for limit in limits]


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run `python -m tools.docs.limits`"


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.subject)
def test_limit_has_a_test(limit: Limit) -> None:
    file, _, name = limit.test.partition("::")
    assert f"def {name}(" in (ROOT / "tests/unit" / file).read_text(), limit.test
