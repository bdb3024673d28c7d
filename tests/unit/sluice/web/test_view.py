"""Views from queries, and the errors of invalid queries."""

import re

import pytest

from sluice.broker.journal.reader import parse_event_filter
from sluice.errors import ArgumentError
from sluice.text.typed_decoding import read_texts
from sluice.web.view import View, ViewQuery


def view_of(query: dict[str, str | list[str]]) -> View:
    return read_texts(query, ViewQuery).view


VIEWS = {
    "nothing": ({}, View()),
    "a page of clients": (
        {"search": "a b", "sort": "quota", "page": "3", "size": "10"},
        View(search="a b", sort="quota", page=3, size=10),
    ),
    "connections": ({"connections": "true"}, View(connections=True)),
    "a filtered journal": (
        {"journal": "true", "api": ["Produce", "Fetch"], "broker": ["2"]},
        View(journal=True, event_filter=parse_event_filter({"api": ["Produce", "Fetch"], "broker": ["2"]})),
    ),
}


@pytest.mark.parametrize(("query", "view"), VIEWS.values(), ids=VIEWS)
def test_a_query_is_converted_to_a_view(query: dict[str, str | list[str]], view: View) -> None:
    assert view_of(query) == view


WRONG = {
    "another name": (
        {"colour": "red"},
        "colour: unknown field; expected one of client_id, api, kind, broker, search, sort, page, size, ",
    ),
    "another order": ({"sort": "size"}, "sort: expected one of activity, name, quota, throttled"),
    "no number": ({"page": "-1"}, "page: expected a whole number >= 0, got '-1'"),
    "too many": ({"size": "101"}, "size: expected a whole number <= 100, got '101'"),
    "neither true nor false": ({"journal": "yes"}, "journal: expected true or false, got 'yes'"),
    "an API that is none": ({"api": ["Prodcue"]}, "api: expected one of "),
}


@pytest.mark.parametrize(("query", "problem"), WRONG.values(), ids=WRONG)
def test_the_error_of_an_invalid_query_names_the_accepted_values(
    query: dict[str, str | list[str]], problem: str
) -> None:
    with pytest.raises((ValueError, ArgumentError), match=re.escape(problem)):
        view_of(query)
