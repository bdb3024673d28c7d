"""The connections of a client: how long they live, their use, metadata requests, and waits before reconnects (KIP-144).

A connection of a client is known from its first request on. Those that fail earlier have no client id. They belong to
the facts without one, and are distinguished by host only.
"""

from collections import defaultdict
from typing import NamedTuple

from sluice.audit.judge.findings import STORM, STORM_MS
from sluice.journal_events import ConnectionClosed, ConnectionOpened, Request
from sluice.lint.clients import host_of

from .domain import EVERY_REQUEST, Domain, Handlers
from .measures.bursts import Burst
from .measures.distribution import Distribution
from .measures.examples import Examples
from .measures.waits import Row, Rows

_HANDSHAKES = frozenset({"ApiVersions", "SaslHandshake", "SaslAuthenticate"})
_PREPARATIONS = _HANDSHAKES | {"Metadata", "FindCoordinator", "InitProducerId"}
_MOST_OPEN, _MOST_HOSTS = 4096, 256
# Three connections per second, each for at most one request, are not a person who starts a command line tool.
_SHORT, _SHORT_S = 30, 10.0
SHORT_NS = 10_000_000_000
# Twice as often as a client that fails to get metadata, and retries after retry.backoff.ms, by default 100 ms.
_METADATA, _METADATA_S = 100, 5.0
# A client requests metadata when it connects, and again for the topics that it will use.
_METADATA_AT_START = 2
_NS_PER_US, _NS_PER_MS = 1000, 1_000_000

# The lowest versions that Kafka 4.0 serves (KIP-896), without those of 0.
LOWEST_VERSIONS = {
    "Produce": 3, "Fetch": 4, "ListOffsets": 1, "OffsetCommit": 2, "OffsetFetch": 1, "CreateTopics": 2,
    "DeleteTopics": 1, "OffsetForLeaderEpoch": 2, "DescribeConfigs": 1, "DescribeAcls": 1, "CreateAcls": 1,
    "DeleteAcls": 1, "CreateDelegationToken": 1, "RenewDelegationToken": 1, "ExpireDelegationToken": 1,
    "DescribeDelegationToken": 1, "AlterReplicaLogDirs": 1, "DescribeLogDirs": 1,
}  # fmt: skip

_Place = tuple[int, str]  # broker and host


class _Open:
    """An open connection."""

    __slots__ = ("before_ns", "first_ns", "has_response", "last_ns", "metadata", "metadata_ns", "place", "row", "work")

    def __init__(self, place: _Place, at_ns: int, before_ns: int) -> None:
        self.place = place
        self.before_ns = before_ns  # the last event before it
        self.first_ns = self.last_ns = at_ns
        self.work = 0  # requests other than preparations
        self.metadata = self.metadata_ns = 0  # Metadata requests, and when the last one was received, if it succeeded
        self.has_response = False
        self.row: Row | None = None  # the failed connections in a row before this one


class _Lost(NamedTuple):
    """A connection that ended, although the client did not want this."""

    at_ns: int
    row: Row


class Idle(NamedTuple):
    """Connections of a host to a broker that were idle at the end, and all that were open."""

    place: _Place
    idle: int
    opened: int


class Connections(Domain):
    """The connections of a client.

    count, closed: number of connections, and of those that the client closed
    short: connections that the client closed soon, with at most one request other than preparations
    reconnects: waits before connections that follow failed ones, in rows
    storm: connections that follow a connection that the broker or the network closed
    ended: by API and version, the requests in versions that Kafka 4.0 no longer serves
    metadata: Metadata requests other than the first two of a connection
    metadata_interval_ms: times between successful ones of them
    """

    def __init__(self) -> None:
        self.count = self.closed = 0
        self.short = Burst(_SHORT, _SHORT_S)
        self.reconnects = Rows()
        self.storm = Burst(STORM, STORM_MS / 1e3)
        self.ended: dict[tuple[str, int], Examples] = defaultdict(Examples)
        self.metadata = Burst(_METADATA, _METADATA_S)
        self.metadata_interval_ms = Distribution()
        self._open: dict[int, _Open] = {}
        self._lost: dict[_Place, _Lost] = {}
        self._last_ns = 0

    def handlers(self) -> Handlers:
        return {
            EVERY_REQUEST: self._request,
            "Metadata": self._metadata,
            "connection-opened": self._opened,
            "connection-closed": self._closed,
        }

    def idle(self, seconds: float) -> list[Idle]:
        """Return by host and broker the open connections without a request in the last `seconds`."""
        since_ns = self._last_ns - round(seconds * 1e9)
        counts: dict[_Place, Idle] = {}
        for one in self._open.values():
            before = counts.get(one.place, Idle(one.place, 0, 0))
            counts[one.place] = before._replace(idle=before.idle + (one.last_ns < since_ns), opened=before.opened + 1)
        return sorted(counts.values(), reverse=True, key=lambda each: each.idle)

    def _begin(self, number: int, event: ConnectionOpened | Request, at_ns: int) -> _Open:
        self.count += 1
        if len(self._open) >= _MOST_OPEN:
            del self._open[next(iter(self._open))]
        place = event.broker, host_of(event.peer)
        found = self._open[number] = _Open(place, at_ns, self._last_ns)
        lost = self._lost.pop(place, None)
        if lost is not None and at_ns >= lost.at_ns:
            found.row = self.reconnects.add(lost.row, (at_ns - lost.at_ns) // _NS_PER_US, event)
            self.storm.add(event, place)
        return found

    def _opened(self, event: ConnectionOpened) -> None:
        self._begin(event.connection, event, event.at_ns)

    def _request(self, event: Request) -> None:
        one = self._of(event)
        one.last_ns = self._last_ns = event.at_ns
        api = event.api
        if api not in _PREPARATIONS:
            one.work += 1
        if event.answered_ns is not None:
            one.has_response = True
        if event.version < LOWEST_VERSIONS.get(api, 0):
            self.ended[api, event.version].note(event)

    def _metadata(self, event: Request) -> None:
        one = self._of(event)
        one.metadata += 1
        if one.metadata > _METADATA_AT_START:
            self.metadata.add(event, event.connection)
            if one.metadata_ns:
                self.metadata_interval_ms.add((event.received_ns - one.metadata_ns) // _NS_PER_MS)
        one.metadata_ns = 0 if event.error_codes else event.received_ns

    def _of(self, event: Request) -> _Open:
        return self._open.get(event.connection) or self._begin(event.connection, event, event.received_ns)

    def _closed(self, event: ConnectionClosed) -> None:
        one = self._open.pop(event.connection, None)
        if one is None:
            return
        if event.by_client:
            self.closed += 1
            if one.has_response and one.work <= 1 and event.at_ns - one.first_ns < SHORT_NS:
                self.short.add(event, one.place[1])
        is_failed = not one.has_response
        if is_failed or not event.by_client:
            if len(self._lost) >= _MOST_HOSTS:
                del self._lost[next(iter(self._lost))]
            row = one.row if is_failed and one.row is not None else Row(one.before_ns, event.at_ns)
            self._lost[one.place] = _Lost(event.at_ns, row)
