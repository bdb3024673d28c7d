"""YAML as its version 1.2 has it."""

import re

import pytest

from sluice.broker.scenarios.yaml_text import parse_yaml

VALUES = {
    "on, which is no truth, as a field": ("on: [1, 4]", {"on": [1, 4]}),
    "yes, as text": ("a: yes", {"a": "yes"}),
    "true": ("a: true", {"a": True}),
    "a time of day, as text": ("a: 1:30", {"a": "1:30"}),
    "a date, as text": ("a: 2026-01-01", {"a": "2026-01-01"}),
    "a number": ("a: 5\nb: 1e3\nc: -.5", {"a": 5, "b": 1000.0, "c": -0.5}),
    "a duration, as text": ("a: 5s", {"a": "5s"}),
    "nothing": ("a:\nb: null", {"a": None, "b": None}),
    "what is merged in, giving way": (
        "x: &x {a: 1, b: 1}\ny: {<<: *x, b: 2}",
        {"x": {"a": 1, "b": 1}, "y": {"a": 1, "b": 2}},
    ),
}


@pytest.mark.parametrize(("text", "value"), VALUES.values(), ids=VALUES)
def test_it_reads(text: str, value: object) -> None:
    assert parse_yaml(text) == value


WRONG = {
    "a key that stands twice": ("a: 1\nb: 2\na: 3", "duplicate key a (at line 3, column 1)"),
    "a list without its end": ("a: [", "(at line 1, column 5)"),
    "a key that is a list": ("? [a, b]\n: c", "expected text as key (at line 1, column 3)"),
    "a tag of Python's": ("a: !!python/object:os.system x", "could not determine a constructor for the tag"),
    "characters that no text has": ("a: \x00", "special characters are not allowed"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_it_refuses(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as refused:
        parse_yaml(text)
    assert "\n" not in str(refused.value)
