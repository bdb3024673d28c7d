"""YAML 1.2 parsing."""

import re

import pytest

from sluice.broker.scenarios.yaml_text import parse_yaml

VALUES = {
    "on as a key, not a boolean": ("on: [1, 4]", {"on": [1, 4]}),
    "yes as text": ("a: yes", {"a": "yes"}),
    "true": ("a: true", {"a": True}),
    "time of day as text": ("a: 1:30", {"a": "1:30"}),
    "date as text": ("a: 2026-01-01", {"a": "2026-01-01"}),
    "numbers": ("a: 5\nb: 1e3\nc: -.5", {"a": 5, "b": 1000.0, "c": -0.5}),
    "duration as text": ("a: 5s", {"a": "5s"}),
    "null values": ("a:\nb: null", {"a": None, "b": None}),
    "merge key of YAML 1.1 as text": ("a: &a {b: 1}\nc: {<<: *a}", {"a": {"b": 1}, "c": {"<<": {"b": 1}}}),
}


@pytest.mark.parametrize(("text", "value"), VALUES.values(), ids=VALUES)
def test_valid_yaml_is_parsed(text: str, value: object) -> None:
    assert parse_yaml(text) == value


WRONG = {
    "duplicate key": ("a: 1\nb: 2\na: 3", "duplicate key a (at line 3, column 1)"),
    "unclosed list": ("a: [", "(at line 1, column 5)"),
    "list as a key": ("? [a, b]\n: c", "expected text as key (at line 1, column 3)"),
    "Python tag": ("a: !!python/object:os.system x", "expected a value without a tag (at line 1, column 4)"),
    "boolean that is none": ("a: !!bool x", "expected a value without a tag (at line 1, column 4)"),
    "control characters": ("a: \x00", "special characters are not allowed"),
}


@pytest.mark.parametrize(("text", "error"), WRONG.values(), ids=WRONG)
def test_invalid_yaml_is_rejected(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=re.escape(error)) as raised:
        parse_yaml(text)
    assert "\n" not in str(raised.value)
