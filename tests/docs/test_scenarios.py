"""docs/scenarios.md says what the types and the catalogue say."""

from sluice.broker.scenarios.files import entries
from tests.docs.scenarios import PAGE, page_with_tables


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text()
    assert text == page_with_tables(text), "python -m tests.docs.scenarios writes it"


def test_the_readme_says_how_many_scenarios_there_are() -> None:
    assert f"{len(entries())} scenarios are included" in (PAGE.parents[1] / "README.md").read_text()
