"""The RE2 syntax of topic regular expressions: supported and rejected expressions."""

import pytest

from sluice.broker.coordinator.group.consumer.topic_regex import InvalidRegexError, compile_regex, resolve

TOPICS = ["foo", "Foo", "FOO", "bar", "a.b", "a-b", "x1", "topic-1", "b{,2}", "c]"]


@pytest.mark.parametrize(
    ("regex", "topics"),
    [
        pytest.param("foo", {"foo"}, id="literal name"),
        pytest.param("fo", set(), id="part of a name"),
        pytest.param("foo.*|b.*", {"foo", "bar", "b{,2}"}, id="alternation"),
        pytest.param("(?i)foo|BAR", {"foo", "Foo", "FOO", "bar"}, id="flag applies to the end"),
        pytest.param("f(?i)oo|OO", {"foo"}, id="flag applies from its position"),
        pytest.param("(f(?i)OO)|FO(?:O)", {"foo", "FOO"}, id="flag ends with its group"),
        pytest.param("(?i:f)oo", {"foo", "Foo"}, id="flag for one group"),
        pytest.param("(?i)f(?-i:oo)", {"foo", "Foo"}, id="flag cleared for a group"),
        pytest.param("(?U)fo+", {"foo"}, id="ungreedy flag"),
        pytest.param("[[:alpha:]]+", {"foo", "Foo", "FOO", "bar"}, id="POSIX class"),
        pytest.param("[^[:^alpha:]]+", {"foo", "Foo", "FOO", "bar"}, id="double-negated POSIX class"),
        pytest.param(r"\p{Lu}+", {"FOO"}, id="Unicode class"),
        pytest.param(r"\pL\PL", {"x1", "c]"}, id="one-letter Unicode classes"),
        pytest.param(
            r"[\p{^L}a-x]+",
            {"foo", "bar", "a.b", "a-b", "x1", "topic-1", "b{,2}", "c]"},
            id="negated Unicode class in a bracket expression",
        ),
        pytest.param(r"(?P<name>a)\.b", {"a.b"}, id="named group, Python syntax"),
        pytest.param(r"(?<name>a)\.b", {"a.b"}, id="named group, Java syntax"),
        pytest.param(r"\Qa.b\E|x\d", {"a.b", "x1"}, id="quoted text"),
        pytest.param(r"\Ax1\z", {"x1"}, id="start and end of text"),
        pytest.param(r"b{,2}", {"b{,2}"}, id="brace without repetition is literal"),
        pytest.param(r"[]c]+", {"c]"}, id="closing bracket first in a bracket expression"),
        pytest.param(r"[(?i)fo]+", {"foo"}, id="group syntax in a bracket expression is literal"),
        pytest.param(r"[[fo]+", {"foo"}, id="opening bracket in a bracket expression is literal"),
        pytest.param(r"\x{66}\x6fo", {"foo"}, id="characters by code point"),
        pytest.param("fo{2}", {"foo"}, id="repetition count"),
        pytest.param("", set(), id="empty expression"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_regex_matches_whole_topic_names(regex: str, topics: set[str]) -> None:
    assert resolve(regex, TOPICS) == topics


@pytest.mark.parametrize(
    "regex",
    [
        pytest.param("a(?=b)", id="look-ahead"),
        pytest.param("(?<!a)b", id="look-behind"),
        pytest.param(r"(a)\1", id="backreference"),
        pytest.param("(?P<n>a)(?P=n)", id="named backreference"),
        pytest.param("(?>a)", id="atomic group"),
        pytest.param("a++", id="possessive repetition"),
        pytest.param("(?(1)a|b)", id="conditional"),
        pytest.param("(?#comment)", id="comment"),
        pytest.param("(?x)a", id="Python-only flag"),
        pytest.param("a{1001}", id="repetition above 1000"),
        pytest.param("a**", id="nested repetition"),
        pytest.param("*a", id="repetition without operand"),
        pytest.param("(", id="unclosed group"),
        pytest.param("a)", id="unopened group"),
        pytest.param("[a", id="unclosed bracket expression"),
        pytest.param("[b-a]", id="reversed range"),
        pytest.param(r"\Z", id="Python-only escape"),
        pytest.param(r"\u0041", id="Python-only Unicode escape"),
        pytest.param(r"\x{110000}", id="code point beyond Unicode"),
        pytest.param(r"\p{Nonsense}", id="unknown Unicode class"),
        pytest.param("[[:nonsense:]]", id="unknown POSIX class"),
        pytest.param("a\\", id="trailing backslash"),
    ],
)
def test_regex_that_re2_rejects_is_invalid(regex: str) -> None:
    with pytest.raises(InvalidRegexError):
        compile_regex(regex)
