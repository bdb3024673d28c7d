"""Connections in the journal, and which of them are attempts at the same thing (KIP-144).

A client keeps a separate backoff for each bootstrap address, broker, and coordinator. So one broker may see several
sequences of attempts at once; a connection closed at once does not show its client.

A connection can continue a *sequence* of the same host to the same broker whose last connection has ended, unless the
sequence is known to be of another client (client id, KIP-511 name and version) or purpose (the APIs requested). Without
any, it begins a new one. Of several it continues

- one whose last connection was lost, before one that the client closed after use;
- then the one whose next attempt is due: after the same wait as the last time, or twice that wait;
- then the one with the nearest source port.
"""

from collections.abc import Iterable, Sequence
from itertools import count
from math import inf, log

import msgspec

from sluice.audit.judge.model import attempts
from sluice.journal_events import AnyEvent, ClientEvent, ConnectionClosed, ConnectionOpened, ConnectionRefused, Request

API_VERSIONS = "ApiVersions"
_LOGIN = "SaslAuthenticate"
_COORDINATOR = frozenset([
    "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "ConsumerGroupHeartbeat",
    "TxnOffsetCommit",
])  # fmt: skip
_BROKER = frozenset(["Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch"])
# The assumed distance from being due, as a factor, of a sequence that has not waited since its last success.
_UNKNOWN = log(1.6)
_FIRST_FROM_MS, _FIRST_TO_MS = 20.0, 2000.0
_SHORTEST_MS = 0.1
_NEAR_PORTS = 64
CLOSE_NOTICED_NS = 20_000_000


class Connection(msgspec.Struct, kw_only=True):
    """One connection.

    closed_ns: null if it was open until the observation ended
    requests: ordered by response
    """

    number: int
    broker: int
    host: str
    port: int
    opened_ns: int
    client_id: str = ""
    software: tuple[str, str] = ("", "")
    closed_ns: int | None = None
    by_client: bool = False
    requests: list[Request] = []

    @property
    def is_identified(self) -> bool:
        return bool(self.client_id or self.software != ("", "")) or bool(self.requests)

    @property
    def roles(self) -> frozenset[str]:
        apis = {request.api for request in self.requests}
        return frozenset(
            role for role, own in (("coordinator", _COORDINATOR), ("broker", _BROKER)) if not apis.isdisjoint(own)
        )

    @property
    def is_rejected(self) -> bool:
        """Whether the client failed to log in."""
        return any(request.api == _LOGIN and request.error_codes for request in self.requests)

    @property
    def outcome(self) -> attempts.Outcome:
        first = self.requests[0] if self.requests else None
        if self.is_rejected:
            return attempts.Outcome.ERROR
        if first is not None and first.answered_ns is not None and not first.error_codes:
            return attempts.Outcome.SUCCEEDED
        if self.closed_ns is None:
            return attempts.Outcome.UNANSWERED
        if first is not None and first.error_codes:
            return attempts.Outcome.ERROR
        return attempts.Outcome.ABANDONED if self.by_client else attempts.Outcome.DISCONNECTED

    @property
    def path(self) -> str:
        """How it failed; "" if it is open, or the client closed it after use."""
        if self.closed_ns is None:
            return ""
        if self.is_rejected:
            return attempts.REJECTED
        if self.outcome is not attempts.Outcome.SUCCEEDED:
            return attempts.SILENT if self.by_client else attempts.CLOSED
        if self.by_client:
            return ""
        answered = [request for request in self.requests if request.answered_ns is not None]
        return attempts.AFTER_VERSIONS if all(request.api == API_VERSIONS for request in answered) else attempts.LOST


def connections(events: Iterable[AnyEvent]) -> list[Connection]:
    found: dict[int, Connection] = {}
    for event in events:
        if not isinstance(event, ClientEvent) or event.connection < 0:
            continue
        one = found.get(event.connection)
        if one is None:
            one = found[event.connection] = _begun(event)
        one.client_id = event.client_id or one.client_id
        if event.software_name:
            one.software = event.software_name, event.software_version
        if isinstance(event, Request):
            one.requests.append(event)
        elif isinstance(event, ConnectionClosed):
            one.closed_ns, one.by_client = event.at_ns, event.by_client
    return sorted(found.values(), key=lambda one: (one.opened_ns, one.number))


def _begun(event: ClientEvent) -> Connection:
    host, _, port = event.peer.rpartition(":")
    opened_ns = event.received_ns if isinstance(event, Request) else event.at_ns
    if isinstance(event, ConnectionOpened | ConnectionRefused):
        opened_ns = event.at_ns
    return Connection(
        number=event.connection,
        broker=event.broker,
        host=host,
        port=int(port) if port.isdigit() else 0,
        opened_ns=opened_ns,
        requests=[],
    )


class ConnectionSequence:
    def __init__(self, first: Connection) -> None:
        self.connections = [first]
        self.client_id, self.software = first.client_id, first.software
        self.is_identified, self.roles = first.is_identified, first.roles
        self._last_wait_ms: float | None = None

    @property
    def broker(self) -> int:
        return self.connections[0].broker

    def can_continue_with(self, one: Connection) -> bool:
        last = self.connections[-1]
        if last.host != one.host or last.broker != one.broker:
            return False
        if last.closed_ns is None or last.closed_ns - _noticed_within_ns(last) > one.opened_ns:
            return False
        if self.is_identified and one.is_identified and not self._is_same_client(one):
            return False
        return not (self.roles and one.roles and self.roles.isdisjoint(one.roles))

    @property
    def is_complete(self) -> bool:
        last = self.connections[-1]
        return last.by_client and last.outcome is attempts.Outcome.SUCCEEDED

    def _is_same_client(self, one: Connection) -> bool:
        same_id = not self.client_id or not one.client_id or self.client_id == one.client_id
        unnamed = ("", "")
        same_software = unnamed in (self.software, one.software) or self.software == one.software
        return same_id and same_software

    def unlikelihood(self, one: Connection) -> tuple[float, int, int]:
        last = self.connections[-1]
        assert last.closed_ns is not None, "can_continue_with requires a closed connection"
        waited_ms = (one.opened_ns - last.closed_ns) / 1e6
        ports = min(abs(one.port - last.port), _NEAR_PORTS)
        return round(self._surprise(max(waited_ms, _SHORTEST_MS)), 1), ports, -last.closed_ns

    def _surprise(self, waited_ms: float) -> float:
        if self._last_wait_ms is None:
            return _UNKNOWN + _away(waited_ms, _FIRST_FROM_MS, _FIRST_TO_MS)
        return _away(waited_ms, self._last_wait_ms, 2 * self._last_wait_ms)

    def append(self, one: Connection) -> None:
        last = self.connections[-1]
        assert last.closed_ns is not None, "can_continue_with requires a closed connection"
        waited_ms = max((one.opened_ns - last.closed_ns) / 1e6, _SHORTEST_MS)
        self._last_wait_ms = None if one.outcome is attempts.Outcome.SUCCEEDED else waited_ms
        self.connections.append(one)
        self.client_id = self.client_id or one.client_id
        self.software = one.software if self.software == ("", "") else self.software
        self.is_identified = self.is_identified or one.is_identified
        self.roles |= one.roles


def _noticed_within_ns(one: Connection) -> int:
    """Return how late the broker may notice that the client gave it up: after it has accepted the next one."""
    return CLOSE_NOTICED_NS if one.outcome is attempts.Outcome.ABANDONED else 0


def _away(waited_ms: float, least_ms: float, most_ms: float) -> float:
    return max(log(least_ms / waited_ms), log(waited_ms / most_ms), 0.0)


def group_connections(found: Sequence[Connection]) -> list[ConnectionSequence]:
    made: list[ConnectionSequence] = []
    for one in found:
        able = [sequence for sequence in made if sequence.can_continue_with(one)]
        if able:
            lost = [sequence for sequence in able if not sequence.is_complete]
            able = lost or able
            min(able, key=lambda sequence: sequence.unlikelihood(one)).append(one)
        else:
            made.append(ConnectionSequence(one))
    return made


def connect_sequences(events: Iterable[AnyEvent]) -> list[attempts.AttemptSequence]:
    """Group attempts by client, broker and purpose; a connection closed by the client after use ends a sequence."""
    used: dict[str, count[int]] = {}
    return [
        _sequence(sequence, part, used)
        for sequence in group_connections(connections(events))
        for part in _between_ends(sequence.connections)
    ]


def _between_ends(found: Sequence[Connection]) -> list[list[Connection]]:
    parts: list[list[Connection]] = [[]]
    for one in found:
        parts[-1].append(one)
        if one.outcome is attempts.Outcome.SUCCEEDED and one.by_client:
            parts.append([])
    return [part for part in parts if part]


def _sequence(
    sequence: ConnectionSequence, part: Sequence[Connection], used: dict[str, "count[int]"]
) -> attempts.AttemptSequence:
    role = " and ".join(sorted(sequence.roles)) or "bootstrap"
    client = sequence.client_id or sequence.software[0] or part[0].host
    name = f"{client} to broker {sequence.broker} as {role}"
    number = next(used.setdefault(name, count(1)))
    paths = [one.path for one in part if one.path]
    return attempts.AttemptSequence(
        kind=attempts.Kind.CONNECT,
        key=name if number == 1 else f"{name} #{number}",
        attempts=[_attempt(one) for one in part],
        path=max(dict.fromkeys(paths), key=paths.count) if paths else "",
    )


def _attempt(one: Connection) -> attempts.Attempt:
    codes = one.requests[0].error_codes if one.requests else []
    return attempts.Attempt(
        at_ns=one.opened_ns,
        ended_ns=one.closed_ns,
        outcome=one.outcome,
        error_codes=list(codes),
        connection=one.number,
        broker=one.broker,
    )


def most_half_open(found: Sequence[Connection]) -> int:
    """Return the most connections to one broker that were accepted but had no response yet."""
    most = 0
    for one in found:
        others = [
            other
            for other in found
            if other.broker == one.broker
            and other.host == one.host
            and other.opened_ns <= one.opened_ns < _made_ns(other)
        ]
        most = max(most, len(others))
    return most


def _made_ns(one: Connection) -> float:
    answered = [request.answered_ns for request in one.requests if request.answered_ns is not None]
    ends = [end for end in (*answered[:1], one.closed_ns) if end is not None]
    return min(ends, default=inf)
