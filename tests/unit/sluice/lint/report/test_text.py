"""Findings as text."""

from sluice.lint.report.text import finding_lines
from tests.support.lint_results import JAVA, RULES, finding


def test_a_finding_has_its_evidence_with_the_first_example_and_the_remedy() -> None:
    assert list(finding_lines(finding("lost-records", str(JAVA), JAVA), RULES["lost-records"])) == [
        "error lost-records: client shop (apache-kafka-java 4.4.0)",
        "  3 of 4 requests (event 17 at 22:13:20.005)",
        "  2 of 4 batches",
        "  Java client: acks=all",
    ]
