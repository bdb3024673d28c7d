"""The usage that a quota manager has recorded for one client, read often and cheaply.

`Rate.peek` and `peek_window_size_ms` each read all samples, together in 0.1 ms. Here they are read once, in another
order, so the rate may differ from the enforced one in the last bits.
"""

from msgspec import Struct

from sluice.quotas.entity import Bucket
from sluice.quotas.manager import ClientSensors
from sluice.quotas.sensor import MS_PER_S, UNLIMITED, Rate


class MeterSeen(Struct, frozen=True, gc=False):
    """The usage of one kind of quota by one client, on the broker where it uses the largest share.

    rate: enforced rate per second, over the quota's windows
    bound: quota per second; null without a limit
    throttle_ms: current throttle time, 0 if none is running
    held_until_ms: end of the current throttle time, wall clock; 0 if none is running
    throttled_total_ms: sum of all throttle times that the broker has recorded
    broker: node id
    user: user whose usage is counted; null for all users together
    client_id: client id whose usage is counted; null for all client ids together
    """

    kind: str
    rate: float
    bound: float | None
    throttle_ms: int
    held_until_ms: int
    throttled_total_ms: int
    broker: int
    user: str | None
    client_id: str | None

    @property
    def share(self) -> float:
        return self.rate / self.bound if self.bound else 0.0


class Meter:
    __slots__ = ("_sensors", "_values", "charged", "seen")

    def __init__(self, sensors: ClientSensors) -> None:
        self._sensors = sensors
        self._values: dict[int, float] | None = None  # of the samples, by start time
        self.charged = 0.0
        self.seen: MeterSeen | None = None

    def is_of(self, sensors: ClientSensors) -> bool:
        """Return whether these are its sensors; a client that was idle for an hour gets new ones."""
        return self._sensors is sensors

    def read(self, kind: str, node_id: int, bucket: Bucket, now_ms: int) -> MeterSeen:
        """Read the usage at `now_ms` (wall clock); the sensors do not change."""
        quota = self._sensors.quota
        rate, self.charged = self._rate_and_charged(quota.rate, now_ms)
        last = quota.last_violation
        until_ms = 0 if last is None else last.at_ms + last.throttle_ms
        held = last is not None and until_ms > now_ms
        user, client_id = bucket
        self.seen = MeterSeen(
            kind=kind,
            rate=round(rate, 2),
            bound=None if quota.bound == UNLIMITED else quota.bound,
            throttle_ms=last.throttle_ms if last is not None and held else 0,
            held_until_ms=until_ms if held else 0,
            throttled_total_ms=self._sensors.throttle_time_total_ms,
            broker=node_id,
            user=user,
            client_id=client_id,
        )
        return self.seen

    def _rate_and_charged(self, rate: Rate, now_ms: int) -> tuple[float, float]:
        total = charged = 0.0
        oldest_start_ms = now_ms
        values: dict[int, float] = {}
        for sample, stale in rate.peek_samples(now_ms):
            # Dropped samples are empty and restart at that moment, so several may have the same start.
            values[sample.start_ms] = values.get(sample.start_ms, 0.0) + sample.value
            if not stale:
                total += sample.value
                oldest_start_ms = min(oldest_start_ms, sample.start_ms)
        before, self._values = self._values, values
        if before is not None:
            charged = sum(value - before.get(start_ms, 0.0) for start_ms, value in values.items())
        return total / (rate.padded_ms(now_ms - oldest_start_ms) / MS_PER_S), charged
