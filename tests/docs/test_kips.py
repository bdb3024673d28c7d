"""The pages about KIPs list every statement and its tests."""

import re

import pytest

from tools.docs.conformance import KIPS, files_of_tests, pages, statements

every_page = pytest.mark.parametrize("kip", pages())


@every_page
def test_tests_on_a_page_exist(kip: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", pages()[kip].read_text(encoding="utf-8")))
    assert named
    assert named - files_of_tests().keys() == set()


@every_page
def test_page_has_each_statement_once(kip: str) -> None:
    assert sorted(one.number for one in statements(kip)) == list(range(1, KIPS[kip][1] + 1))


@every_page
def test_page_lists_all_tests_of_a_statement(kip: str) -> None:
    numbered = re.compile(rf"test_kip{kip}_(\d\d)(?:_and_(\d\d))?_\w+")
    for one in statements(kip):
        tests = {
            name for name in files_of_tests() if (m := numbered.fullmatch(name)) and f"{one.number:02}" in m.groups()
        }
        assert tests - set(one.tests) == set(), f"KIP-{kip}/{one.number} of {pages()[kip].name} leaves out tests"
