"""What a quota manager has recorded of one client, read so often that reading has to be cheap.

`Rate.peek` and `peek_window_size_ms` each read all samples, which together takes a tenth of a millisecond; here they
are read once, for the rate and for what was charged since the last read. The rate may differ from the one that is
enforced in the last bits of a double, as the samples are added up in another order.
"""

from msgspec import Struct

from sluice.quotas.entity import Bucket
from sluice.quotas.manager import ClientSensors
from sluice.quotas.sensor import MS_PER_S, UNLIMITED, Rate


class MeterSeen(Struct, frozen=True, gc=False):
    """How one client stands to one kind of quota, on the broker where it is nearest to it.

    rate: per second, over the quota's windows, which is what is enforced
    bound: per second; null: there is no limit
    throttle_ms: of the last wait, if it is not over
    held_until_ms: when that is over, wall clock; 0: it is
    throttled_total_ms: of all waits that the broker knows of
    broker: its node id
    user: whose use is counted; null: of all users together
    client_id: the same
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
        """Of the bound; 0 where there is none."""
        return self.rate / self.bound if self.bound else 0.0


class Meter:
    """One sensor, and how far it was read."""

    __slots__ = ("_sensors", "_values", "charged", "seen")

    def __init__(self, sensors: ClientSensors) -> None:
        self._sensors = sensors
        self._values: dict[int, float] | None = None  # of the samples, by when they began
        self.charged = 0.0  # between the last two reads
        self.seen: MeterSeen | None = None

    def is_of(self, sensors: ClientSensors) -> bool:
        """Whether these are the sensors that it reads: those of a client that was silent for an hour are others."""
        return self._sensors is sensors

    def read(self, kind: str, node_id: int, bucket: Bucket, now_ms: int) -> MeterSeen:
        """Read what is recorded now, wall clock, without a change to what is enforced."""
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
        """Return the rate, and what was recorded since the last read."""
        total = charged = 0.0
        oldest_start_ms = now_ms
        values: dict[int, float] = {}
        for sample, stale in rate.peek_samples(now_ms):
            # Those that were dropped are empty and start at the moment that they were: several may start together.
            values[sample.start_ms] = values.get(sample.start_ms, 0.0) + sample.value
            if not stale:
                total += sample.value
                oldest_start_ms = min(oldest_start_ms, sample.start_ms)
        before, self._values = self._values, values
        if before is not None:
            charged = sum(value - before.get(start_ms, 0.0) for start_ms, value in values.items())
        return total / (rate.padded_ms(now_ms - oldest_start_ms) / MS_PER_S), charged
