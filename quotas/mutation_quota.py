"""The quota of controller mutations (KIP-599): partitions created and deleted, limited by a token bucket.

Follows Kafka's `ControllerMutationQuotaManager`, `StrictControllerMutationQuota` and
`PermissiveControllerMutationQuota`. A windowed rate would block a client that creates a thousand partitions for as long
as that sample counts.
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
    """The use of one bucket. The tokens are enforced; `rate` is only for metrics."""

    tokens: float  # partitions that may be created or deleted now; a debt if negative


class MutationSensor(Sensor):
    """A token bucket, which is enforced, and a rate for metrics."""

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
        """Return the time in ms until the debt is refilled; `value` is the requested charge."""
        throttle_ms = self.bucket.throttle_time_ms(now_ms)
        self.last_violation = Violation(now_ms, value, self.bucket.measure(now_ms), self.bound, 0, throttle_ms)
        return throttle_ms


class ControllerMutationQuota:
    """The quota of one request, checked for each of its topics.

    Strict: while the bucket is below 0, a topic is rejected and not charged. At 0 or above, a topic of any size passes.

    Permissive, for clients that do not know THROTTLING_QUOTA_EXCEEDED: every topic is charged; only the throttle time
    grows.
    """

    __slots__ = ("_now_ms", "_sensor", "_strict", "_throttle_ms")

    def __init__(self, sensor: MutationSensor | None, now_ms: int, *, strict: bool) -> None:
        self._sensor = sensor  # None: no quota of this kind is set
        self._now_ms = now_ms  # the time at which the request is handled
        self._strict = strict
        self._throttle_ms = 0

    @property
    def is_exceeded(self) -> bool:
        return self._strict and self._throttle_ms > 0

    def record(self, permits: float) -> bool:
        """Charge `permits` partitions; return False if they are rejected."""
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
        """Return the throttle time that is left `passed_ms` after the request was handled."""
        return max(0, self._throttle_ms - passed_ms)

    def _is_violated(self, sensor: MutationSensor, permits: float) -> bool:
        if sensor.bucket.measure(self._now_ms) >= 0.0:
            return False
        self._throttle_ms = sensor.violated(permits, self._now_ms)
        return True


class ControllerMutationQuotaManager(ClientQuotaManager):
    """The mutation quotas of all clients. A charge is a number of partitions."""

    def __init__(self, config: QuotaConfig, rules: QuotaRules) -> None:
        super().__init__("ControllerMutation", config, rules)

    def quota_for(self, user: str, client_id: str, now_ms: int, *, strict: bool) -> ControllerMutationQuota:
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
