"""Parsing of JAAS configs, and errors with their position."""

import re

import pytest

from sluice.broker.security.sasl.jaas import PLAIN_MODULE, LoginModule, parse_jaas

MODULES = {
    "example of Kafka's documentation": (
        f'{PLAIN_MODULE} required username="admin" password="a-s" user_alice="alice-secret";',
        [LoginModule(PLAIN_MODULE, {"username": "admin", "password": "a-s", "user_alice": "alice-secret"})],
    ),
    "no options": ("m required;", [LoginModule("m", {})]),
    "both quotation marks": ("m REQUIRED a=b c='d \"e';", [LoginModule("m", {"a": "b", "c": 'd "e'})]),
    "escapes within a string": (r'm optional a="x\"y\\z\101\t";', [LoginModule("m", {"a": 'x"y\\zA\t'})]),
    "comments, blanks and two modules": (
        "// first\nm sufficient /* a\nb */ a=1 ; n requisite\n b = 'c' ;",
        [LoginModule("m", {"a": "1"}), LoginModule("n", {"b": "c"})],
    ),
    "quoted option name": ('m required "user_a b"="c;d=e";', [LoginModule("m", {"user_a b": "c;d=e"})]),
}


@pytest.mark.parametrize(("text", "modules"), MODULES.values(), ids=MODULES)
def test_modules_are_parsed(text: str, modules: list[LoginModule]) -> None:
    assert parse_jaas(text) == modules


INVALID = {
    "empty text": ("  ", "no login module; expected MODULE"),
    "no control flag": ("m", "line 1, column 2: expected a control flag: required, requisite"),
    "unknown control flag": ("m maybe;", "line 1, column 3: expected a control flag"),
    "no value": ("m required a;", "line 1, column 13: expected = after an option"),
    "empty value": ("m required a=;", "line 1, column 14: expected the value of an option"),
    "no semicolon": ("m required a=b", "line 1, column 15: expected an option, or ; after the last one"),
    "unclosed string": ("m required\n a='b;", "line 2, column 4: expected a word, a closed string, = or ;"),
    "unexpected character": ("m required a=b & c=d;", "line 1, column 16: expected a word"),
    "no module name": ("= required;", "line 1, column 1: expected the name of a login module"),
}


@pytest.mark.parametrize(("text", "problem"), INVALID.values(), ids=INVALID)
def test_invalid_config_is_rejected_with_its_position(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_jaas(text)


def test_error_does_not_contain_the_password() -> None:
    with pytest.raises(ValueError, match="column") as raised:
        parse_jaas("m required password='hunter2")
    assert "hunter2" not in str(raised.value)
