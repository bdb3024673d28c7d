"""Windowed sensors: recorded use, its rate, and the throttle time if the rate exceeds its bound.

Follows Kafka's `Sample`, `SampledStat`, `Rate`, `Sensor` and `QuotaUtils` of 3.8 and later, to the last bit of every
double; `RateUpTo37` follows earlier releases. Different on purpose: a sensor has one rate and one bound, and computes
the throttle time itself; `peek` reads without side effects.

All times are parameters (wall-clock milliseconds), and may step back.
"""

from math import floor, inf

from msgspec import Struct

from .samples import Sample, windows_of

MS_PER_S = 1000.0

# Long.MAX_VALUE as a double: the bound of a client without a quota, as in Kafka's metrics.
UNLIMITED = float(2**63 - 1)

# Integer.MAX_VALUE, 24.8 days: `throttle_time_ms` is an int32 on the wire.
MAX_THROTTLE_TIME_MS = 2**31 - 1

# Far above the rounding error of summing one window, far below the precision of any real quota.
_ROUNDING = 1e-6

# Later than any signed 64-bit time in ms.
_NEVER = 2**63
_ANY_NUMBER = 2**63


class SampledStat:
    """A statistic over the last `num_samples` windows, kept as a ring of samples.

    Events cut the windows, not the clock: a sample opens with the first event after the open sample is complete (one
    window old, or with `event_window` events).

    A sample counts until `num_samples` windows after its *last* event. It may have opened up to one window before that
    event, so the ring has `num_samples` + 1 slots. With 11 samples of 1 s, a sample that opened at 0 and was last
    updated at 900 still counts at 11,500 ms. (Up to Kafka 3.7: see `RateUpTo37`.)

    Recording never drops stale samples; measuring first drops all of them. A dropped sample stays in the ring as an
    empty one that starts now, and may later be the oldest. So the times of measurements affect later results.
    """

    __slots__ = (
        "_event_count",
        "_fresh_until_ms",
        "_last_event_ms",
        "_oldest_start_ms",
        "_open",
        "_ring",
        "_start_ms",
        "_used",
        "_value",
        "_windows",
    )

    INITIAL = 0.0  # the value of a sample without events
    SPARE_SLOTS = 1  # slots in addition to `num_samples`

    def __init__(self, num_samples: int, window_ms: int, event_window: int = _ANY_NUMBER) -> None:
        self._windows = windows_of(num_samples, window_ms, event_window, num_samples + self.SPARE_SLOTS)
        self._ring = self._windows.new_ring()
        self._used = 0  # slots with a sample
        # The open sample: its slot, and its fields, which are written to the slot when it is read.
        self._open = -1
        self._value = self.INITIAL
        self._start_ms = self._last_event_ms = self._event_count = 0
        # Caches, computed from the samples.
        self._fresh_until_ms = _NEVER  # no sample is stale before this time
        self._oldest_start_ms = _NEVER  # the least start_ms

    def record(self, value: float, now_ms: int) -> None:
        self.open_sample(now_ms)
        self._value += value

    def measure(self, now_ms: int) -> float:
        """Drop stale samples first."""
        if now_ms >= self._fresh_until_ms:
            self._purge(now_ms)
        return self.combine(self._samples())

    def peek(self, now_ms: int) -> float:
        return self.combine([sample for sample in self._samples() if not self._is_stale(sample, now_ms)])

    def peek_samples(self, now_ms: int) -> list[tuple[Sample, bool]]:
        """Return the samples from the oldest on, each with whether it is stale."""
        seen = [(sample, self._is_stale(sample, now_ms)) for sample in self._samples()]
        return sorted(seen, key=lambda each: each[0].start_ms)

    def combine(self, samples: list[Sample]) -> float:
        """Return the statistic over `samples`, given in slot order; here their sum."""
        # In slot order and from 0.0: the order decides the last bits of a double. Not sum(), which compensates for
        # rounding since Python 3.12, unlike Java.
        total = 0.0
        for sample in samples:
            total += sample.value
        return total

    def open_sample(self, now_ms: int) -> None:
        """Open another sample for an event at `now_ms` if necessary, and count the event."""
        windows = self._windows
        if not self._used or now_ms - self._start_ms >= windows.window_ms or self._event_count >= windows.event_window:
            self._open_next_sample(now_ms)
        elif now_ms < self._last_event_ms:  # the clock stepped back
            self._fresh_until_ms = min(self._fresh_until_ms, now_ms + windows.span_ms)
        self._event_count += 1
        self._last_event_ms = now_ms

    def _open_next_sample(self, now_ms: int) -> None:
        self._write_open_sample()
        self._open = (self._open + 1) % self._windows.slots
        self._used = max(self._used, self._open + 1)
        self._reset(now_ms)
        self._fresh_until_ms = min(self._fresh_until_ms, now_ms + self._windows.span_ms)
        self._oldest_start_ms = min(sample.start_ms for sample in self._samples())

    def _samples(self) -> list[Sample]:
        self._write_open_sample()
        return self._windows.samples(self._ring, self._used)

    def _write_open_sample(self) -> None:
        if self._used:
            sample = Sample(self._value, self._start_ms, self._last_event_ms, self._event_count)
            self._windows.put(self._ring, self._open, sample)

    def _reset(self, now_ms: int) -> None:
        self._value = self.INITIAL
        self._start_ms = self._last_event_ms = now_ms
        self._event_count = 0

    def _purge(self, now_ms: int) -> None:
        windows, samples = self._windows, self._samples()
        for slot, sample in enumerate(samples):
            if self._is_stale(sample, now_ms):
                samples[slot] = Sample(self.INITIAL, now_ms, now_ms, 0)
                windows.put(self._ring, slot, samples[slot])
                if slot == self._open:
                    self._reset(now_ms)
        self._fresh_until_ms = min(map(self._counted_from_ms, samples)) + windows.span_ms
        self._oldest_start_ms = min(sample.start_ms for sample in samples)

    def _is_stale(self, sample: Sample, now_ms: int) -> bool:
        return now_ms - self._counted_from_ms(sample) >= self._windows.span_ms

    def _counted_from_ms(self, sample: Sample) -> int:
        return sample.last_event_ms


class Rate(SampledStat):
    """The use per `unit_ms`: the sum of the samples divided by the time that they cover.

    With N samples, the divisor is the time since the oldest sample opened, but at least N-1 whole windows plus the
    elapsed part of the current one. N is 11 by default (`quota.window.num`): ten whole windows and the current one, the
    "10 windows" of KIP-13. So 1 MB in a client's first millisecond is a rate of 100 kB/s, not 1 GB/s, and a new client
    may use ten seconds' worth of its quota at once.

    KIP-13's example: a quota of 5 MB/s, 11 samples of 1 s. The client sends 5 MB at 0, 1000, ... 8000, then 15 MB at
    9000:

        t (ms)       sum      divisor     rate          throttle time
        8000         45 MB    10.000 s    4.500 MB/s    0
        9000         60 MB    10.000 s    6.000 MB/s    (6 - 5) / 5 * 10.000 s = 2000 ms, as in the KIP
        9999         60 MB    10.999 s    5.455 MB/s    1001 ms
        10000        60 MB    10.000 s    6.000 MB/s    2000 ms
        11000        55 MB    10.000 s    5.500 MB/s    1000 ms: still throttled 2 s later

    The client is idle after 9000; the last three lines show what would be measured:

    - The divisor is a sawtooth. With less than ten whole windows of history it grows from 10.000 to 10.999 s and drops
      back. Later it is between 10.000 and 11.998 s, because the oldest sample may have opened 999 ms before its last
      event and counts until 11 s after it.
    - Waiting for the throttle time does not bring the rate below the bound. The sum loses only whole samples, 11 s
      after their last event: at 11000 only the 5 MB of t = 0 leave, and the client may be throttled again.
    - KIP-13's 2 s is true only of a sensor with less than ten seconds of history. After that, 5 MB at each full second
      are eleven samples, 55 MB, over 10.000 s: a client that sends exactly its quota is throttled for 1000 ms.
    """

    __slots__ = ("_total", "_unit_ms")

    def __init__(
        self, num_samples: int, window_ms: int, event_window: int = _ANY_NUMBER, unit_ms: float = MS_PER_S
    ) -> None:
        super().__init__(num_samples, window_ms, event_window)
        self._unit_ms = unit_ms
        self._total = 0.0  # the sum of all samples at the last measurement

    def measure(self, now_ms: int) -> float:
        """Drop the samples that are stale at `now_ms`, then divide the sum of the rest by `window_size_ms`."""
        window_size_ms = self.window_size_ms(now_ms)
        self._total = self.combine(self._samples())
        # In this order: (sum * 1000) / ms would differ in the last bits.
        return self._total / (window_size_ms / self._unit_ms)

    @property
    def whole_windows(self) -> float:
        """The least divisor, in units, if the clock does not step back."""
        return self._windows.whole_windows_ms / self._unit_ms

    def record_and_measure(self, value: float, now_ms: int) -> float:
        """Do `record` and `measure` in one step, in two thirds of their time close to the bound."""
        windows = self._windows
        if (
            now_ms >= self._fresh_until_ms
            or now_ms < self._last_event_ms
            or now_ms - self._start_ms >= windows.window_ms
            or self._event_count >= windows.event_window
            or not self._used
        ):
            self.record(value, now_ms)
            return self.measure(now_ms)
        # The open sample stays open and no sample is stale, so only one value changes.
        self._value += value
        self._event_count += 1
        self._last_event_ms = now_ms
        windows.put_value(self._ring, self._open, self._value)  # only the value is read below
        total = 0.0
        for each in windows.values(self._ring):
            total += each
        self._total = total
        elapsed_ms = now_ms - self._oldest_start_ms
        if elapsed_ms <= windows.whole_windows_ms:  # equal: with one sample, both can be 0
            elapsed_ms = self.padded_ms(elapsed_ms)
        return total / (elapsed_ms / self._unit_ms)

    def open_room(self, total: float, now_ms: int) -> tuple[float, float, int]:
        """Return how much may be added to the open sample without measuring; call after `record_and_measure`.

        Returns:
            The open sample's value; the value below which the sum of all samples is less than `total`, up to rounding;
            the time until which no sample opens or becomes stale (0: unknown).
        """
        windows = self._windows
        until_ms = min(self._fresh_until_ms, self._start_ms + windows.window_ms)
        if windows.event_window < _ANY_NUMBER or now_ms < self._oldest_start_ms:  # the clock stepped back
            until_ms = 0
        return self._value, total - (self._total - self._value), until_ms

    def add_to_open_sample(self, value: float, count: int, last_event_ms: int) -> None:
        self._value = value
        self._event_count += count
        self._last_event_ms = last_event_ms

    def peek(self, now_ms: int) -> float:
        return super().peek(now_ms) / (self.peek_window_size_ms(now_ms) / self._unit_ms)

    def window_size_ms(self, now_ms: int) -> int:
        """Drop the samples that are stale at `now_ms`; return the divisor in ms, at least 1.

        Without any record, this opens the first sample, as in Kafka.
        """
        if now_ms >= self._fresh_until_ms:
            self._purge(now_ms)
        if not self._used:
            self._open_next_sample(now_ms)
        return self.padded_ms(now_ms - self._oldest_start_ms)

    def peek_window_size_ms(self, now_ms: int) -> int:
        starts_ms = [now_ms if self._is_stale(sample, now_ms) else sample.start_ms for sample in self._samples()]
        return self.padded_ms(now_ms - min(starts_ms, default=now_ms))

    def padded_ms(self, elapsed_ms: int) -> int:
        windows = self._windows
        if elapsed_ms < windows.whole_windows_ms:
            # Below the minimum, only the elapsed part of the current window counts. As in Java, the remainder has the
            # sign of `elapsed_ms`: negative if the clock stepped back to before the oldest sample.
            begun_ms = elapsed_ms % windows.window_ms if elapsed_ms >= 0 else -(-elapsed_ms % windows.window_ms)
            elapsed_ms = windows.whole_windows_ms + begun_ms
        return max(elapsed_ms, 1)


class RateUpTo37(Rate):
    """The rate of Kafka up to 3.7: `num_samples` slots, and a sample counts from when it opened.

    With 11 samples of 1 s the divisor never exceeds 10.999 s. A client that sends 1.85 MB every 370 ms (5 MB/s) has a
    measured rate between 4.71 and 5.18 MB/s; 3.8 and later measure 5.17 MB/s.
    """

    __slots__ = ()

    SPARE_SLOTS = 0

    def _counted_from_ms(self, sample: Sample) -> int:
        return sample.start_ms


def throttle_time_ms(rate: float, bound: float, window_size_ms: int) -> int:
    """Return the throttle time in ms: the time in which the client could have used the excess at rate `bound`.

    KIP-13 defines it as (produced - bound * W) / bound, with W the window size, which equals (rate - bound) / bound *
    W: 6 MB/s against 5 MB/s over 10 s is 2 s. Kafka rounds half up to whole ms, so it may be 0 although the bound is
    exceeded.

    It is at most the largest int32, as in Kafka 4.4. In earlier releases a larger number wraps around, possibly to a
    negative one.

    Source: `QuotaUtils.throttleTime`, `ClientQuotaManager.recordAndGetThrottleTimeMs`.
    """
    if bound == 0.0:  # Java divides by zero and continues with Infinity
        return MAX_THROTTLE_TIME_MS
    return whole_ms((rate - bound) / bound * window_size_ms)


def whole_ms(exact_ms: float) -> int:
    """Return Java's `Math.round` of a time of 0 or more, at most `MAX_THROTTLE_TIME_MS`."""
    if exact_ms >= MAX_THROTTLE_TIME_MS:
        return MAX_THROTTLE_TIME_MS
    floor_ms = floor(exact_ms)
    # Round half up. round() rounds half to even; floor(x + 0.5) rounds 0.49999999999999994 to 1.
    return floor_ms + (exact_ms - floor_ms >= 0.5)


class Violation(Struct, frozen=True):
    at_ms: int  # wall clock
    value: float  # the charge
    rate: float  # units per second, including `value`; for mutations, the tokens
    bound: float
    window_size_ms: int  # the divisor of `rate`
    throttle_ms: int


class Room(Struct, frozen=True):
    """Records that cannot exceed a bound: less than `value` in total, from `from_ms` and before `until_ms`."""

    value: float  # -inf if unknown until the next record
    from_ms: int
    until_ms: int


class Sensor:
    """The recorded use of one client: its rate, and the bound on it.

    While the open sample has room (see `Rate.open_room`), the sensor counts records itself, and passes them on when the
    rate is used next. They are summed in the same order, so the result is identical to the last bit.
    """

    __slots__ = (
        "_count",
        "_open_limit",
        "_open_until_ms",
        "_open_value",
        "_rate",
        "_surely_within",
        "bound",
        "last_record_ms",
        "last_violation",
    )

    def __init__(self, rate: Rate, bound: float, now_ms: int) -> None:
        self._rate = rate
        self._open_value = 0.0  # the open sample's value, including the records not yet passed to the rate
        self._count = 0  # of those records
        self._open_until_ms = 0
        self.hold_to(bound)
        self.last_record_ms = now_ms  # an unused sensor is inactive since its creation
        self.last_violation: Violation | None = None

    @property
    def rate(self) -> Rate:
        self._open_limit = -inf
        if self._count:
            self._rate.add_to_open_sample(self._open_value, self._count, self.last_record_ms)
            self._count = 0
        return self._rate

    def hold_to(self, bound: float) -> None:
        self.bound = bound
        self._surely_within = bound * self._rate.whole_windows * (1 - _ROUNDING)
        self._open_limit = -inf  # while the open sample's value is below this, the rate is not needed

    def record(self, value: float, now_ms: int) -> None:
        """Record `value` without a check. A negative value cancels an earlier record."""
        rate = self.rate
        self.last_record_ms = now_ms
        rate.record(value, now_ms)

    def record_and_get_throttle_time_ms(self, value: float, now_ms: int) -> int:
        """Record `value`, then check the rate; return 0 if it is at most the bound. A value above it counts too."""
        open_value = self._open_value + value
        if open_value < self._open_limit and self.last_record_ms <= now_ms < self._open_until_ms:
            self._open_value = open_value
            self._count += 1
            self.last_record_ms = now_ms
            return 0
        rate = self.rate
        self.last_record_ms = now_ms
        measured = rate.record_and_measure(value, now_ms)
        if measured > self.bound:
            return self._violated(value, measured, now_ms)
        self._open_value, self._open_limit, self._open_until_ms = rate.open_room(self._surely_within, now_ms)
        return 0

    def room(self) -> Room:
        return Room(self._open_limit - self._open_value, self.last_record_ms, self._open_until_ms)

    def record_in_room(self, value: float, count: int, now_ms: int) -> None:
        """Do the same as `count` records with the sum `value`, the last one at `now_ms`, all of which fit into `room`.

        The sum is identical to the last bit if the values are whole numbers.
        """
        self._open_value += value
        self._count += count
        self.last_record_ms = now_ms

    def _violated(self, value: float, rate: float, now_ms: int) -> int:
        window_size_ms = self._rate.window_size_ms(now_ms)
        throttle_ms = throttle_time_ms(rate, self.bound, window_size_ms)
        self.last_violation = Violation(now_ms, value, rate, self.bound, window_size_ms, throttle_ms)
        return throttle_ms
