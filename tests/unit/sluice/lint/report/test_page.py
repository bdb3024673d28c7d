"""The HTML page: all findings, and foreign text as text."""

from sluice.lint.report.page import page
from tests.support.lint_results import RULES, result


def test_the_page_shows_findings_undecided_rules_and_settings() -> None:
    made = page(result(), RULES, "run.ndjson")
    for text in (
        *("1,234 events, and 5 more that the journal no longer had", "Title of lost-records", "3 of 4 requests"),
        *("22:13:20.005 (event 17, orders-0@7.0.3)", "Words of Kafka.", "Record more.", "1,200 Produce requests"),
    ):
        assert text in made


def test_names_that_clients_choose_are_escaped() -> None:
    made = page(result(), RULES, "<i>")
    assert "&lt;b&gt;\\x1b[31m" in made
    assert "<b>" not in made
    assert "<i>" not in made
