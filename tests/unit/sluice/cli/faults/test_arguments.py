"""Fault rules as command-line arguments."""

import pytest

from sluice.cli.faults.arguments import rule_of
from sluice.errors import ConfigError

RULES = {
    "an action alone": ("action=close", {"action": {"kind": "close"}}),
    "fields of the action and of the rule": (
        "action=error code=NOT_LEADER_OR_FOLLOWER api=Produce times=3",
        {"action": {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"}, "api": "Produce", "times": 3},
    ),
    "numeric fields": (
        "action=error code=79 version=9 id=5 probability=0.5 partition=1",
        {"action": {"kind": "error", "code": 79}, "version": 9, "id": "5", "probability": 0.5, "partition": 1},
    ),
    "durations, with units and as milliseconds": (
        "action=delay min=5 max=10.5 after=2s",
        {"action": {"kind": "delay", "min": 5, "max": 10.5}, "after": "2s"},
    ),
    "lists": (
        "action=close broker=1,2 api=Produce,Fetch",
        {"action": {"kind": "close"}, "broker": [1, 2], "api": ["Produce", "Fetch"]},
    ),
    "a one-element list": ("action=close on=4", {"action": {"kind": "close"}, "on": [4]}),
    "a schedule with its spaces": (
        "action=close schedule=3 fail, 2 pass, repeat api=Produce",
        {"action": {"kind": "close"}, "schedule": "3 fail, 2 pass, repeat", "api": "Produce"},
    ),
    "a name with an equals sign": ("action=close client_id=a=b", {"action": {"kind": "close"}, "client_id": "a=b"}),
    "not a number, left to the broker": ("action=close times=x", {"action": {"kind": "close"}, "times": "x"}),
}


@pytest.mark.parametrize(("words", "rule"), RULES.values(), ids=RULES)
@pytest.mark.parametrize("split", [str.split, lambda words: [words]], ids=["as several arguments", "as one"])
def test_arguments_as_a_rule(words: str, rule: dict[str, object], split: object) -> None:
    assert callable(split)
    assert rule_of(split(words)) == rule


WRONG = {
    "no action": ("api=Produce", "action: missing; expected action=KIND with one of error, "),
    "an unknown action": ("action=eror", "action: expected one of "),
    "an argument without a value": ("close", "rule: expected NAME=VALUE, such as action=error"),
    "a misspelled field": (
        "action=close cliend_id=a",
        "cliend_id: unknown field for action=close; expected one of when, how, ",
    ),
    "an unknown field": ("action=close q=1", "q: unknown field for action=close; expected one of when, how, "),
    "a repeated field": ("action=close times=1 times=2", "times: given twice"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_invalid_arguments_are_rejected(words: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        rule_of([words])
    assert str(refused.value).startswith(said)
