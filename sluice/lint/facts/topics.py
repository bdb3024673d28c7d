"""The facts of a topic: what the domains of clients and groups contribute, merged in any order with the same result."""

from collections import defaultdict

import msgspec

from sluice.lint.clients import ClientKey

_MOST_CLIENTS = 16


class TopicFacts(msgspec.Struct):
    """The facts of one topic.

    clients: up to 16 clients that use it, the first in alphabetical order
    """

    clients: list[ClientKey] = []

    def merge(self, other: "TopicFacts") -> None:
        """Add the facts of another client or group."""
        self.clients = sorted({*self.clients, *other.clients})[:_MOST_CLIENTS]


class Topics(defaultdict[str, TopicFacts]):
    """Facts by topic name."""

    def __init__(self) -> None:
        super().__init__(TopicFacts)
