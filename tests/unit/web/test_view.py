"""What a viewer may wish for, and what is said to other wishes."""

import re

import pytest

from sluice.broker.journal.reader import parse_wanted
from sluice.web.view import View, parse_view

VIEWS = {
    "nothing": ({}, View()),
    "empty words, which are none": ({"search": [""], "kind": [""]}, View()),
    "a page of clients": (
        {"search": ["a b"], "sort": ["quota"], "page": ["3"], "size": ["10"]},
        View(search="a b", sort="quota", page=3, size=10),
    ),
    "connections": ({"connections": ["true"]}, View(connections=True)),
    "a filtered journal": (
        {"journal": ["true"], "api": ["Produce", "Fetch"], "broker": ["2"]},
        View(journal=True, wanted=parse_wanted({"api": ["Produce", "Fetch"], "broker": ["2"]})),
    ),
}


@pytest.mark.parametrize(("query", "view"), VIEWS.values(), ids=VIEWS)
def test_a_view_is_what_its_query_says(query: dict[str, list[str]], view: View) -> None:
    assert parse_view(query) == view


WRONG = {
    "another name": ({"colour": ["red"]}, "colour is not accepted; what is are search, sort, page, size, "),
    "another order": ({"sort": ["size"]}, "sort=size: must be one of activity, quota, throttled, name"),
    "no number": ({"page": ["-1"]}, "page=-1: must be a number from 0 to 100000"),
    "too many": ({"size": ["101"]}, "size=101: must be a number from 1 to 100"),
    "neither true nor false": ({"journal": ["yes"]}, "journal=yes: must be true or false"),
    "an API that is none": ({"api": ["Prodcue"]}, "api=Prodcue: did you mean Produce? It must be one of "),
}


@pytest.mark.parametrize(("query", "problem"), WRONG.values(), ids=WRONG)
def test_what_is_not_accepted_is_told_with_what_is(query: dict[str, list[str]], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_view(query)
