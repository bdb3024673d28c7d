"""docs/journal.md is up to date with the event types."""

from tools.docs.journal_events import PAGE, page_with_table


def test_page_is_up_to_date() -> None:
    text = PAGE.read_text()
    assert text == page_with_table(text), "run `python -m tools.docs.journal_events`"
