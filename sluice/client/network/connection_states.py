"""The state, backoff and timeouts of each connection (KIP-144, KIP-601, KIP-219; Kafka's ClusterConnectionStates).

The id of a connection is a broker's node id; -1, -2, ... for the addresses of `bootstrap.servers`; 2**31 - 1 minus the
node id for a group coordinator. It is in one of five states, and has two times that grow with its failures:

    event                   new state               reconnect backoff   connection setup timeout
    connecting              CONNECTING              (drawn if new)      (drawn if new)
    checking_api_versions   CHECKING_API_VERSIONS   unchanged           reset
    ready                   READY                   reset               reset
    disconnected
      from CONNECTING       DISCONNECTED            grown               grown
      from other states     DISCONNECTED            grown               reset
    authentication_failed   AUTHENTICATION_FAILED   grown               unchanged

So an ApiVersions response resets the backoff; a TCP connection does not. The first reconnect after a good connection
waits too. A failed authentication, which is also a disconnect, counts twice. Each reset and each growth is one draw.

A throttle outlasts a reconnect.

Each attempt uses the next address of a host. After the last one, or after an established connection is lost, the name
is resolved again, and the last address used is skipped if there is another.
"""

from collections.abc import Sequence
from enum import Enum, auto
from math import inf
from typing import NamedTuple

from sluice.client.backoff import Backoff

Address = tuple[str, int]


class ConnectionState(Enum):
    DISCONNECTED = auto()
    CONNECTING = auto()
    CHECKING_API_VERSIONS = auto()
    READY = auto()
    AUTHENTICATION_FAILED = auto()


class _Effect(Enum):
    KEPT = auto()
    RESET = auto()
    GROWN = auto()


class _Transition(NamedTuple):
    state: ConnectionState
    reconnect_backoff: _Effect
    setup_timeout: _Effect


_CHECKING_API_VERSIONS = _Transition(ConnectionState.CHECKING_API_VERSIONS, _Effect.KEPT, _Effect.RESET)
_READY = _Transition(ConnectionState.READY, _Effect.RESET, _Effect.RESET)
_COULD_NOT_CONNECT = _Transition(ConnectionState.DISCONNECTED, _Effect.GROWN, _Effect.GROWN)
_DISCONNECTED = _Transition(ConnectionState.DISCONNECTED, _Effect.GROWN, _Effect.RESET)
_AUTHENTICATION_FAILED = _Transition(ConnectionState.AUTHENTICATION_FAILED, _Effect.GROWN, _Effect.KEPT)

_DOWN = (ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED)
_UP = (ConnectionState.CHECKING_API_VERSIONS, ConnectionState.READY)


class NodeConnection:
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
        return self.state in _UP

    def is_ready(self, now_ms: float) -> bool:
        return self.state is ConnectionState.READY and self.throttled_until_ms <= now_ms

    def next_address(self) -> Address | None:
        if not self._addresses:
            return None
        self._last_attempted = self._addresses[self._address_index]
        return self._last_attempted

    def resolved(self, addresses: Sequence[Address]) -> None:
        self._addresses = addresses
        self._address_index = int(len(addresses) > 1 and addresses[0] == self._last_attempted)

    def advance_address(self) -> None:
        if self._addresses:
            self._address_index = (self._address_index + 1) % len(self._addresses)
            if self._address_index == 0:
                self.forget_addresses()

    @property
    def is_last_address(self) -> bool:
        return self._address_index + 1 >= len(self._addresses)

    def forget_addresses(self) -> None:
        self._addresses = ()


class ClusterConnectionStates:
    def __init__(self, reconnect_backoff: Backoff, connection_setup_timeout: Backoff) -> None:
        self._reconnect_backoff = reconnect_backoff
        self._setup_timeout = connection_setup_timeout
        self._connections: dict[int, NodeConnection] = {}
        self._connecting: dict[int, NodeConnection] = {}

    # -- transitions ---------------------------------------------------------------------------------------------------

    def connecting(self, node_id: int, now_ms: float, host: str) -> NodeConnection:
        """Start an attempt. A new host means a new broker, and discards the state."""
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
        self._move(node_id, _CHECKING_API_VERSIONS)

    def ready(self, node_id: int) -> None:
        self._connections[node_id].authentication_error = None
        self._move(node_id, _READY)

    def disconnected(self, node_id: int, now_ms: float) -> None:
        connection = self._connections[node_id]
        connection.last_connect_attempt_ms = now_ms
        if connection.is_up:
            connection.forget_addresses()
        was_connecting = connection.state is ConnectionState.CONNECTING
        self._move(node_id, _COULD_NOT_CONNECT if was_connecting else _DISCONNECTED)

    def authentication_failed(self, node_id: int, now_ms: float, error: Exception) -> None:
        connection = self._connections[node_id]
        connection.authentication_error = error
        connection.last_connect_attempt_ms = now_ms
        self._move(node_id, _AUTHENTICATION_FAILED)

    def throttle(self, node_id: int, until_ms: float) -> None:
        connection = self._connections.get(node_id)
        if connection is not None:
            connection.throttled_until_ms = max(connection.throttled_until_ms, until_ms)

    def remove(self, node_id: int) -> None:
        self._connections.pop(node_id, None)
        self._connecting.pop(node_id, None)

    # -- queries -------------------------------------------------------------------------------------------------------

    def get(self, node_id: int) -> NodeConnection | None:
        return self._connections.get(node_id)

    def can_connect(self, node_id: int, now_ms: float) -> bool:
        connection = self._connections.get(node_id)
        if connection is None:
            return True
        return connection.is_down and now_ms - connection.last_connect_attempt_ms >= connection.reconnect_backoff_ms

    def connection_delay_ms(self, node_id: int, now_ms: float) -> float:
        """Return the milliseconds until the next check; inf if an event will precede it."""
        connection = self._connections.get(node_id)
        if connection is None:
            return 0
        if connection.state is ConnectionState.CONNECTING:
            return connection.connection_setup_timeout_ms
        if connection.is_down:
            return max(0, connection.reconnect_backoff_ms - (now_ms - connection.last_connect_attempt_ms))
        return inf

    def throttle_delay_ms(self, node_id: int, now_ms: float) -> float:
        connection = self._connections.get(node_id)
        return 0 if connection is None else max(0, connection.throttled_until_ms - now_ms)

    def poll_delay_ms(self, node_id: int, now_ms: float) -> float:
        """Return the milliseconds until requests may be possible, as far as known."""
        throttled_ms = self.throttle_delay_ms(node_id, now_ms)
        if throttled_ms > 0 and self.is_connected(node_id):
            return throttled_ms
        return self.connection_delay_ms(node_id, now_ms)

    def is_connecting(self, node_id: int) -> bool:
        return node_id in self._connecting

    def is_preparing(self, node_id: int) -> bool:
        connection = self._connections.get(node_id)
        states = (ConnectionState.CONNECTING, ConnectionState.CHECKING_API_VERSIONS)
        return connection is not None and connection.state in states

    def is_ready(self, node_id: int, now_ms: float) -> bool:
        connection = self._connections.get(node_id)
        return connection is not None and connection.is_ready(now_ms)

    def is_connected(self, node_id: int) -> bool:
        connection = self._connections.get(node_id)
        return connection is not None and connection.is_up

    def is_disconnected(self, node_id: int) -> bool:
        connection = self._connections.get(node_id)
        return connection is not None and connection.is_down

    def last_connect_attempt_ms(self, node_id: int) -> float:
        connection = self._connections.get(node_id)
        return 0 if connection is None else connection.last_connect_attempt_ms

    def is_connection_setup_timeout(self, node_id: int, now_ms: float) -> bool:
        connection = self._connecting[node_id]
        return now_ms - connection.last_connect_attempt_ms > connection.connection_setup_timeout_ms

    def _move(self, node_id: int, transition: _Transition) -> None:
        connection = self._connections[node_id]
        connection.state = transition.state
        self._connecting.pop(node_id, None)
        # The reconnect backoff is first: the order of draws must not change for a given seed.
        if transition.reconnect_backoff is _Effect.RESET:
            connection.failed_attempts = 0
            connection.reconnect_backoff_ms = self._reconnect_backoff.backoff(0)
        elif transition.reconnect_backoff is _Effect.GROWN:
            connection.reconnect_backoff_ms = self._reconnect_backoff.backoff(connection.failed_attempts)
            connection.failed_attempts += 1
        if transition.setup_timeout is _Effect.RESET:
            connection.failed_connect_attempts = 0
            connection.connection_setup_timeout_ms = self._setup_timeout.backoff(0)
        elif transition.setup_timeout is _Effect.GROWN:
            connection.failed_connect_attempts += 1
            connection.connection_setup_timeout_ms = self._setup_timeout.backoff(connection.failed_connect_attempts)
