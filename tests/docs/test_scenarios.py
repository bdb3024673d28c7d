"""docs/scenarios.md says what the types and the catalogue say."""

from tests.docs.scenarios import PAGE, page_with_tables


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text()
    assert text == page_with_tables(text), "python -m tests.docs.scenarios writes it"
