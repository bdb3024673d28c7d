"""What searches have found in aiokafka: each failure is due to a few words of its source.

A defect that is mended in the installed version is repeated without its fix, and one that is not mended is not repeated
with a fix. `tools/campaign run explore-history --repeat` repeats them in the versions themselves.
"""

import json

import aiokafka
import pytest

from tests.support.fixed_hashes import start
from tools.explore.changes import CHANGES, applied
from tools.explore.history import FINDINGS


def errors(is_changed: int) -> str:
    """Return how each finding ends as JSON, in the installed version or with the changes."""
    found: dict[str, str] = {}
    for name, finding in FINDINGS.items():
        with applied([name] if is_changed else []):
            outcome = finding.outcome()
        found[name] = outcome.error if is_changed or not outcome.missed else f"missed: {outcome.missed}"
    return json.dumps(found)


def test_each_finding_has_its_cause() -> None:
    assert CHANGES.keys() == FINDINGS.keys()


@pytest.mark.parametrize("is_changed", [0, 1], ids=["as it is", "with the changes"])
def test_findings_in_the_installed_version(is_changed: int) -> None:
    expected = {name: "" if bool(each.mended) != is_changed else each.error for name, each in FINDINGS.items()}
    assert json.loads(start(__name__, f"errors({is_changed})").communicate()[0]) == expected


def test_findings_that_are_not_mended_are_those_of_the_installed_version() -> None:
    assert {each.version for each in FINDINGS.values() if not each.mended} == {aiokafka.__version__}
