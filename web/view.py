"""What one viewer wants to see: the query of `/api/v1/stream`.

search=TEXT              of clients and connections: what their client id or user has
sort=activity|quota|throttled|name, page=N, size=N   of the clients
connections=true         with the connections
journal=true             with the journal; client_id=, api=, kind= and broker= are its filters, as of `/api/v1/journal`
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sluice.broker.journal.reader import FILTERS, Wanted, parse_wanted

from .clients import SORTS

_MOST_CLIENTS = 100
_MOST_PAGES = 100_000
_NUMBERS = {"page": (0, _MOST_PAGES), "size": (1, _MOST_CLIENTS)}
_TRUTHS = {"true": True, "false": False}
_ACCEPTED = ("search", "sort", *_NUMBERS, "connections", "journal", *FILTERS)


class View(Struct, frozen=True):
    """One viewer's wishes."""

    search: str = ""
    sort: str = "activity"
    page: int = 0
    size: int = 25
    connections: bool = False
    journal: bool = False
    wanted: Wanted = parse_wanted({})


def parse_view(query: Mapping[str, Sequence[str]]) -> View:
    """The view of a query; what is left out or empty is as above. Raises ValueError, a line that says what is wrong."""
    given = {name: [value for value in values if value] for name, values in query.items()}
    unknown = sorted(given.keys() - set(_ACCEPTED))
    if unknown:
        raise ValueError(f"{unknown[0]} is not accepted; what is are {', '.join(_ACCEPTED)}")
    last = {name: values[-1] for name, values in given.items() if values}
    sort = last.get("sort", "activity")
    if sort not in SORTS:
        raise ValueError(f"sort={sort}: must be one of {', '.join(SORTS)}")
    return View(
        search=last.get("search", ""),
        sort=sort,
        page=_number("page", last.get("page", "0")),
        size=_number("size", last.get("size", "25")),
        connections=_truth("connections", last.get("connections", "false")),
        journal=_truth("journal", last.get("journal", "false")),
        wanted=parse_wanted({name: given[name] for name in FILTERS if given.get(name)}),
    )


def _number(name: str, text: str) -> int:
    first, last = _NUMBERS[name]
    if not (text.isascii() and text.isdecimal() and first <= int(text) <= last):
        raise ValueError(f"{name}={text}: must be a number from {first} to {last}")
    return int(text)


def _truth(name: str, text: str) -> bool:
    if text not in _TRUTHS:
        raise ValueError(f"{name}={text}: must be true or false")
    return _TRUTHS[text]
