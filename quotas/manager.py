"""The quotas of one kind: the recorded use of all clients and their throttle times.

Follows Kafka's `ClientQuotaManager` (KIP-13, KIP-55, KIP-219). `Rate` describes how use is measured, `QuotaTable` which
clients share a bucket. Different on purpose:

- It only returns throttle times; the broker throttles.
- It un-records only what may have been recorded.
- Metrics are read without affecting enforcement.
"""

from collections.abc import KeysView
from math import nan
from sys import float_info

from msgspec import Struct

from .entity import Bucket, QuotaEntity, QuotaRules, sanitize
from .sensor import MS_PER_S, UNLIMITED, Rate, Sensor
from .stats import Avg

# Kafka: 3600 s of inactivity. A client that returns later has an empty history.
INACTIVE_SENSOR_EXPIRATION_MS = 3_600_000

# Kafka's defaults for statistics that only metrics use: metrics.num.samples, metrics.sample.window.ms.
METRICS_NUM_SAMPLES = 2
METRICS_SAMPLE_WINDOW_MS = 30_000


class QuotaConfig(Struct, frozen=True):
    """`quota.window.num` and `quota.window.size.seconds`; `rate` selects the arithmetic, that of 3.8 or earlier."""

    num_samples: int = 11
    window_ms: int = 1000
    rate: type[Rate] = Rate


class ClientUsage(Struct, frozen=True):
    user: str  # the metrics' tag: sanitized, "" if the bucket counts all users together
    client_id: str  # unencoded, "" if the bucket counts all client ids together
    rate: float  # the enforced rate, in bytes/s or the kind's unit
    bound: float  # the limit per second, `UNLIMITED` without a quota
    window_size_ms: int  # the divisor of `rate`
    throttle_time_avg_ms: float  # of the throttle times of the last 30 to 60 s; NaN without any
    throttle_time_total_ms: int  # since the bucket's first request


class ClientSensors:
    __slots__ = ("client_id", "largest", "quota", "throttle_time", "throttle_time_total_ms", "user")

    def __init__(self, bucket: Bucket, quota: Sensor, largest: float) -> None:
        user, client_id = bucket
        self.user = sanitize(user or "")
        self.client_id = client_id or ""
        self.quota = quota
        self.largest = largest  # charge that does not throttle an idle client
        self.throttle_time: Avg | None = None  # created on demand: most of up to 100,000 clients are never throttled
        self.throttle_time_total_ms = 0


class ClientQuotaManager:
    """The quotas of one kind and the use of all clients.

    Nothing is recorded while no quota is set, so a broker without quotas has no quota metrics either. Changing a quota
    keeps the recorded use, so it may throttle or free clients at once. But the first quota of another level (see
    `QuotaTable`) may move clients to other buckets, which start empty.

    `user` is "ANONYMOUS" without authentication; `client_id` is "" without a client id. `now_ms` is wall-clock time.
    Charges are in bytes, or in the kind's unit.
    """

    def __init__(self, kind: str, config: QuotaConfig, rules: QuotaRules) -> None:
        self.kind = kind  # Kafka's QuotaType: "Produce", "Fetch", "Request" or "ControllerMutation"
        self.config = config
        self._whole_windows = config.num_samples - 1
        self._window_s = config.window_ms / MS_PER_S
        self.rules = rules
        self.quotas_enabled = bool(rules)  # without any quota, a broker need not count
        self.queue_size = 0  # throttled connections; counted by the code that throttles
        self._sensors: dict[Bucket, ClientSensors] = {}
        # Cache of `_find_sensors` by user and client id.
        self._sensors_by_client: dict[str, dict[str, ClientSensors]] = {}

    def set_quota(self, entity: QuotaEntity, bound: float | None) -> None:
        """Set the limit for `entity`, in bytes/s; None removes it. It applies from the next request on."""
        assert bound is None or bound >= 0.0, f"quota for {entity}: expected 0 or more, got {bound}"
        self.rules.set(entity, bound)
        self.quotas_enabled = bool(self.rules)
        if self.rules.is_fixed and isinstance(entity.user, str | None) and isinstance(entity.client_id, str | None):
            # As in Kafka, only the sensor of this name: there may be many others.
            self._sensors_by_client.clear()
            bucket = entity.user, entity.client_id
            if bucket in self._sensors:
                self._hold_to_limit(bucket, self._sensors[bucket])
        else:
            self.hold_to_limits()

    def hold_to_limits(self) -> None:
        """Apply the current limits to all sensors; recorded use is kept."""
        self._sensors_by_client.clear()
        for bucket, sensors in self._sensors.items():
            self._hold_to_limit(bucket, sensors)

    def _hold_to_limit(self, bucket: Bucket, sensors: ClientSensors) -> None:
        bound = self._bound(bucket)
        sensors.quota.hold_to(bound)
        sensors.largest = self._largest(bound)

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Charge `value`, also above the quota; return the throttle time in ms.

        Follows Kafka's `maybeRecordAndGetThrottleTimeMs`.
        """
        try:
            sensors = self._sensors_by_client[user][client_id]  # empty without quotas
        except KeyError:
            if not self.quotas_enabled:
                return 0
            sensors = self._find_sensors(user, client_id, now_ms)
        return sensors.quota.record_and_get_throttle_time_ms(value, now_ms)

    def record_no_throttle(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Charge `value` without a throttle time."""
        if self.quotas_enabled:
            self._find_sensors(user, client_id, now_ms).quota.record(value, now_ms)

    def unrecord(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Cancel a charge of `value` made at `now_ms`, because a throttled fetch returns no records.

        Without quotas or a sensor of the bucket (a new quota may have moved the client), do nothing. Kafka then creates
        a sensor, whose rate becomes negative.
        """
        sensors = self._sensors.get(self.rules.bucket(user, client_id))
        if self.quotas_enabled and sensors is not None:
            sensors.quota.record(-value, now_ms)

    def max_value_in_quota_window(self, user: str, client_id: str) -> float:
        """Return the largest charge that does not throttle an idle client; `sys.float_info.max` without a limit.

        That is the limit times the N-1 whole windows: 5 MB/s * 10 s = 50 MB by default. A larger fetch would be
        throttled forever.
        """
        try:
            return self._sensors_by_client[user][client_id].largest
        except KeyError:
            return self._largest(self._bound(self.rules.bucket(user, client_id)))

    def record_throttle_time(self, user: str, client_id: str, throttle_ms: int, now_ms: int) -> None:
        """Record a throttle time for the metrics, if it is above 0. Part of Kafka's `throttle`."""
        if throttle_ms > 0:
            sensors = self._find_sensors(user, client_id, now_ms)
            if sensors.throttle_time is None:
                sensors.throttle_time = Avg(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)
            sensors.throttle_time.record(float(throttle_ms), now_ms)
            sensors.throttle_time_total_ms += throttle_ms

    def measure(self, user: str, client_id: str, now_ms: int) -> ClientUsage | None:
        """Return the client's use as enforcement measures it; None if its bucket has no sensor."""
        sensors = self._sensors.get(self.rules.bucket(user, client_id))
        if sensors is None:
            return None
        sensors.quota.rate.measure(now_ms)
        if sensors.throttle_time is not None:
            sensors.throttle_time.measure(now_ms)
        return self._usage(sensors, now_ms)

    def peek_sensors(self, bucket: Bucket) -> ClientSensors | None:
        return self._sensors.get(bucket)

    def buckets(self) -> KeysView[Bucket]:
        return self._sensors.keys()

    def snapshot(self, now_ms: int) -> list[ClientUsage]:
        """Return the use of all buckets, for metrics."""
        return [self._usage(sensors, now_ms) for sensors in self._sensors.values()]

    def expire(self, now_ms: int) -> None:
        """Drop buckets without a charge for over an hour. Called every 30 s, as in Kafka."""
        self._sensors = {
            bucket: sensors
            for bucket, sensors in self._sensors.items()
            if now_ms - sensors.quota.last_record_ms <= INACTIVE_SENSOR_EXPIRATION_MS
        }
        # Clear it all: clients choose client ids, which could fill it.
        self._sensors_by_client.clear()

    def _find_sensors(self, user: str, client_id: str, now_ms: int) -> ClientSensors:
        if self.rules.have_changed():
            self.hold_to_limits()
        bucket = self.rules.bucket(user, client_id)
        sensors = self._sensors.get(bucket)
        if sensors is None:
            bound = self._bound(bucket)
            sensor = self._new_sensor(bound, now_ms)
            sensors = self._sensors[bucket] = ClientSensors(bucket, sensor, self._largest(bound))
        if self.rules.is_fixed:
            self._sensors_by_client.setdefault(user, {})[client_id] = sensors
        return sensors

    def _new_sensor(self, bound: float, now_ms: int) -> Sensor:
        return Sensor(self.config.rate(self.config.num_samples, self.config.window_ms), bound, now_ms)

    def _bound(self, bucket: Bucket) -> float:
        limit = self.rules.limit(bucket)
        return UNLIMITED if limit is None else limit

    def _largest(self, bound: float) -> float:
        return float_info.max if bound == UNLIMITED else bound * self._whole_windows * self._window_s

    def _usage(self, sensors: ClientSensors, now_ms: int) -> ClientUsage:
        rate = sensors.quota.rate
        return ClientUsage(
            user=sensors.user,
            client_id=sensors.client_id,
            rate=rate.peek(now_ms),
            bound=sensors.quota.bound,
            window_size_ms=rate.peek_window_size_ms(now_ms),
            throttle_time_avg_ms=nan if sensors.throttle_time is None else sensors.throttle_time.peek(now_ms),
            throttle_time_total_ms=sensors.throttle_time_total_ms,
        )
