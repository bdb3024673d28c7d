"""RE2 expressions against RE2J, in matches and errors.

`re2j.jsonl` was written by RE2J 1.8: an expression, the names below that `Pattern.matcher(name).matches()` accepts, and
the description of the PatternSyntaxException.
"""

import contextlib
import json
import time
from pathlib import Path

import pytest

from sluice.text.regex import InvalidRegexError, compile_regex

NAMES = [
    *("foo", "Foo", "FOO", "bar", "a.b", "a-b", "x1", "topic-1", "b{,2}", "c]", "aaaa", "foo\n", ""),
    *("\u00e9t\u00e9", "\u212a", "k"),
]
RE2J = [json.loads(line) for line in Path(__file__).with_name("re2j.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("regex", "matched", "problem"), RE2J, ids=[repr(row[0]) for row in RE2J])
def test_expression_has_the_matches_and_errors_of_re2j(
    regex: str, matched: list[str] | None, problem: str | None
) -> None:
    if matched is not None:
        pattern = compile_regex(regex)
        assert [name for name in NAMES if pattern.fullmatch(name)] == matched
    else:
        with pytest.raises(InvalidRegexError) as raised:
            compile_regex(regex)
        assert str(raised.value) == problem


@pytest.mark.parametrize(
    "regex",
    ["(" * 1500, "(a" * 1500, "a{" + "9" * 4301 + ",1", "\0(", "\ud800", "(?P<" + "n" * 5000, "(((a{100}){100}){100})"],
    ids=["open groups", "groups", "digits", "NUL", "a surrogate", "a long name", "too large"],
)
def test_odd_expression_is_valid_or_reports_a_problem(regex: str) -> None:
    with contextlib.suppress(InvalidRegexError):
        compile_regex(regex).fullmatch("a" * 249)


def test_matching_time_is_linear() -> None:
    pattern = compile_regex("(a+)+$")
    started = time.process_time()
    assert pattern.fullmatch("a" * 32_000 + "!") is None  # a backtracking engine never ends
    assert time.process_time() - started < 60
