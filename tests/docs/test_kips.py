"""The pages about KIPs name every statement and every test of it, and docs/conformance.md says the same."""

import re

import pytest

from tests.docs.conformance import PAGE, STATEMENTS, files_of_tests, pages, statements, with_table

KIPS = list(pages())


@pytest.mark.parametrize("kip", KIPS)
def test_every_test_that_a_page_names_is_there(kip: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", pages()[kip].read_text(encoding="utf-8")))
    assert named
    assert named - files_of_tests().keys() == set()


@pytest.mark.parametrize("kip", KIPS)
def test_a_page_has_each_statement_once(kip: str) -> None:
    assert sorted(one.number for one in statements(kip)) == list(range(1, STATEMENTS[kip] + 1))


@pytest.mark.parametrize("kip", KIPS)
def test_a_page_names_every_test_of_a_statement_beside_it(kip: str) -> None:
    numbered = re.compile(rf"test_kip{kip}_(\d\d)(?:_and_(\d\d))?_\w+")
    for one in statements(kip):
        tests = {
            name for name in files_of_tests() if (m := numbered.fullmatch(name)) and f"{one.number:02}" in m.groups()
        }
        assert tests - set(one.tests) == set(), f"KIP-{kip}/{one.number} of {pages()[kip].name} leaves out tests"


def test_the_page_of_all_statements_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run python -m tests.docs.conformance"
