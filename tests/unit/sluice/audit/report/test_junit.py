"""JUnit XML for CI servers: the schema in brief, and the kinds of results that are failures."""

from xml.etree.ElementTree import Element, fromstring

import pytest

from sluice.audit.judge.model.verdict import Sort, State
from sluice.audit.report.junit import junit
from sluice.text.error_text import printable
from tests.support.audit_results import HOSTILE, result, subject, verdict, with_everything

# From Jenkins' schema for JUnit files: allowed children and attributes; `!` marks required ones.
ALLOWED = {
    "testsuites": ({"testsuite"}, {"name", "time", "tests", "failures", "errors"}),
    "testsuite": (
        {"properties", "testcase", "system-out", "system-err"},
        {"name!", "tests!", "failures!", "errors!", "skipped", "time", "timestamp"},
    ),
    "properties": ({"property"}, set[str]()),
    "property": (set[str](), {"name!", "value!"}),
    "testcase": ({"skipped", "error", "failure"}, {"name!", "classname", "time"}),
    "failure": (set[str](), {"message", "type"}),
    "error": (set[str](), {"message", "type"}),
    "skipped": (set[str](), {"message", "type"}),
    "system-err": (set[str](), set[str]()),
}


def _check(element: Element) -> None:
    children, attributes = ALLOWED[element.tag]
    assert {child.tag for child in element} <= children
    assert set(element.attrib) <= {name.rstrip("!") for name in attributes}
    assert {name.rstrip("!") for name in attributes if name.endswith("!")} <= set(element.attrib)
    for child in element:
        _check(child)


def test_xml_follows_the_schema_for_any_client_name() -> None:
    root = fromstring(junit(with_everything()))
    _check(root)
    assert root[2].get("name") == printable(f"{HOSTILE} {HOSTILE}")


def test_suites_count_their_cases() -> None:
    for suite in fromstring(junit(with_everything())):
        cases = list(suite.iter("testcase"))
        assert int(suite.attrib["tests"]) == len(cases)
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[count]) == sum(case.find(tag) is not None for case in cases), count


def _case(*arguments: object, **fields: object) -> Element:
    one = verdict("KIP-580/1", *arguments, why="because", **fields)  # type: ignore[arg-type]  # a state
    case = fromstring(junit(result(subject("my.client", "1", one)))).find(".//testcase")
    assert case is not None
    return case


def test_case_is_named_by_client_kip_and_statement() -> None:
    assert _case().attrib == {"name": "KIP-580/1", "classname": "audit.my_client.KIP-580", "time": "0"}
    assert len(_case()) == 0


SORTS = [
    (Sort.VIOLATES_ITS_DOCUMENTATION, "violates"),
    (Sort.DIFFERS_FROM_KIP, "differs"),
    (Sort.PREDATES_KIP, "predates"),
]


@pytest.mark.parametrize(("sort", "type_"), SORTS)
def test_deviation_is_a_failure_with_the_numbers(sort: Sort, type_: str) -> None:
    numbers = {"first_gap_ms": 104.0, "ratio": 1.0}
    case = _case(State.DEVIATES, sort=sort, measured=numbers, expected={"first_gap_ms": "80 to 120 ms"}, path="closed")
    (failure,) = case
    assert (failure.tag, failure.get("type")) == ("failure", type_)
    assert failure.get("message") == f"{sort.value}: because"
    assert str(failure.text).splitlines() == [
        "failure: closed",
        "first gap: 104 ms, expected 80 to 120 ms",
        "ratio: 1",
        "runs: 3",
    ]


@pytest.mark.parametrize("state", [State.INCONCLUSIVE, State.NOT_OBSERVABLE])
def test_inconclusive_case_is_skipped_with_the_reason(state: State) -> None:
    (skipped,) = _case(state)
    assert skipped.tag == "skipped"
    assert str(skipped.get("message")).endswith(": because")


def test_client_that_could_not_run_is_an_error() -> None:
    one = subject("a", "1", verdict(state=State.INCONCLUSIVE), problems=["it did not start", "nor then"])
    root = fromstring(junit(result(one)))
    assert root.get("errors") == "1"
    error = root.find(".//error")
    assert error is not None
    assert error.get("message") == "no usable run: it did not start"
    assert error.text == "it did not start\nnor then"


def test_one_failed_run_among_others_is_reported_without_an_error() -> None:
    root = fromstring(junit(result(subject("a", "1", verdict(), problems=["run 3 did not start"]))))
    assert root.get("errors") == "0"
    assert root.findtext(".//system-err") == "run 3 did not start"
