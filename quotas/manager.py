"""One kind of client quota: records what clients use, and says how long they must wait. As it is: Produce, Fetch bytes.

Follows Kafka's `ClientQuotaManager` (KIP-13, KIP-55, KIP-219); how the rate is measured is told in `Rate`, who is
counted with whom in `QuotaTable`. Different here: it makes nobody wait (the broker does, with the purgatory); it
un-records only what it may have recorded; and what metrics read leaves no trace in what is enforced.
"""

from collections.abc import KeysView
from math import nan
from sys import float_info

from msgspec import Struct

from .entity import Bucket, QuotaEntity, QuotaRules, sanitize
from .sensor import MS_PER_S, UNLIMITED, Rate, Sensor
from .stats import Avg

# One hour: a client that comes back later starts with an empty history (Kafka: 3600 s of inactivity).
INACTIVE_SENSOR_EXPIRATION_MS = 3_600_000

# What is measured for metrics alone has the defaults of Kafka's brokers: metrics.num.samples, metrics.sample.window.ms.
METRICS_NUM_SAMPLES = 2
METRICS_SAMPLE_WINDOW_MS = 30_000


class QuotaConfig(Struct, frozen=True):
    """`quota.window.num` and `quota.window.size.seconds`; the defaults are ten whole windows and the begun one.

    `rate` is the arithmetic: of 3.8 and later, or of the releases before.
    """

    num_samples: int = 11
    window_ms: int = 1000
    rate: type[Rate] = Rate


class ClientUsage(Struct, frozen=True):
    """What is known of one bucket at one moment."""

    user: str  # as the metrics' tag: sanitized, "" where the bucket counts all users together
    client_id: str  # as the client sent it, "" where the bucket counts all client ids together
    rate: float  # bytes/s, or what else is counted: the rate that is enforced
    bound: float  # per second too, `UNLIMITED` where no quota is found
    window_size_ms: int  # the time that the rate is over
    throttle_time_avg_ms: float  # of the throttle times of the last 30 to 60 s; NaN when there were none
    throttle_time_total_ms: int  # of all since the bucket's first request


class ClientSensors:
    """All that is recorded of one bucket."""

    __slots__ = ("client_id", "quota", "throttle_time", "throttle_time_total_ms", "user")

    def __init__(self, bucket: Bucket, quota: Sensor) -> None:
        user, client_id = bucket
        self.user = sanitize(user or "")
        self.client_id = client_id or ""
        self.quota = quota
        self.throttle_time: Avg | None = None  # most clients are never throttled, and there may be 100,000
        self.throttle_time_total_ms = 0


class ClientQuotaManager:
    """The quotas of one kind and the use of all clients.

    Nothing is recorded while no quota is set at all: a broker without quotas has no quota metrics either.

    Setting a quota never touches what was recorded: lowering one may make its clients wait from the next request on,
    raising one lets them go. But the first quota of another level (see `QuotaTable`) may put clients into other
    buckets, and those start empty.

    `user` and `client_id` are as the client gave them: "ANONYMOUS" for one that did not say who it is, "" for one
    without an id. `now_ms` is wall-clock time. A charge of `value` is bytes, but nothing here depends on that.
    """

    __slots__ = ("_sensors", "_sensors_by_client", "config", "kind", "queue_size", "quotas_enabled", "rules")

    def __init__(self, kind: str, config: QuotaConfig, rules: QuotaRules) -> None:
        self.kind = kind  # Kafka's QuotaType: "Produce", "Fetch", "Request", "ControllerMutation"
        self.config = config
        self.rules = rules
        self.quotas_enabled = bool(rules)  # whether any quota is set: a broker without quotas need not count
        self.queue_size = 0  # connections that wait now because of these quotas: whoever makes them wait counts them
        self._sensors: dict[Bucket, ClientSensors] = {}
        # What `_find_sensors` found, by user and client id. Several clients may share a bucket, and a change of quotas
        # may move them.
        self._sensors_by_client: dict[str, dict[str, ClientSensors]] = {}

    def set_quota(self, entity: QuotaEntity, bound: float | None) -> None:
        """Sets the bound in bytes/s for `entity`; None removes it. Holds from the next request on."""
        assert bound is None or bound >= 0.0, f"a quota of {bound} for {entity}"
        self.rules.set(entity, bound)
        self.quotas_enabled = bool(self.rules)
        self.hold_to_limits()

    def hold_to_limits(self) -> None:
        """Holds everyone to the limits that there are now; what was recorded stays."""
        self._sensors_by_client.clear()
        for bucket, sensors in self._sensors.items():
            sensors.quota.hold_to(self._bound(bucket))

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Charges `value` and returns how long the client must wait for it, in ms; it counts although it was too much.

        Kafka's `maybeRecordAndGetThrottleTimeMs`. The violating request is not refused: waiting is its only price.
        """
        if not self.quotas_enabled:
            return 0
        try:
            sensors = self._sensors_by_client[user][client_id]
        except KeyError:
            sensors = self._find_sensors(user, client_id, now_ms)
        return sensors.quota.record_and_get_throttle_time_ms(value, now_ms)

    def record_no_throttle(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Charges `value` without asking whether it was too much: the next request feels it."""
        if self.quotas_enabled:
            self._find_sensors(user, client_id, now_ms).quota.record(value, now_ms)

    def unrecord(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Takes back a charge of `value` made at `now_ms`, because a throttled fetch sends nothing.

        Does nothing where nothing can have been charged: without quotas, or for a bucket that was never recorded to
        (a quota set in between may have moved the client). Kafka takes it off a new sensor, whose rate goes negative.
        """
        sensors = self._sensors.get(self.rules.bucket(user, client_id))
        if self.quotas_enabled and sensors is not None:
            sensors.quota.record(-value, now_ms)

    def max_value_in_quota_window(self, user: str, client_id: str) -> float:
        """The largest charge that an idle client is not made to wait for; `sys.float_info.max` without a limit.

        One whole window less than there are samples, because that is what the rate divides by at least. A fetch is cut
        to it: otherwise a client that asks for more than ten seconds' worth would get nothing for ever.
        """
        limit = self.rules.limit(self.rules.bucket(user, client_id))
        if limit is None:
            return float_info.max
        return limit * (self.config.num_samples - 1) * (self.config.window_ms / MS_PER_S)

    def record_throttle_time(self, user: str, client_id: str, throttle_ms: int, now_ms: int) -> None:
        """Notes for the metrics that the client was made to wait. Kafka's `throttle` notes only what is above 0."""
        if throttle_ms > 0:
            sensors = self._find_sensors(user, client_id, now_ms)
            if sensors.throttle_time is None:
                sensors.throttle_time = Avg(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)
            sensors.throttle_time.record(float(throttle_ms), now_ms)
            sensors.throttle_time_total_ms += throttle_ms

    def measure(self, user: str, client_id: str, now_ms: int) -> ClientUsage | None:
        """The client's use as enforcement measures it; None when its bucket has no sensor.

        This drops stale samples, as every measuring does (see `SampledStat`), which shifts the divisor of later rates.
        Kafka's own JMX reporter does the same whenever someone looks at `byte-rate`.
        """
        sensors = self._sensors.get(self.rules.bucket(user, client_id))
        if sensors is None:
            return None
        sensors.quota.rate.measure(now_ms)
        if sensors.throttle_time is not None:
            sensors.throttle_time.measure(now_ms)
        return self._usage(sensors, now_ms)

    def peek_sensors(self, bucket: Bucket) -> ClientSensors | None:
        """What is recorded of a bucket, to look at; None for one that nobody recorded to."""
        return self._sensors.get(bucket)

    def buckets(self) -> KeysView[Bucket]:
        """The buckets that something was recorded of, the oldest first."""
        return self._sensors.keys()

    def snapshot(self, now_ms: int) -> list[ClientUsage]:
        """The use of all buckets, for metrics. Reads only: a scrape changes nothing of what is enforced."""
        return [self._usage(sensors, now_ms) for sensors in self._sensors.values()]

    def expire(self, now_ms: int) -> None:
        """Forgets the buckets that were not recorded to for over an hour. Kafka asks this every 30 s."""
        self._sensors = {
            bucket: sensors
            for bucket, sensors in self._sensors.items()
            if now_ms - sensors.quota.last_record_ms <= INACTIVE_SENSOR_EXPIRATION_MS
        }
        # All of them, so that client ids, which clients choose, cannot fill it for as long as one bucket lives.
        self._sensors_by_client.clear()

    def _find_sensors(self, user: str, client_id: str, now_ms: int) -> ClientSensors:
        if self.rules.have_changed():
            self.hold_to_limits()
        bucket = self.rules.bucket(user, client_id)
        sensors = self._sensors.get(bucket)
        if sensors is None:
            sensors = self._sensors[bucket] = ClientSensors(bucket, self._new_sensor(self._bound(bucket), now_ms))
        if self.rules.is_fixed:
            self._sensors_by_client.setdefault(user, {})[client_id] = sensors
        return sensors

    def _new_sensor(self, bound: float, now_ms: int) -> Sensor:
        return Sensor(self.config.rate(self.config.num_samples, self.config.window_ms), bound, now_ms)

    def _bound(self, bucket: Bucket) -> float:
        limit = self.rules.limit(bucket)
        return UNLIMITED if limit is None else limit

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
