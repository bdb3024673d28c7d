"""Which topics a regular expression matches, and which expressions RE2 would not take."""

import pytest

from sluice.broker.coordinator.group.consumer.topic_regex import InvalidRegexError, compile_regex, resolve

TOPICS = ["foo", "Foo", "FOO", "bar", "a.b", "a-b", "x1", "topic-1", "b{,2}", "c]"]


@pytest.mark.parametrize(
    ("regex", "topics"),
    [
        pytest.param("foo", {"foo"}, id="a name is itself"),
        pytest.param("fo", set(), id="a part of a name is not enough"),
        pytest.param("foo.*|b.*", {"foo", "bar", "b{,2}"}, id="one of two"),
        pytest.param("(?i)foo|BAR", {"foo", "Foo", "FOO", "bar"}, id="a flag holds to the end"),
        pytest.param("f(?i)oo|OO", {"foo"}, id="a flag begins where it stands"),
        pytest.param("(f(?i)OO)|FO(?:O)", {"foo", "FOO"}, id="a flag ends with its group"),
        pytest.param("(?i:f)oo", {"foo", "Foo"}, id="a flag for a group"),
        pytest.param("(?i)f(?-i:oo)", {"foo", "Foo"}, id="a flag taken back"),
        pytest.param("(?U)fo+", {"foo"}, id="an ungreedy flag matches the same"),
        pytest.param("[[:alpha:]]+", {"foo", "Foo", "FOO", "bar"}, id="a POSIX class"),
        pytest.param("[^[:^alpha:]]+", {"foo", "Foo", "FOO", "bar"}, id="a POSIX class negated twice"),
        pytest.param(r"\p{Lu}+", {"FOO"}, id="a Unicode class"),
        pytest.param(r"\pL\PL", {"x1", "c]"}, id="Unicode classes of one letter"),
        pytest.param(r"[\p{^L}a-x]+", {"foo", "bar", "a.b", "a-b", "x1", "topic-1", "b{,2}", "c]"}, id="not a letter"),
        pytest.param(r"(?P<name>a)\.b", {"a.b"}, id="a group with a name, as in Python"),
        pytest.param(r"(?<name>a)\.b", {"a.b"}, id="a group with a name, as in Java"),
        pytest.param(r"\Qa.b\E|x\d", {"a.b", "x1"}, id="quoted text"),
        pytest.param(r"\Ax1\z", {"x1"}, id="begin and end of text"),
        pytest.param(r"b{,2}", {"b{,2}"}, id="a brace that repeats nothing is a brace"),
        pytest.param(r"[]c]+", {"c]"}, id="a bracket may begin with its end"),
        pytest.param(r"[(?i)fo]+", {"foo"}, id="nothing is special in a bracket"),
        pytest.param(r"[[fo]+", {"foo"}, id="a bracket in a bracket is a character"),
        pytest.param(r"\x{66}\x6fo", {"foo"}, id="characters by their numbers"),
        pytest.param("fo{2}", {"foo"}, id="a number of times"),
        pytest.param("", set(), id="nothing matches nothing"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_topic_matches_with_the_whole_of_its_name(regex: str, topics: set[str]) -> None:
    assert resolve(regex, TOPICS) == topics


@pytest.mark.parametrize(
    "regex",
    [
        pytest.param("a(?=b)", id="look-ahead"),
        pytest.param("(?<!a)b", id="look-behind"),
        pytest.param(r"(a)\1", id="a backreference"),
        pytest.param("(?P<n>a)(?P=n)", id="a backreference by name"),
        pytest.param("(?>a)", id="an atomic group"),
        pytest.param("a++", id="possessive repetition"),
        pytest.param("(?(1)a|b)", id="a condition"),
        pytest.param("(?#comment)", id="a comment"),
        pytest.param("(?x)a", id="a flag of Python"),
        pytest.param("a{1001}", id="more repetition than RE2 does"),
        pytest.param("a**", id="repetition of repetition"),
        pytest.param("*a", id="repetition of nothing"),
        pytest.param("(", id="a group without end"),
        pytest.param("a)", id="an end without group"),
        pytest.param("[a", id="a bracket without end"),
        pytest.param("[b-a]", id="a range backwards"),
        pytest.param(r"\Z", id="an escape of Python"),
        pytest.param(r"\u0041", id="another escape of Python"),
        pytest.param(r"\x{110000}", id="a number beyond Unicode"),
        pytest.param(r"\p{Nonsense}", id="no class of Unicode"),
        pytest.param("[[:nonsense:]]", id="no class of POSIX"),
        pytest.param("a\\", id="a backslash before nothing"),
    ],
)
def test_what_re2_does_not_take_is_refused(regex: str) -> None:
    with pytest.raises(InvalidRegexError):
        compile_regex(regex)
