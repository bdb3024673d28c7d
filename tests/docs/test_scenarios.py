"""docs/scenarios.md is up to date with the types and the catalogue."""

from sluice.broker.scenarios.files import entries
from tools.docs.scenarios import PAGE, page_with_tables


def test_page_is_up_to_date() -> None:
    text = PAGE.read_text()
    assert text == page_with_tables(text), "run `python -m tools.docs.scenarios`"


def test_readme_has_the_number_of_scenarios() -> None:
    assert f"{len(entries())} scenarios are included" in (PAGE.parents[1] / "README.md").read_text()
