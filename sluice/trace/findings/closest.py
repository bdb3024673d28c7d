"""The request that meets most of several conditions, and those that it does not meet."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sluice.journal_events import Request


class Condition(NamedTuple):
    """A condition on requests.

    name: name of the field
    expected: what the condition accepts
    actual: the value of a request
    holds: whether a request meets it
    """

    name: str
    expected: str
    actual: Callable[[Request], str]
    holds: Callable[[Request], bool]


class Closest(NamedTuple):
    request: Request
    unmet: Sequence[Condition]

    def differences(self) -> str:
        """Return `client_id is shop, expected shop2; broker is 1, expected 2`."""
        return "; ".join(f"{each.name} is {each.actual(self.request)}, expected {each.expected}" for each in self.unmet)


def closest(requests: Iterable[Request], conditions: Sequence[Condition]) -> Closest | None:
    """Return the first of the requests that meet most conditions; None without requests.

    Another API counts as two conditions: a Produce of another client is closer than another request of the client.
    """
    best: Closest | None = None
    for request in requests:
        found = Closest(request, [each for each in conditions if not each.holds(request)])
        if best is None or _distance(found) < _distance(best):
            best = found
    return best


def _distance(found: Closest) -> int:
    return sum(2 if each.name == "api" else 1 for each in found.unmet)
