"""Takes new connections in, as far as limits allow: one after the other, each listener by itself.

Follows the Acceptor of Kafka's SocketServer, whose thread waits while a connection may not come in yet; those behind it
wait in the socket's backlog. Here they have been accepted already, and are not read: no client can tell that from a
backlog. The states of a listener's first connection are

    comes -> *throttled* for as long as its rate says -> *waits for room* -> its address is asked -> taken in
                                                                                                  -> closed at once
                                                                                                  -> closed later

and both waits are operations in the purgatory. There is no acceptor before the first limit is set. Of a TLS listener
what comes is a connection that has shaken hands. Different on purpose: what is closed later goes when its time is over,
where Kafka looks twice a second.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sluice.config.broker_config import Config
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.quotas.address import normal_address
from sluice.quotas.connection_quotas import ConnectionQuotas
from sluice.quotas.sensor import MAX_THROTTLE_TIME_MS
from sluice.quotas.store import Address

from .connection import Connection

if TYPE_CHECKING:
    from .services import NetworkHost

MAX_CONNECTIONS = "max.connections"
MAX_RATE = "max.connection.creation.rate"
_PER_ADDRESS = "max.connections.per.ip"
_OVERRIDES = "max.connections.per.ip.overrides"
# Kafka's Metrics looks for expired sensors this often.
_EXPIRY_INTERVAL_MS = 30_000


class _Throttled(DelayedOperation):
    """The first connection of a listener, while new ones come too fast."""

    __slots__ = ("_queue",)

    def __init__(self, queue: "_Queue", throttle_ms: int) -> None:
        super().__init__(throttle_ms)
        self._queue = queue

    def on_complete(self) -> None:
        self._queue.throttled = False
        self._queue.advance()


class _WaitsForRoom(DelayedOperation):
    """The first connection of a listener, while there are as many as there may be."""

    __slots__ = ("_queue",)

    def __init__(self, queue: "_Queue") -> None:
        super().__init__(MAX_THROTTLE_TIME_MS)  # until room is made; should that be longer, it asks again
        self._queue = queue

    def try_complete(self) -> bool:
        return self._queue.first_may_come() and self.force_complete()

    def on_complete(self) -> None:
        self._queue.advance()


class _ClosedLater(DelayedOperation):
    """A connection of an address that may not have it yet: silence, and then its end."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection, throttle_ms: int) -> None:
        super().__init__(throttle_ms)
        self._connection = connection

    def on_complete(self) -> None:
        self._connection.abort()


class _Queue:
    """The connections of one listener that wait to be taken in, in the order they came."""

    def __init__(self, acceptor: "Acceptor", listener: str) -> None:
        self._acceptor = acceptor
        self._listener = listener
        self._waiting: dict[Connection, None] = {}
        self._first_is_charged = False
        self.throttled = False  # the first one waits for its throttle time to be over

    def add(self, connection: Connection) -> None:
        """A new connection, the last of all."""
        self._waiting[connection] = None
        if len(self._waiting) == 1:
            self.advance()
        if connection in self._waiting:
            connection.park(lambda: self._left(connection))
            connection.mute()

    def first_may_come(self) -> bool:
        """Whether the first one, whose throttle time is over, need not wait for room."""
        return self._acceptor.quotas.has_room(self._listener) or next(iter(self._waiting)).closed

    def advance(self) -> None:
        """Takes in whoever may come now."""
        purgatory = self._acceptor.waiting
        while self._waiting and not self.throttled:
            if not self._first_is_charged:
                self._first_is_charged = True
                throttle_ms = self._acceptor.quotas.record(self._listener, self._acceptor.now_ms())
                if throttle_ms > 0:
                    self.throttled = True
                    purgatory.delay(_Throttled(self, throttle_ms))
                    return
            if not self.first_may_come():
                purgatory.try_complete_else_watch(_WaitsForRoom(self), [self])
                return
            connection = next(iter(self._waiting))
            del self._waiting[connection]
            self._first_is_charged = False
            if not connection.closed:
                self._acceptor.admit_waiting(self._listener, connection)

    def _left(self, connection: Connection) -> None:
        # What the first one waits for goes on: it was charged, and is found closed.
        if connection in self._waiting and connection is not next(iter(self._waiting)):
            del self._waiting[connection]


class Acceptor:
    """The limits of one server's connections."""

    def __init__(self, broker: "NetworkHost", listeners: Iterable[str], connections: Iterable[Connection]) -> None:
        """`connections` are there already."""
        inter_broker = broker.config.value("inter.broker.listener.name")
        self.broker = broker
        self.quotas = ConnectionQuotas(broker.quotas.config, listeners, str(inter_broker or "PLAINTEXT").upper())
        self.waiting = DelayedOperationPurgatory("Accept", broker.timer)
        self._queues = {name: _Queue(self, name) for name in self.quotas.listeners}
        self._taken_in: dict[Connection, tuple[str, str]] = {}  # with listener and address
        broker.scheduler.schedule(_EXPIRY_INTERVAL_MS, lambda: self.quotas.expire(self.now_ms()))
        for connection in connections:
            self._add(connection.advertised.name, connection)

    def on_connect(self, connection: Connection) -> None:
        """A new connection: goes on at once, or waits, or is closed."""
        self._queues[connection.advertised.name].add(connection)

    def on_disconnect(self, connection: Connection) -> None:
        """A connection has ended: there may be room for another."""
        counted = self._taken_in.pop(connection, None)
        if counted is not None:
            self.quotas.remove(*counted)
            self._make_use_of_room()

    def configure(self, config: Config) -> None:
        """Puts limits in force that may have changed."""
        quotas = self.quotas
        quotas.max_connections = config.integer(MAX_CONNECTIONS)
        quotas.rate.hold_to(config.integer(MAX_RATE))
        quotas.max_connections_per_address = config.integer(_PER_ADDRESS)
        overrides = config.rates(_OVERRIDES)
        quotas.overrides = {normal_address(host) or host: int(count) for host, count in overrides.items()}
        for name, listener in quotas.listeners.items():
            own = config.of_listener(name)
            listener.max_connections = own.integer(MAX_CONNECTIONS)
            listener.rate.hold_to(own.integer(MAX_RATE))
        self._close_exceeding()
        self._make_use_of_room()

    def limit_address(self, address: Address, rate: float | None) -> None:
        """Limits how fast connections of an address may come."""
        self.quotas.limit_address(address, rate)

    def admit_waiting(self, listener: str, connection: Connection) -> None:
        """A connection whose turn it is: asks its address, then lets it be read."""
        address = _address(connection)
        throttle_ms = self.quotas.record_address(listener, address, self.now_ms())
        if throttle_ms > 0:
            self._journal_refusal(connection, f"connections of {address} come too fast", throttle_ms)
            closing = _ClosedLater(connection, throttle_ms)
            connection.park(closing.force_complete)
            connection.mute()
            self.waiting.delay(closing)
        elif not self._add(listener, connection):
            most = self.quotas.overrides.get(address, self.quotas.max_connections_per_address)
            reason = f"{address} has the most connections that it may have, {most}"
            self._journal_refusal(connection, reason, 0)
            connection.close(reason)
        else:
            self._close_exceeding()
            if connection.waiting:
                connection.resume()

    def now_ms(self) -> int:
        """Wall-clock time for quotas."""
        return self.broker.quota_time_ms()

    def _journal_refusal(self, connection: Connection, reason: str, throttle_ms: int) -> None:
        journal = self.broker.journal
        if journal is not None:
            journal.refused(connection.ctx, reason, throttle_ms)

    def _add(self, listener: str, connection: Connection) -> bool:
        address = _address(connection)
        self._taken_in[connection] = listener, address
        return self.quotas.add(listener, address)

    def _make_use_of_room(self) -> None:
        for queue in self._queues.values():
            self.waiting.check_and_complete(queue)

    def _close_exceeding(self) -> None:
        """Where the brokers' listener brought more than the broker may have, others' least recently used ones go."""
        others = [one for one, (name, _) in self._taken_in.items() if not self.quotas.is_protected(name)]
        others.sort(key=lambda connection: connection.last_active_ms)
        for connection in others[: max(0, self.quotas.connections - self.quotas.max_connections)]:
            connection.close(f"there are more connections than {MAX_CONNECTIONS}, and this one was idle longest")


def _address(connection: Connection) -> str:
    host = connection.peer.rpartition(":")[0]
    return normal_address(host) or host
