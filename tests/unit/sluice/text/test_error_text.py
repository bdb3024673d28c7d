"""The form of error messages: what is accepted, what was given, and the nearest name."""

import pytest

from sluice.text.error_text import did_you_mean, expected, nearest, one_of, unknown

KNOWN = ("client_id", "brokers", "quota.producer.default", "Produce", "shop", "NONE")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        pytest.param("broker", "brokers", id="a letter is missing"),
        pytest.param("cliend_id", "client_id", id="a letter is wrong"),
        pytest.param("CLIENT_ID", "client_id", id="upper case"),
        pytest.param("produce", "Produce", id="lower case"),
        pytest.param("producer.default", "quota.producer.default", id="a part is missing"),
        pytest.param("prodcue", "Produce", id="two letters are exchanged"),
        pytest.param("shpo", "shop", id="two letters of a short name are exchanged"),
        pytest.param("nope", None, id="another word, although it differs in one letter"),
        pytest.param("xyz", None, id="an unrelated name"),
        pytest.param("", None, id="an empty name"),
    ],
)
def test_nearest_name_is_suggested(name: str, found: str | None) -> None:
    assert nearest(name, KNOWN) == found
    assert did_you_mean(name, KNOWN, "; see the list") == (
        "; see the list" if found is None else f". Did you mean {found}?"
    )


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        pytest.param("broker", ". Did you mean brokers?", id="a similar name"),
        pytest.param("xyz", "", id="an unrelated name"),
    ],
)
def test_suggestion_is_the_last_sentence(name: str, suggestion: str) -> None:
    known = ("brokers", "quota")
    assert one_of(known, name) == f"expected one of brokers, quota, got {name}{suggestion}"
    assert unknown("field", name, known) == f"unknown field; expected one of brokers, quota{suggestion}"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        pytest.param("abc", "abc", id="a word"),
        pytest.param(3, "3", id="a number"),
        pytest.param("", "''", id="empty text"),
        pytest.param(" a", "' a'", id="leading space"),
        pytest.param("a\nb", r"'a\nb'", id="a line break"),
        pytest.param("a\udcff", r"'a\udcff'", id="bytes that are not UTF-8"),
        pytest.param("x" * 81, "x" * 80 + "...", id="long text"),
    ],
)
def test_value_is_shown_in_one_line(given: object, shown: str) -> None:
    assert expected("a number", given) == f"expected a number, got {shown}"
