"""Domains: the facts about one subject, such as producing, and how their methods receive events.

A domain is created per client or per group. It keeps small counters and bounded examples, never one object per event.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .topics import Topics

EVERY_REQUEST = "request"

# By API name for requests, or by the kind of the event. Each method accepts the events of its own type.
Handlers = Mapping[str, Callable[[Any], None]]


class Domain:
    def handlers(self) -> Handlers:
        """Return the methods that receive events: by API name, by kind, or of EVERY_REQUEST after those of its API."""
        raise NotImplementedError

    def contribute(self, topics: Topics) -> None:
        """Add to the facts of topics, after the last event."""


class Dispatch(dict[str, tuple[Callable[[Any], None], ...]]):
    """The methods of some domains by API name or kind; one lookup per event, also for APIs without a method."""

    def __init__(self, domains: Iterable[Domain]) -> None:
        super().__init__()
        self._handlers = [domain.handlers() for domain in domains]

    def __missing__(self, name: str) -> tuple[Callable[[Any], None], ...]:
        # APIs begin with a capital letter, kinds do not.
        names = (name, EVERY_REQUEST) if name[0].isupper() else (name,)
        self[name] = found = tuple(each[one] for one in names for each in self._handlers if one in each)
        return found
