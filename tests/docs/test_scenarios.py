"""The README has the number of scenarios in the catalogue."""

from sluice.broker.scenarios.files import entries
from tools.docs.reference.scenarios import PAGE


def test_readme_has_the_number_of_scenarios() -> None:
    assert f"{len(entries())} scenarios are included" in (PAGE.parents[1] / "README.md").read_text()
