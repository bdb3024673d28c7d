"""The quota of controller mutations (KIP-599): partitions created and deleted, held to a token bucket.

Follows Kafka's `ControllerMutationQuotaManager`, `StrictControllerMutationQuota` and
`PermissiveControllerMutationQuota`. Windows would not do: a topic of a thousand partitions is one request, and its
client would be refused for as long as they remember it. A bucket lets a burst through and then asks for time.
"""

from msgspec.structs import asdict

from .entity import QuotaRules
from .manager import (
    METRICS_NUM_SAMPLES,
    METRICS_SAMPLE_WINDOW_MS,
    ClientQuotaManager,
    ClientSensors,
    ClientUsage,
    QuotaConfig,
)
from .sensor import Rate, Sensor, Violation
from .token_bucket import TokenBucket


class MutationUsage(ClientUsage, frozen=True):
    """`rate` is of the last 30 to 60 s, `window_size_ms` what it is over; what is enforced are the tokens."""

    tokens: float  # partitions that may be created or deleted now; below zero: how many were too many


class MutationSensor(Sensor):
    """A bucket under a quota, and for the metrics the rate."""

    __slots__ = ("bucket",)

    def __init__(self, bucket: TokenBucket, now_ms: int) -> None:
        self.bucket = bucket
        super().__init__(Rate(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS), bucket.bound, now_ms)

    def hold_to(self, bound: float) -> None:
        super().hold_to(bound)
        self.bucket.bound = bound

    def record(self, value: float, now_ms: int) -> None:
        super().record(value, now_ms)
        self.bucket.record(value, now_ms)

    def record_and_get_throttle_time_ms(self, value: float, now_ms: int) -> int:
        self.record(value, now_ms)
        return self.violated(value, now_ms) if self.bucket.measure(now_ms) < 0.0 else 0

    def violated(self, value: float, now_ms: int) -> int:
        """How long until the debt is paid; `value` is what was asked for when it was found."""
        throttle_ms = self.bucket.throttle_time_ms(now_ms)
        self.last_violation = Violation(now_ms, value, self.bucket.measure(now_ms), self.bound, 0, throttle_ms)
        return throttle_ms


class ControllerMutationQuota:
    """One request's: each of its topics asks in turn whether it may.

    Strictly, a topic is refused while tokens are missing, and costs nothing then; but as long as none are missing any
    number of partitions is let through, however far that takes the bucket below zero. Permissively, for clients that
    know no error for it, all are let through, and only the wait is longer.
    """

    __slots__ = ("_now_ms", "_sensor", "_strict", "_throttle_ms")

    def __init__(self, sensor: MutationSensor | None, now_ms: int, *, strict: bool) -> None:
        self._sensor = sensor  # None: there is no quota at all
        self._now_ms = now_ms  # when the request is handled
        self._strict = strict
        self._throttle_ms = 0

    @property
    def is_exceeded(self) -> bool:
        """Whether a topic was refused."""
        return self._strict and self._throttle_ms > 0

    def record(self, permits: float) -> bool:
        """Takes `permits` partitions out of the bucket; False where they are refused."""
        sensor = self._sensor
        if sensor is None:
            return True
        if self._strict and self._is_violated(sensor, permits):
            return False
        sensor.record(permits, self._now_ms)
        if not self._strict:
            self._is_violated(sensor, permits)
        return True

    def throttle_time_ms(self, passed_ms: int = 0) -> int:
        """How long the client is to wait, when `passed_ms` have passed since the request was handled."""
        return max(0, self._throttle_ms - passed_ms)

    def _is_violated(self, sensor: MutationSensor, permits: float) -> bool:
        if sensor.bucket.measure(self._now_ms) >= 0.0:
            return False
        self._throttle_ms = sensor.violated(permits, self._now_ms)
        return True


class ControllerMutationQuotaManager(ClientQuotaManager):
    """The buckets by client. A charge is a number of partitions."""

    __slots__ = ()

    def __init__(self, config: QuotaConfig, rules: QuotaRules) -> None:
        super().__init__("ControllerMutation", config, rules)

    def quota_for(self, user: str, client_id: str, now_ms: int, *, strict: bool) -> ControllerMutationQuota:
        """What holds one request of this client; none where no quota is set at all."""
        if not self.quotas_enabled:
            return ControllerMutationQuota(None, now_ms, strict=strict)
        sensor = self._find_sensors(user, client_id, now_ms).quota
        assert isinstance(sensor, MutationSensor)
        return ControllerMutationQuota(sensor, now_ms, strict=strict)

    def _new_sensor(self, bound: float, now_ms: int) -> Sensor:
        return MutationSensor(TokenBucket(bound, self.config.num_samples, self.config.window_ms), now_ms)

    def _usage(self, sensors: ClientSensors, now_ms: int) -> MutationUsage:
        sensor = sensors.quota
        assert isinstance(sensor, MutationSensor)
        usage = super()._usage(sensors, now_ms)
        return MutationUsage(**asdict(usage), tokens=sensor.bucket.peek(now_ms))
