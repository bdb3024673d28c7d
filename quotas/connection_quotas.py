"""Limits on the number and the rate of connections (KIP-402, KIP-612), independent of sockets.

Follows `ConnectionQuotas` of Kafka's SocketServer:

- Rate, per broker and listener: the next connection is accepted later, by at most one window.
- Number, per broker and listener: the next connection is accepted after another one closes. The inter-broker listener
  ignores the broker's limit; it closes the connection that was idle longest.
- Per address: a connection above the number is closed at once, one above the rate after its throttle time. The latter
  is un-recorded everywhere; otherwise a client that retries quickly could never connect.
"""

from collections.abc import Iterable, Mapping

from .entity import DEFAULT, Default
from .manager import INACTIVE_SENSOR_EXPIRATION_MS, METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS, QuotaConfig
from .sensor import Sensor
from .stats import Avg
from .store import Address

UNLIMITED = 2**31 - 1  # Integer.MAX_VALUE, as in Kafka


class ListenerQuota:
    __slots__ = ("address_throttle_time", "connections", "max_connections", "rate", "throttle_time")

    def __init__(self, rate: Sensor) -> None:
        self.connections = 0
        self.max_connections = UNLIMITED
        self.rate = rate
        # How long connections waited, for metrics; those of throttled addresses are separate.
        self.throttle_time = Avg(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)
        self.address_throttle_time = Avg(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)


class ConnectionQuotas:
    """The connections of one broker. `now_ms` is wall-clock time; addresses come from `normal_address`."""

    def __init__(self, config: QuotaConfig, listeners: Iterable[str], inter_broker_listener: str) -> None:
        self._config = config
        self.listeners = {name: ListenerQuota(self._new_sensor(UNLIMITED, 0)) for name in listeners}
        self._inter_broker_listener = inter_broker_listener
        self.connections = 0
        self.max_connections = UNLIMITED
        self.rate = self._new_sensor(UNLIMITED, 0)
        self.max_connections_per_address = UNLIMITED
        self.overrides: Mapping[str, int] = {}
        self.address_rates: dict[str, Sensor] = {}  # of recent addresses with a limit
        self._by_address: dict[str, int] = {}
        self._address_limits: dict[Address, float] = {}

    # -- the limits ----------------------------------------------------------------------------------------------------

    def limit_address(self, address: Address, rate: float | None) -> None:
        """Limit the connections per second of an address, or the default for all others; None removes the limit."""
        if rate is None:
            self._address_limits.pop(address, None)
        else:
            self._address_limits[address] = rate
        changed = self.address_rates if isinstance(address, Default) else {address} & self.address_rates.keys()
        for name in changed:
            self.address_rates[name].hold_to(self._address_limit(name))

    def is_protected(self, listener: str) -> bool:
        """Return whether the broker's limits do not apply: to the inter-broker listener, unless it is the only one."""
        return listener == self._inter_broker_listener and len(self.listeners) > 1

    # -- a new connection, in this order -------------------------------------------------------------------------------

    def record(self, listener: str, now_ms: int) -> int:
        """Record a new connection with the broker and its listener; return after how many ms to accept it."""
        quota = self.listeners[listener]
        throttle_ms = 0 if self.is_protected(listener) else self._charge(self.rate, now_ms)
        throttle_ms = max(throttle_ms, self._charge(quota.rate, now_ms))
        if throttle_ms > 0:
            quota.throttle_time.record(float(throttle_ms), now_ms)
        return throttle_ms

    def has_room(self, listener: str) -> bool:
        quota = self.listeners[listener]
        if quota.connections >= quota.max_connections:
            return False
        return self.is_protected(listener) or self.connections < self.max_connections

    def record_address(self, listener: str, address: str, now_ms: int) -> int:
        """Record a new connection with its address; return 0, or after how many ms to close it."""
        limit = self._address_limit(address)
        if limit == UNLIMITED:
            return 0
        sensor = self.address_rates.get(address)
        if sensor is None:
            sensor = self.address_rates[address] = self._new_sensor(limit, now_ms)
        throttle_ms = self._charge(sensor, now_ms)
        if throttle_ms > 0:
            quota = self.listeners[listener]
            charged = [sensor, quota.rate] if self.is_protected(listener) else [sensor, self.rate, quota.rate]
            for each in charged:
                each.record(-1.0, now_ms)
            quota.address_throttle_time.record(float(throttle_ms), now_ms)
        return throttle_ms

    def add(self, listener: str, address: str) -> bool:
        """Count an accepted connection; if False, its address is over the limit: close it and call `remove`."""
        before = self._by_address.get(address, 0)
        self._by_address[address] = before + 1
        self.listeners[listener].connections += 1
        self.connections += 1
        return before < self.overrides.get(address, self.max_connections_per_address)

    # -- afterwards ----------------------------------------------------------------------------------------------------

    def remove(self, listener: str, address: str) -> None:
        self.listeners[listener].connections -= 1
        self.connections -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def expire(self, now_ms: int) -> None:
        """Drop the rates of addresses without a new connection for over an hour."""
        self.address_rates = {
            address: sensor
            for address, sensor in self.address_rates.items()
            if now_ms - sensor.last_record_ms <= INACTIVE_SENSOR_EXPIRATION_MS
        }

    def _address_limit(self, address: str) -> float:
        return self._address_limits.get(address, self._address_limits.get(DEFAULT, UNLIMITED))

    def _charge(self, sensor: Sensor, now_ms: int) -> int:
        return min(sensor.record_and_get_throttle_time_ms(1.0, now_ms), self._config.window_ms)

    def _new_sensor(self, bound: float, now_ms: int) -> Sensor:
        return Sensor(self._config.rate(self._config.num_samples, self._config.window_ms), bound, now_ms)
