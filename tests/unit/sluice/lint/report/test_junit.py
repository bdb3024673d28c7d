"""JUnit XML: suites by subject, cases by rule."""

from xml.etree.ElementTree import fromstring

import pytest

from sluice.lint.report.junit import junit
from sluice.lint.rule import Severity
from tests.support.lint_results import RULES, result


@pytest.mark.parametrize(
    ("failing", "failures"),
    [([], 0), ([Severity.ERROR], 1), ([Severity.ERROR, Severity.WARNING], 2), (list(Severity), 3)],
    ids=["never", "error", "warning", "info"],
)
def test_findings_of_the_given_severities_fail(failing: list[Severity], failures: int) -> None:
    root = fromstring(junit(result(), RULES, failing))
    assert root.attrib["failures"] == str(failures)
    assert len(root.findall("testsuite/testcase/failure")) == failures
    assert len(root.findall("testsuite/testcase/system-out")) == 3 - failures


def test_suites_are_subjects_and_cases_are_the_rules_of_their_scope() -> None:
    root = fromstring(junit(result(), RULES, []))
    assert {suite.attrib["name"]: [case.attrib["name"] for case in suite] for suite in root} == {
        "client <b>\\x1b[31m (sarama 1.43)": ["lost-records"],
        "client shop (apache-kafka-java 4.4.0)": ["lost-records"],
        "group readers": ["many-rebalances"],
        "topic orders": ["hot-partition"],
    }
    (skipped,) = root.findall("testsuite/testcase/skipped")
    assert skipped.attrib["message"] == "Record more."
