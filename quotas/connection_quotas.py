"""How many connections there may be, and how fast new ones may come (KIP-402, KIP-612). Numbers only: no sockets.

Follows ConnectionQuotas of Kafka's SocketServer. Three things are limited, and each in its own way:

- how fast they come, for the broker and for a listener: the next one is taken in later, a window later at most;
- how many there are, for the broker and for a listener: the next one is taken in when another has gone. The listener
  of the brokers themselves does not wait for the broker's limit: there the connection that was idle longest goes;
- for an address: too many are closed at once, those that come too fast after their throttle time. The latter count for
  nothing, or a client that keeps on trying would never get in.
"""

from collections.abc import Iterable, Mapping

from .entity import DEFAULT, Default
from .manager import (
    INACTIVE_SENSOR_EXPIRATION_MS,
    METRICS_NUM_SAMPLES,
    METRICS_SAMPLE_WINDOW_MS,
    QuotaConfig,
)
from .sensor import Sensor
from .stats import Avg
from .store import Address

UNLIMITED = 2**31 - 1  # Integer.MAX_VALUE, as in Kafka


class ListenerQuota:
    """What is counted of one listener."""

    __slots__ = ("address_throttle_time", "connections", "max_connections", "rate", "throttle_time")

    def __init__(self, rate: Sensor) -> None:
        self.connections = 0
        self.max_connections = UNLIMITED
        self.rate = rate
        # For the metrics: how long connections had to wait, those of a throttled address apart.
        self.throttle_time = Avg(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)
        self.address_throttle_time = Avg(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)


class ConnectionQuotas:
    """The connections of one broker. `now_ms` is wall-clock time; addresses are as `normal_address` writes them."""

    def __init__(self, config: QuotaConfig, listeners: Iterable[str], inter_broker_listener: str) -> None:
        self._config = config
        self.listeners = {name: ListenerQuota(self._new_sensor(UNLIMITED, 0)) for name in listeners}
        self._inter_broker_listener = inter_broker_listener
        self.connections = 0
        self.max_connections = UNLIMITED
        self.rate = self._new_sensor(UNLIMITED, 0)
        self.max_connections_per_address = UNLIMITED
        self.overrides: Mapping[str, int] = {}
        self.address_rates: dict[str, Sensor] = {}  # of those that came lately and have a limit
        self._by_address: dict[str, int] = {}
        self._address_limits: dict[Address, float] = {}

    # -- the limits ----------------------------------------------------------------------------------------------------

    def limit_address(self, address: Address, rate: float | None) -> None:
        """Limits new connections a second of an address, or of all that have no limit of their own; None: no more."""
        if rate is None:
            self._address_limits.pop(address, None)
        else:
            self._address_limits[address] = rate
        changed = self.address_rates if isinstance(address, Default) else {address} & self.address_rates.keys()
        for name in changed:
            self.address_rates[name].hold_to(self._address_limit(name))

    def is_protected(self, listener: str) -> bool:
        """Whether its connections do not wait for the broker's limits: it is the brokers', and not the only one."""
        return listener == self._inter_broker_listener and len(self.listeners) > 1

    # -- a new connection, in this order -------------------------------------------------------------------------------

    def record(self, listener: str, now_ms: int) -> int:
        """Charges a new connection; returns how long it must wait to be taken in, in ms."""
        quota = self.listeners[listener]
        throttle_ms = 0 if self.is_protected(listener) else self._charge(self.rate, now_ms)
        throttle_ms = max(throttle_ms, self._charge(quota.rate, now_ms))
        if throttle_ms > 0:
            quota.throttle_time.record(float(throttle_ms), now_ms)
        return throttle_ms

    def has_room(self, listener: str) -> bool:
        """Whether one more may be taken in now."""
        quota = self.listeners[listener]
        if quota.connections >= quota.max_connections:
            return False
        return self.is_protected(listener) or self.connections < self.max_connections

    def record_address(self, listener: str, address: str, now_ms: int) -> int:
        """Charges its address; returns after how many ms it must be closed, because they come too fast, else 0.

        It is not taken in then, and counts nowhere.
        """
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
        """Counts it; False where its address has as many as it may: it must be closed, and `remove` called."""
        before = self._by_address.get(address, 0)
        self._by_address[address] = before + 1
        self.listeners[listener].connections += 1
        self.connections += 1
        return before < self.overrides.get(address, self.max_connections_per_address)

    # -- afterwards ----------------------------------------------------------------------------------------------------

    def remove(self, listener: str, address: str) -> None:
        """A connection that was added is gone."""
        self.listeners[listener].connections -= 1
        self.connections -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def expire(self, now_ms: int) -> None:
        """Forgets the addresses from which none came for over an hour."""
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
