"""When a client requests metadata."""

from sluice.journal_events import ConnectionClosed, Request

from .domain import Domain, Handlers
from .measures.bursts import Burst
from .measures.distribution import Distribution

# Twice as often as a client that fails to get metadata, and retries after retry.backoff.ms, by default 100 ms.
_STORM, _STORM_S = 100, 5.0
# A client requests metadata when it connects, and again for the topics that it will use.
_AT_START = 2
_MOST_CONNECTIONS = 1024
_NS_PER_MS = 1_000_000


class _Asked:
    __slots__ = ("last_ns", "requests")

    def __init__(self) -> None:
        self.requests = self.last_ns = 0


class Metadata(Domain):
    """The Metadata requests of a client.

    repeated: requests other than the first two of a connection
    interval_ms: times between successful requests of a connection, other than those
    all_topics: requests for all topics
    """

    def __init__(self) -> None:
        self.repeated = Burst(_STORM, _STORM_S)
        self.interval_ms = Distribution()
        self.all_topics = 0
        self._asked: dict[int, _Asked] = {}

    def handlers(self) -> Handlers:
        return {"Metadata": self._metadata, "connection-closed": self._closed}

    def _closed(self, event: ConnectionClosed) -> None:
        self._asked.pop(event.connection, None)

    def _metadata(self, event: Request) -> None:
        asked = self._asked.get(event.connection)
        if asked is None:
            if len(self._asked) >= _MOST_CONNECTIONS:
                del self._asked[next(iter(self._asked))]
            asked = self._asked[event.connection] = _Asked()
        asked.requests += 1
        if event.sent.get("all_topics"):
            self.all_topics += 1
        if asked.requests > _AT_START:
            self.repeated.add(event)
            if asked.last_ns:
                self.interval_ms.add((event.received_ns - asked.last_ns) // _NS_PER_MS)
        asked.last_ns = 0 if event.error_codes else event.received_ns
