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


COMPLEX = {
    "Unicode classes": r"\pL" * 300,
    "repeat counts": "a{1,2}" * 150,
    "repeats": "a?" * 1500,
    "named groups": "".join(f"(?P<g{number}>a)" for number in range(150)),
    "a long program with repeats": r"(?:\w*|.*a){0,1000}",
}


@pytest.mark.parametrize("regex", COMPLEX.values(), ids=COMPLEX)
def test_complex_expression_is_rejected(regex: str) -> None:
    """Its matches, or compiling many such expressions, would hold the event loop."""
    with pytest.raises(InvalidRegexError, match=r"^expression is too complex$"):
        compile_regex(regex)


def test_list_of_many_topics_is_no_complex_expression() -> None:
    names = [f"orders.{number}.eu-west-1.production" for number in range(900)]
    pattern = compile_regex("|".join(names))
    assert pattern.fullmatch(names[-1])
    assert not pattern.fullmatch("orders")


def test_groups_do_not_slow_matches() -> None:
    pattern = compile_regex("(" * 900 + ")" * 900)
    started = time.process_time()
    for _ in range(1000):
        assert not pattern.fullmatch("a" * 249)
    assert time.process_time() - started < 5  # 12 s with groups


def test_matching_time_is_linear() -> None:
    pattern = compile_regex("(a+)+$")
    started = time.process_time()
    assert pattern.fullmatch("a" * 32_000 + "!") is None  # a backtracking engine never ends
    assert time.process_time() - started < 60
