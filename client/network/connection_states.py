"""What is known of each connection: may it be tried, must it wait, how long may an attempt take (KIP-144, KIP-601,
KIP-219). Kafka's ClusterConnectionStates: no socket, no clock, `now_ms` is a parameter.

Theory of operation. A connection has an id: a broker's node id, -1, -2, ... for the addresses of `bootstrap.servers`,
and 2**31 - 1 minus the node id for a group coordinator. One broker may so be reached by several connections, which know
nothing of each other. Each is in one of five states, and keeps two times that grow with its failures:

    what happens            the state then          reconnect backoff   connection setup timeout
    connecting              CONNECTING              (drawn when new)    (drawn when new)
    checking_api_versions   CHECKING_API_VERSIONS   as it was           reset
    ready                   READY                   reset               reset
    disconnected
      from CONNECTING       DISCONNECTED            grown               grown
      from anything else    DISCONNECTED            grown               reset
    authentication_failed   AUTHENTICATION_FAILED   grown               as it was

So the backoff is reset by an answered ApiVersions request, not by a TCP connection that came about; the first
reconnect after a good connection waits too; and a failed authentication, which is also a disconnect, counts twice. Each
reset and each growth is one draw.

A connection throttled until some moment is not ready before it; that outlasts a reconnect. `remove` forgets all: the
next attempt is then allowed at once.

Addresses: of a host with several, each attempt tries the next. When all were tried, or a connection that had been made
is lost, the name is resolved again, and the address tried last is skipped if there is another.
"""

from collections.abc import Sequence
from enum import Enum
from math import inf
from typing import NamedTuple

from sluice.client.backoff import Backoff

# What `socket.getaddrinfo` gives for an address, for one who opens a connection.
Address = tuple[str, int]


class ConnectionState(Enum):
    """As in Kafka's enum of this name."""

    DISCONNECTED = "DISCONNECTED"
    CONNECTING = "CONNECTING"
    CHECKING_API_VERSIONS = "CHECKING_API_VERSIONS"
    READY = "READY"
    AUTHENTICATION_FAILED = "AUTHENTICATION_FAILED"


class _Then(Enum):
    """What becomes of one of the two times."""

    KEPT = "kept"
    RESET = "reset"
    GROWN = "grown"


class _Transition(NamedTuple):
    state: ConnectionState
    reconnect_backoff: _Then
    setup_timeout: _Then


_CHECKING_API_VERSIONS = _Transition(ConnectionState.CHECKING_API_VERSIONS, _Then.KEPT, _Then.RESET)
_READY = _Transition(ConnectionState.READY, _Then.RESET, _Then.RESET)
_COULD_NOT_CONNECT = _Transition(ConnectionState.DISCONNECTED, _Then.GROWN, _Then.GROWN)
_DISCONNECTED = _Transition(ConnectionState.DISCONNECTED, _Then.GROWN, _Then.RESET)
_AUTHENTICATION_FAILED = _Transition(ConnectionState.AUTHENTICATION_FAILED, _Then.GROWN, _Then.KEPT)

_DOWN = (ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED)
_UP = (ConnectionState.CHECKING_API_VERSIONS, ConnectionState.READY)


class NodeConnection:
    """The state of one connection."""

    __slots__ = (
        "_address_index",
        "_addresses",
        "_last_attempted",
        "authentication_error",
        "connection_setup_timeout_ms",
        "failed_attempts",
        "failed_connect_attempts",
        "host",
        "last_connect_attempt_ms",
        "reconnect_backoff_ms",
        "state",
        "throttled_until_ms",
    )

    def __init__(self, host: str, now_ms: float, reconnect_backoff_ms: int, connection_setup_timeout_ms: int) -> None:
        self.host = host
        self.state = ConnectionState.CONNECTING
        self.last_connect_attempt_ms = now_ms
        self.failed_attempts = 0
        self.failed_connect_attempts = 0
        self.reconnect_backoff_ms = reconnect_backoff_ms
        self.connection_setup_timeout_ms = connection_setup_timeout_ms
        self.throttled_until_ms: float = 0
        self.authentication_error: Exception | None = None
        self._addresses: Sequence[Address] = ()
        self._address_index = 0
        self._last_attempted: Address | None = None

    @property
    def is_down(self) -> bool:
        return self.state in _DOWN

    @property
    def is_up(self) -> bool:
        """Whether there is a connection over which something can be sent."""
        return self.state in _UP

    def is_ready(self, now_ms: float) -> bool:
        return self.state is ConnectionState.READY and self.throttled_until_ms <= now_ms

    def next_address(self) -> Address | None:
        """The address to try now; None: the host is to be resolved first."""
        if not self._addresses:
            return None
        self._last_attempted = self._addresses[self._address_index]
        return self._last_attempted

    def resolved(self, addresses: Sequence[Address]) -> None:
        """The host's addresses, at least one, in the order in which they are to be tried."""
        self._addresses = addresses
        self._address_index = int(len(addresses) > 1 and addresses[0] == self._last_attempted)

    def advance_address(self) -> None:
        """Another attempt begins; after the last address the host is resolved again."""
        if self._addresses:
            self._address_index = (self._address_index + 1) % len(self._addresses)
            if self._address_index == 0:
                self.forget_addresses()

    @property
    def is_last_address(self) -> bool:
        """Whether the host has no other address that is still to be tried."""
        return self._address_index + 1 >= len(self._addresses)

    def forget_addresses(self) -> None:
        """The host may have moved: it is resolved before the next attempt."""
        self._addresses = ()


class ClusterConnectionStates:
    """The states of all of a client's connections, by their ids."""

    __slots__ = ("_connecting", "_connections", "_reconnect_backoff", "_setup_timeout")

    def __init__(self, reconnect_backoff: Backoff, connection_setup_timeout: Backoff) -> None:
        self._reconnect_backoff = reconnect_backoff
        self._setup_timeout = connection_setup_timeout
        self._connections: dict[int, NodeConnection] = {}
        self._connecting: dict[int, NodeConnection] = {}  # those of them in this state, which are few

    # -- what happens --------------------------------------------------------------------------------------------------

    def connecting(self, node_id: int, now_ms: float, host: str) -> NodeConnection:
        """An attempt begins. Another host than before is another broker: nothing of the old one counts."""
        connection = self._connections.get(node_id)
        if connection is None or connection.host != host:
            backoff, timeout = self._reconnect_backoff.backoff(0), self._setup_timeout.backoff(0)
            connection = self._connections[node_id] = NodeConnection(host, now_ms, backoff, timeout)
        else:
            connection.last_connect_attempt_ms = now_ms
            connection.state = ConnectionState.CONNECTING
            connection.advance_address()
        self._connecting[node_id] = connection
        return connection

    def checking_api_versions(self, node_id: int) -> None:
        """The connection is made, TLS and SASL included, and the ApiVersions request is on its way."""
        self._move(node_id, _CHECKING_API_VERSIONS)

    def ready(self, node_id: int) -> None:
        """ApiVersions was answered, or is not asked for."""
        self._connections[node_id].authentication_error = None
        self._move(node_id, _READY)

    def disconnected(self, node_id: int, now_ms: float) -> None:
        """The connection, or the attempt at one, is over."""
        connection = self._connections[node_id]
        connection.last_connect_attempt_ms = now_ms
        if connection.is_up:
            connection.forget_addresses()
        was_connecting = connection.state is ConnectionState.CONNECTING
        self._move(node_id, _COULD_NOT_CONNECT if was_connecting else _DISCONNECTED)

    def authentication_failed(self, node_id: int, now_ms: float, error: Exception) -> None:
        """The broker does not believe who we are; comes after `disconnected`."""
        connection = self._connections[node_id]
        connection.authentication_error = error
        connection.last_connect_attempt_ms = now_ms
        self._move(node_id, _AUTHENTICATION_FAILED)

    def throttle(self, node_id: int, until_ms: float) -> None:
        """Nothing is to be sent before `until_ms` (KIP-219). It never becomes earlier."""
        connection = self._connections.get(node_id)
        if connection is not None:
            connection.throttled_until_ms = max(connection.throttled_until_ms, until_ms)

    def remove(self, node_id: int) -> None:
        """Forgets a connection."""
        self._connections.pop(node_id, None)
        self._connecting.pop(node_id, None)

    # -- what holds ----------------------------------------------------------------------------------------------------

    def get(self, node_id: int) -> NodeConnection | None:
        """What is known of a connection."""
        return self._connections.get(node_id)

    def can_connect(self, node_id: int, now_ms: float) -> bool:
        """Whether an attempt may begin."""
        connection = self._connections.get(node_id)
        if connection is None:
            return True
        return connection.is_down and now_ms - connection.last_connect_attempt_ms >= connection.reconnect_backoff_ms

    def is_blacked_out(self, node_id: int, now_ms: float) -> bool:
        """Whether an attempt would be too early."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.is_down and not self.can_connect(node_id, now_ms)

    def connection_delay_ms(self, node_id: int, now_ms: float) -> float:
        """How long until it is worth looking again; inf where something will happen before: an answer, a loss."""
        connection = self._connections.get(node_id)
        if connection is None:
            return 0
        if connection.state is ConnectionState.CONNECTING:
            return connection.connection_setup_timeout_ms
        if connection.is_down:
            return max(0, connection.reconnect_backoff_ms - (now_ms - connection.last_connect_attempt_ms))
        return inf

    def throttle_delay_ms(self, node_id: int, now_ms: float) -> float:
        """How long nothing may be sent."""
        connection = self._connections.get(node_id)
        return 0 if connection is None else max(0, connection.throttled_until_ms - now_ms)

    def poll_delay_ms(self, node_id: int, now_ms: float) -> float:
        """How long until something can be sent, as far as can be known."""
        throttled_ms = self.throttle_delay_ms(node_id, now_ms)
        if throttled_ms > 0 and self.is_connected(node_id):
            return throttled_ms
        return self.connection_delay_ms(node_id, now_ms)

    def is_connecting(self, node_id: int) -> bool:
        return node_id in self._connecting

    def is_preparing(self, node_id: int) -> bool:
        """Whether an attempt is under way, up to the answer to ApiVersions."""
        connection = self._connections.get(node_id)
        states = (ConnectionState.CONNECTING, ConnectionState.CHECKING_API_VERSIONS)
        return connection is not None and connection.state in states

    def is_ready(self, node_id: int, now_ms: float) -> bool:
        """Whether requests may be sent: connected, versions known, not throttled."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.is_ready(now_ms)

    def has_ready_nodes(self, now_ms: float) -> bool:
        return any(connection.is_ready(now_ms) for connection in self._connections.values())

    def is_connected(self, node_id: int) -> bool:
        connection = self._connections.get(node_id)
        return connection is not None and connection.is_up

    def is_disconnected(self, node_id: int) -> bool:
        """Whether there was a connection, or an attempt, and it failed."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.is_down

    def last_connect_attempt_ms(self, node_id: int) -> float:
        """When the last attempt began or ended; 0 for a connection that was never tried."""
        connection = self._connections.get(node_id)
        return 0 if connection is None else connection.last_connect_attempt_ms

    def is_connection_setup_timeout(self, node_id: int, now_ms: float) -> bool:
        """Whether an attempt that is under way takes longer than it may (KIP-601)."""
        connection = self._connecting[node_id]
        return now_ms - connection.last_connect_attempt_ms > connection.connection_setup_timeout_ms

    def nodes_with_connection_setup_timeout(self, now_ms: float) -> list[int]:
        return [node_id for node_id in self._connecting if self.is_connection_setup_timeout(node_id, now_ms)]

    def _move(self, node_id: int, transition: _Transition) -> None:
        connection = self._connections[node_id]
        connection.state = transition.state
        self._connecting.pop(node_id, None)
        # The reconnect backoff first: the order of the draws is part of what a seed repeats.
        if transition.reconnect_backoff is _Then.RESET:
            connection.failed_attempts = 0
            connection.reconnect_backoff_ms = self._reconnect_backoff.backoff(0)
        elif transition.reconnect_backoff is _Then.GROWN:
            connection.reconnect_backoff_ms = self._reconnect_backoff.backoff(connection.failed_attempts)
            connection.failed_attempts += 1
        if transition.setup_timeout is _Then.RESET:
            connection.failed_connect_attempts = 0
            connection.connection_setup_timeout_ms = self._setup_timeout.backoff(0)
        elif transition.setup_timeout is _Then.GROWN:
            connection.failed_connect_attempts += 1
            connection.connection_setup_timeout_ms = self._setup_timeout.backoff(connection.failed_connect_attempts)
