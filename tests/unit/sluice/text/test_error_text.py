"""The form of error messages: what is accepted, what was given, and the nearest name."""

import pytest

from sluice.text.error_text import did_you_mean, expected, nearest, one_of, unknown

KNOWN = ("client_id", "brokers", "quota.producer.default", "Produce", "shop", "NONE")


NEAREST = {
    "a letter is missing": ("broker", "brokers"),
    "a letter is wrong": ("cliend_id", "client_id"),
    "upper case": ("CLIENT_ID", "client_id"),
    "lower case": ("produce", "Produce"),
    "a part is missing": ("producer.default", "quota.producer.default"),
    "two letters are exchanged": ("prodcue", "Produce"),
    "two letters of a short name are exchanged": ("shpo", "shop"),
    "another word, although it differs in one letter": ("nope", None),
    "an unrelated name": ("xyz", None),
    "an empty name": ("", None),
}


@pytest.mark.parametrize(("name", "found"), NEAREST.values(), ids=NEAREST)
def test_nearest_name_is_suggested(name: str, found: str | None) -> None:
    assert nearest(name, KNOWN) == found
    assert did_you_mean(name, KNOWN, "; see the list") == (
        "; see the list" if found is None else f". Did you mean {found}?"
    )


SUGGESTIONS = {"a similar name": ("broker", ". Did you mean brokers?"), "an unrelated name": ("xyz", "")}


@pytest.mark.parametrize(("name", "suggestion"), SUGGESTIONS.values(), ids=SUGGESTIONS)
def test_suggestion_is_the_last_sentence(name: str, suggestion: str) -> None:
    known = ("brokers", "quota")
    assert one_of(known, name) == f"expected one of brokers, quota, got {name}{suggestion}"
    assert unknown("field", name, known) == f"unknown field; expected one of brokers, quota{suggestion}"


SHOWN = {
    "a word": ("abc", "abc"),
    "a number": (3, "3"),
    "empty text": ("", "''"),
    "leading space": (" a", "' a'"),
    "a line break": ("a\nb", r"'a\nb'"),
    "bytes that are not UTF-8": ("a\udcff", r"'a\udcff'"),
    "long text": ("x" * 81, "x" * 80 + "..."),
}


@pytest.mark.parametrize(("given", "shown"), SHOWN.values(), ids=SHOWN)
def test_value_is_shown_in_one_line(given: object, shown: str) -> None:
    assert expected("a number", given) == f"expected a number, got {shown}"
