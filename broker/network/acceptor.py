"""Connection limits: admission of new connections, one at a time per listener.

Follows the Acceptor of Kafka's SocketServer, whose thread blocks while a connection may not be admitted. Here later
ones are accepted but not read, which clients cannot distinguish. The first connection of a listener has these states:

    new -> *throttled* by the creation rate -> *waiting for a slot* -> limits of its address -> admitted
                                                                                             -> closed at once
                                                                                             -> closed after a delay

Different on purpose: a delayed close happens when its delay ends; Kafka checks every 500 ms.
"""

from collections.abc import Iterable

from sluice.broker.broker import Broker
from sluice.config.broker_config import Config
from sluice.purgatory.operation import DelayedAction
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.quotas.address import normal_address
from sluice.quotas.connection_quotas import ConnectionQuotas
from sluice.quotas.sensor import MAX_THROTTLE_TIME_MS
from sluice.quotas.store import Address

from .connection import Connection

MAX_CONNECTIONS = "max.connections"
MAX_RATE = "max.connection.creation.rate"
_PER_ADDRESS = "max.connections.per.ip"
_OVERRIDES = "max.connections.per.ip.overrides"
# The interval at which Kafka's Metrics removes expired sensors.
_EXPIRY_INTERVAL_MS = 30_000


class _Queue:
    """One listener's connections that wait for admission, in order."""

    def __init__(self, acceptor: "Acceptor", listener: str) -> None:
        self._acceptor = acceptor
        self._listener = listener
        self._waiting: dict[Connection, None] = {}
        self._first_is_charged = False
        self._is_throttled = False

    def add(self, connection: Connection) -> None:
        self._waiting[connection] = None
        if len(self._waiting) == 1:
            self.advance()
        if connection in self._waiting:
            connection.mute(lambda: self._left(connection))

    def _first_can_proceed(self) -> bool:
        return self._acceptor.quotas.has_room(self._listener) or next(iter(self._waiting)).closed

    def advance(self) -> None:
        purgatory = self._acceptor.waiting
        while self._waiting and not self._is_throttled:
            if not self._first_is_charged:
                self._first_is_charged = True
                throttle_ms = self._acceptor.quotas.record(self._listener, self._acceptor.now_ms())
                if throttle_ms > 0:
                    self._is_throttled = True
                    purgatory.delay(DelayedAction(throttle_ms, self._end_throttle))
                    return
            if not self._first_can_proceed():
                # After a longer wait, `advance` starts another one.
                waits = DelayedAction(MAX_THROTTLE_TIME_MS, self.advance, self._first_can_proceed)
                purgatory.try_complete_else_watch(waits, [self])
                return
            connection = next(iter(self._waiting))
            del self._waiting[connection]
            self._first_is_charged = False
            if not connection.closed:
                self._acceptor.admit_waiting(self._listener, connection)

    def _end_throttle(self) -> None:
        self._is_throttled = False
        self.advance()

    def _left(self, connection: Connection) -> None:
        # The first one is charged already; `advance` drops it.
        if connection in self._waiting and connection is not next(iter(self._waiting)):
            del self._waiting[connection]


class Acceptor:
    def __init__(self, broker: Broker, listeners: Iterable[str], connections: Iterable[Connection]) -> None:
        """Count the `connections` that exist already, regardless of the creation rates."""
        inter_broker = broker.config.value("inter.broker.listener.name")
        self.broker = broker
        self.quotas = ConnectionQuotas(broker.quotas.config, listeners, str(inter_broker or "PLAINTEXT").upper())
        self.waiting = DelayedOperationPurgatory("Accept", broker.timer)
        self._queues = {name: _Queue(self, name) for name in self.quotas.listeners}
        self._admitted: dict[Connection, tuple[str, str]] = {}
        broker.scheduler.schedule(_EXPIRY_INTERVAL_MS, lambda: self.quotas.expire(self.now_ms()))
        for connection in connections:
            self._add(connection.advertised.name, connection)

    def on_connect(self, connection: Connection) -> None:
        self._queues[connection.advertised.name].add(connection)

    def on_disconnect(self, connection: Connection) -> None:
        counted = self._admitted.pop(connection, None)
        if counted is not None:
            self.quotas.remove(*counted)
            self._retry_waiting()

    def configure(self, config: Config) -> None:
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
        self._retry_waiting()

    def limit_address(self, address: Address, rate: float | None) -> None:
        self.quotas.limit_address(address, rate)

    def admit_waiting(self, listener: str, connection: Connection) -> None:
        address = _address(connection)
        throttle_ms = self.quotas.record_address(listener, address, self.now_ms())
        if throttle_ms > 0:
            self._journal_refusal(connection, f"connection rate of {address} exceeds its quota", throttle_ms)
            closing = DelayedAction(throttle_ms, connection.abort)
            connection.mute(closing.force_complete)
            self.waiting.delay(closing)
        elif not self._add(listener, connection):
            most = self.quotas.overrides.get(address, self.quotas.max_connections_per_address)
            reason = f"{address} is at its connection limit, {most}"
            self._journal_refusal(connection, reason, 0)
            connection.close(reason)
        else:
            self._close_exceeding()
            if connection.waiting:
                connection.resume()

    def now_ms(self) -> int:
        return self.broker.quota_time_ms()

    def _journal_refusal(self, connection: Connection, reason: str, throttle_ms: int) -> None:
        journal = self.broker.journal
        if journal is not None:
            journal.refused(connection.ctx, reason, throttle_ms)

    def _add(self, listener: str, connection: Connection) -> bool:
        address = _address(connection)
        self._admitted[connection] = listener, address
        return self.quotas.add(listener, address)

    def _retry_waiting(self) -> None:
        for queue in self._queues.values():
            self.waiting.check_and_complete(queue)

    def _close_exceeding(self) -> None:
        others = [one for one, (name, _) in self._admitted.items() if not self.quotas.is_protected(name)]
        others.sort(key=lambda connection: connection.last_active_ms)
        for connection in others[: max(0, self.quotas.connections - self.quotas.max_connections)]:
            connection.close(f"more connections than {MAX_CONNECTIONS}; this one was the least recently used")


def _address(connection: Connection) -> str:
    host = connection.peer.rpartition(":")[0]
    return normal_address(host) or host
