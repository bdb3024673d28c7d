"""Each limit in docs/explanation/limits.md has a test."""

import pytest

from tools.docs.reference.limits import ROOT, SECTIONS, Limit

LIMITS = [limit for limits in SECTIONS.values() for limit in limits]


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.subject)
def test_limit_has_a_test(limit: Limit) -> None:
    file, _, name = limit.test.partition("::")
    assert f"def {name}(" in (ROOT / "tests/unit" / file).read_text(), limit.test
