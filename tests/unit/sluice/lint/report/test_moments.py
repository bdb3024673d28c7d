"""Times of day."""

import pytest

from sluice.lint.report.text import moment
from tests.support.journals import ns


@pytest.mark.parametrize(("at_ms", "shown"), [(0, "22:13:20.000"), (1.9, "22:13:20.001"), (999, "22:13:20.999")])
def test_moments_have_milliseconds(at_ms: float, shown: str) -> None:
    assert moment(ns(at_ms)) == shown
