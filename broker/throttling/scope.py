"""The clients and topics to which all fault rules and quotas of a proxy are limited."""

from collections.abc import Callable, Collection, Iterable
from functools import cached_property

from msgspec import Struct

from sluice.text.patterns import glob


class Scope(Struct, frozen=True, dict=True):
    """Patterns of client ids and topics; without any, all of them."""

    clients: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.clients or self.topics)

    @cached_property
    def hits_client(self) -> Callable[[str], object]:
        return _any_of(self.clients)

    @cached_property
    def hits_topic(self) -> Callable[[str], object]:
        return _any_of(self.topics)

    def includes(self, client_id: str, topics: Iterable[str]) -> bool:
        """Return whether a request of a client that names topics is in the scope."""
        return bool(self.hits_client(client_id)) and (not self.topics or any(map(self.hits_topic, topics)))


EVERYTHING = Scope()


def _any_of(patterns: Collection[str]) -> Callable[[str], object]:
    tests = [glob(pattern) for pattern in patterns]
    return lambda name: not tests or any(test(name) for test in tests)
