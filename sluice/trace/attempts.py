"""Chains of attempts: requests that a client sent again after a failure.

A request continues the chain of the last one of the same client, API and subject, if that failed or was not answered
within the last minute. A batch of an idempotent producer is identified by its sequence, so it is a retry even if the
broker had answered.
"""

from sluice.journal_events import NO_ID, Request

from .described import has_failed

_LONGEST_WAIT_NS = 60_000_000_000  # above the highest backoff in use; a later request is another one
_Key = tuple[str, str, str]


def subject_of(request: Request) -> str:
    """Return what a request is about: partitions with sequences, or group, transactional id, hashes of records."""
    hashes = "".join(each for partition in request.partitions for each in partition.record_hashes)
    return " ".join(filter(None, (request.attempt_key, request.group_id, request.transactional_id, hashes)))


class Attempts:
    """The chains so far; requests are added in the order in which they were received."""

    def __init__(self) -> None:
        self._last: dict[_Key, tuple[Request, int]] = {}  # the last request, and its place among all
        self._chain_of: dict[int, int] = {}
        self._chains = 0
        self.links: list[tuple[int, int]] = []

    def add(self, place: int, request: Request) -> None:
        key = request.client_id or request.peer, request.api, subject_of(request)
        before = self._last.get(key)
        if before is not None and _continues(before[0], request):
            self._link(before[1], place)
        self._last[key] = request, place

    def chain_of(self, place: int) -> int:
        """Return the number of the chain that contains a request, or -1."""
        return self._chain_of.get(place, NO_ID)

    def _link(self, before: int, place: int) -> None:
        if before not in self._chain_of:
            self._chain_of[before] = self._chains
            self._chains += 1
        self._chain_of[place] = self._chain_of[before]
        self.links.append((before, place))


def _continues(before: Request, request: Request) -> bool:
    if _is_sequenced(request):
        return True
    return has_failed(before) and request.received_ns - before.at_ns <= _LONGEST_WAIT_NS


def _is_sequenced(request: Request) -> bool:
    return request.api == "Produce" and any(each.producer_id != NO_ID for each in request.partitions)
