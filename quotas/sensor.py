"""Windowed sensors: how much was used lately, how fast, and how long to wait when that was too much.

Follows Kafka's `Sample`, `SampledStat`, `Rate`, `Sensor` and `QuotaUtils` of 3.8 and later, to the last bit of every
double, and in `RateUpTo37` those of the releases before. `Rate` explains the arithmetic with worked numbers. Different
here: a sensor holds one rate under one bound and answers with the throttle time, where Kafka throws a
`QuotaViolationException` for its caller to turn into one; and `peek` reads without leaving a trace.

Time is a parameter (wall-clock milliseconds) of everything, and may step back.
"""

from math import floor, inf
from typing import NamedTuple

from .samples import Sample, windows_of

MS_PER_S = 1000.0

# Long.MAX_VALUE as a double: the bound of a client for whom no quota was found. Kafka shows the same number.
UNLIMITED = float(2**63 - 1)

# Integer.MAX_VALUE, 24.8 days: `throttle_time_ms` is an int32 on the wire.
MAX_THROTTLE_TIME_MS = 2**31 - 1

# Far more than adding up what clients send in a window can be off by, far less than anyone's quota is exact to.
_ROUNDING = 1e-6

# Later than any time that a clock of signed 64-bit milliseconds can show.
_NEVER = 2**63
_ANY_NUMBER = 2**63


class SampledStat:
    """A statistic over the last `num_samples` windows, kept as a ring of samples.

    Windows are cut by events, not by the clock: a sample opens with the first event that finds the open one complete
    (a window old, or `event_window` events full). So a silence costs no samples, and no two clients' windows change
    at the same moment.

    A sample counts until `num_samples` windows have passed since its *last* event. It may have opened up to a window
    before that event, so events of `num_samples` windows can lie in one sample more: hence the one slot more than
    `num_samples`. With 11 samples of 1 s, one that opened at 0 and was last written at 900 still counts at 11,500,
    when it opened 11.5 s ago.

    Up to Kafka 3.7 the ring has `num_samples` slots, and a sample is stale `num_samples` windows after it *opened*:
    see `RateUpTo37`.

    Recording never drops a stale sample, measuring first drops all of them. A dropped sample does not leave the ring:
    it becomes an empty one that starts now, and may later be the oldest. So *when* one measures matters; who only
    wants to look uses `peek`.
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

    INITIAL = 0.0  # the value of a sample that has seen no event
    SPARE_SLOTS = 1  # more than there are samples

    def __init__(self, num_samples: int, window_ms: int, event_window: int = _ANY_NUMBER) -> None:
        self._windows = windows_of(num_samples, window_ms, event_window, num_samples + self.SPARE_SLOTS)
        self._ring = self._windows.new_ring()
        self._used = 0  # slots that have a sample
        # The open sample's slot, which is written when it is read or another one opens, and what is in the sample.
        self._open = -1
        self._value = self.INITIAL
        self._start_ms = self._last_event_ms = self._event_count = 0
        # Both follow from the samples, and change seldom while events come often.
        self._fresh_until_ms = _NEVER  # no sample is stale before then: the least _counted_from_ms + span, or earlier
        self._oldest_start_ms = _NEVER  # the least start_ms

    def record(self, value: float, now_ms: int) -> None:
        """Adds `value` to the sample that is open at `now_ms`."""
        self.open_sample(now_ms)
        self._value += value

    def measure(self, now_ms: int) -> float:
        """Drops what is stale at `now_ms`, then combines the rest."""
        if now_ms >= self._fresh_until_ms:
            self._purge(now_ms)
        return self.combine(self._samples())

    def peek(self, now_ms: int) -> float:
        """What `measure` would return, without dropping anything."""
        return self.combine([sample for sample in self._samples() if not self._is_stale(sample, now_ms)])

    def peek_samples(self, now_ms: int) -> list[tuple[Sample, bool]]:
        """The samples from the oldest on, each with whether it is stale."""
        seen = [(sample, self._is_stale(sample, now_ms)) for sample in self._samples()]
        return sorted(seen, key=lambda each: each[0].start_ms)

    def combine(self, samples: list[Sample]) -> float:
        """The statistic over `samples`, which are in the order of their slots: here their sum."""
        # In the order of slots, not of time, and from 0.0, because the order decides the last bits of a double.
        # Not sum(): from Python 3.12 on it makes up for rounding, which Java does not.
        total = 0.0
        for sample in samples:
            total += sample.value
        return total

    def open_sample(self, now_ms: int) -> None:
        """Makes the sample to which an event at `now_ms` belongs the open one, with the event counted."""
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
        """Those that there are, in the order of their slots."""
        self._write_open_sample()
        return self._windows.samples(self._ring, self._used)

    def _write_open_sample(self) -> None:
        if self._used:
            sample = Sample(self._value, self._start_ms, self._last_event_ms, self._event_count)
            self._windows.put(self._ring, self._open, sample)

    def _reset(self, now_ms: int) -> None:
        """Makes the open sample a new, empty one that starts now."""
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
        """The moment from which a sample counts for `num_samples` windows."""
        return sample.last_event_ms


class Rate(SampledStat):
    """How fast something is used: the samples' sum over the time they stand for, in units per `unit_ms`.

    The divisor is what needs explaining. It is the time since the oldest sample opened, but with N samples never less
    than N-1 whole windows and the begun part of one more. N is 11 by default (`quota.window.num`): ten whole windows
    and the one being filled, which is what KIP-13 calls 10 windows. The floor keeps a fresh sensor from taking its
    first request for a habit: 1 MB in the first millisecond is 100 kB/s, not 1 GB/s. It also means that a client new
    to the broker gets ten seconds' worth of its quota through at once.

    KIP-13's example, a quota of 5 MB/s, 11 samples of 1 s. The client sends 5 MB at 0, 1000, ... 8000, then 15 MB:

        t (ms)       sum      divisor     rate          throttle time
        8000         45 MB    10.000 s    4.500 MB/s    0
        9000         60 MB    10.000 s    6.000 MB/s    (6 - 5) / 5 * 10.000 s = 2000 ms, as in the KIP
        9999         60 MB    10.999 s    5.455 MB/s    1001 ms
        10000        60 MB    10.000 s    6.000 MB/s    2000 ms
        11000        55 MB    10.000 s    5.500 MB/s    1000 ms: 2 s later, and still over

    From 9000 on nothing is sent, so the last lines show what only waiting does:

    - The divisor is a sawtooth. Until ten whole windows are on record, the floor swallows each whole second: it grows
      from 10.000 to 10.999 s and falls back. Later it runs from 10.000 to 11.998 s, as the oldest sample may have been
      open for 999 ms before its last event, and goes 11 s after that event (up to Kafka 3.7: to 10.999 s).
    - Serving the delay does not bring the rate under the bound. What was sent leaves the sum only a whole sample at a
      time, 11 s after that sample's last event: at 11000 the 5 MB of t = 0 go, and the client may have to wait again.
    - The KIP's 2 s holds for a sensor less than ten seconds old. One that has had 5 MB in each second for longer has
      eleven samples, 55 MB, over the same 10.000 s: a client that sends exactly its quota at each full second is
      itself made to wait 1000 ms.
    """

    __slots__ = ("_total", "_unit_ms")

    def __init__(
        self, num_samples: int, window_ms: int, event_window: int = _ANY_NUMBER, unit_ms: float = MS_PER_S
    ) -> None:
        super().__init__(num_samples, window_ms, event_window)
        self._unit_ms = unit_ms
        self._total = 0.0  # the sum of all samples when it was measured last

    def measure(self, now_ms: int) -> float:
        """Drops what is stale at `now_ms`, then divides the sum of the rest by `window_size_ms`."""
        window_size_ms = self.window_size_ms(now_ms)
        self._total = self.combine(self._samples())
        # Division by the unit first: (sum * 1000) / ms would differ in the last bits.
        return self._total / (window_size_ms / self._unit_ms)

    @property
    def whole_windows(self) -> float:
        """The least time that the rate is over, in units, if the clock does not step back."""
        return self._windows.whole_windows_ms / self._unit_ms

    def record_and_measure(self, value: float, now_ms: int) -> float:
        """`record`, then `measure`, in one step: where the quota is near it takes two thirds of the time."""
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
        # The open sample stays open, nothing is stale: all that changes is one sum.
        self._value += value
        self._event_count += 1
        self._last_event_ms = now_ms
        windows.put_value(self._ring, self._open, self._value)  # of the sample only what is read now
        total = 0.0
        for each in windows.values(self._ring):
            total += each
        self._total = total
        elapsed_ms = now_ms - self._oldest_start_ms
        if elapsed_ms <= windows.whole_windows_ms:  # equal: with one sample both can be 0
            elapsed_ms = self.padded_ms(elapsed_ms)
        return total / (elapsed_ms / self._unit_ms)

    def open_room(self, total: float, now_ms: int) -> tuple[float, float, int]:
        """Return what can be added to the open sample without a look at the others, after `record_and_measure`.

        The open sample's value; the value below which the sum of all samples is less than `total`, up to rounding; and
        the time before which the sample stays open and no sample becomes stale (0: that is not known).
        """
        windows = self._windows
        until_ms = min(self._fresh_until_ms, self._start_ms + windows.window_ms)
        if windows.event_window < _ANY_NUMBER or now_ms < self._oldest_start_ms:  # or the clock stepped back
            until_ms = 0
        return self._value, total - (self._total - self._value), until_ms

    def add_to_open_sample(self, value: float, count: int, last_event_ms: int) -> None:
        """Make the open sample's value `value`, after `count` more events within its `open_room`."""
        self._value = value
        self._event_count += count
        self._last_event_ms = last_event_ms

    def peek(self, now_ms: int) -> float:
        """What `measure` would return, without dropping anything."""
        return super().peek(now_ms) / (self.peek_window_size_ms(now_ms) / self._unit_ms)

    def window_size_ms(self, now_ms: int) -> int:
        """Drops what is stale at `now_ms`; returns the time that the rest stands for, at least 1 ms.

        Asked before anything was recorded, it opens the first sample, as Kafka does.
        """
        if now_ms >= self._fresh_until_ms:
            self._purge(now_ms)
        if not self._used:
            self._open_next_sample(now_ms)
        return self.padded_ms(now_ms - self._oldest_start_ms)

    def peek_window_size_ms(self, now_ms: int) -> int:
        """What `window_size_ms` would return, without dropping anything."""
        starts_ms = [now_ms if self._is_stale(sample, now_ms) else sample.start_ms for sample in self._samples()]
        return self.padded_ms(now_ms - min(starts_ms, default=now_ms))

    def padded_ms(self, elapsed_ms: int) -> int:
        """`elapsed_ms` since the oldest sample opened, raised to the floor described above."""
        windows = self._windows
        if elapsed_ms < windows.whole_windows_ms:
            # Of what is below the floor only the begun part of a window counts. The remainder has the sign of
            # `elapsed_ms`, as in Java: it is negative when the clock stepped back behind the oldest sample.
            begun_ms = elapsed_ms % windows.window_ms if elapsed_ms >= 0 else -(-elapsed_ms % windows.window_ms)
            elapsed_ms = windows.whole_windows_ms + begun_ms
        return max(elapsed_ms, 1)


class RateUpTo37(Rate):
    """The rate as Kafka had it up to 3.7: no slot more than there are samples, and each counts from when it opened.

    A sample is gone `num_samples` windows after its first event, however late its last one came, so a window's end is
    forgotten with its beginning: with 11 samples of 1 s the divisor never passes 10.999 s. A client that sends 1.85 MB
    every 370 ms has a measured rate between 4.71 and 5.18 MB/s, where 3.8 and later see 5.17 MB/s.
    """

    __slots__ = ()

    SPARE_SLOTS = 0

    def _counted_from_ms(self, sample: Sample) -> int:
        return sample.start_ms


def throttle_time_ms(rate: float, bound: float, window_size_ms: int) -> int:
    """How long a client over its bound waits, in ms: the time in which, at `bound`, the excess would have been used.

    With W the window size, KIP-13 has (produced - bound * W) / bound, which is (rate - bound) / bound * W. Kafka
    rounds the latter, half a millisecond up, so it can be 0 although the bound is exceeded. There is no limit but
    what an int32 holds; up to Kafka 4.3 a larger number wraps around, possibly to a negative one, and the client that
    is furthest over its quota gets away with no delay at all. Here as in 4.4 it stays at the limit.

    Source: `QuotaUtils.throttleTime`, `ClientQuotaManager.recordAndGetThrottleTimeMs`.
    """
    if bound == 0.0:  # Java divides by zero and goes on with infinity
        return MAX_THROTTLE_TIME_MS
    return whole_ms((rate - bound) / bound * window_size_ms)


def whole_ms(exact_ms: float) -> int:
    """Java's `Math.round` of a time that is not negative, cut at `MAX_THROTTLE_TIME_MS`."""
    if exact_ms >= MAX_THROTTLE_TIME_MS:
        return MAX_THROTTLE_TIME_MS
    floor_ms = floor(exact_ms)
    # Half goes up. round() would go to the even neighbour, floor(x + 0.5) would take 0.49999999999999994 for 1.
    return floor_ms + (exact_ms - floor_ms >= 0.5)


class Violation(NamedTuple):
    """The numbers of one delay: what was measured when a bound was exceeded, and what came of it."""

    at_ms: int  # wall clock
    value: float  # what was recorded then
    rate: float  # units per second, `value` included
    bound: float
    window_size_ms: int  # the time that the rate is over
    throttle_ms: int


class Room(NamedTuple):
    """What is surely within a bound: less than `value` in all, from `from_ms` on and before `until_ms`."""

    value: float  # -inf where that is not known before the next record
    from_ms: int
    until_ms: int


class Sensor:
    """What is recorded of one client: a rate, and the bound it is held to.

    Most requests are far from their quota. What is below the bound over the least time that the rate can be over need
    not be added up in the order that gives Kafka's last bits: it is enough to know the sum up to rounding, and that
    nothing else changes. So while the rate's open sample has room, records are counted here, and passed on to the rate
    when it is next used. They are added up in the same order, so the sample is the same to the last bit.
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
        self._open_value = 0.0  # of the open sample, with the records that are not passed on yet
        self._count = 0  # of those records
        self._open_until_ms = 0
        self.hold_to(bound)
        self.last_record_ms = now_ms  # a sensor that nobody recorded to has been idle since it was made
        self.last_violation: Violation | None = None

    @property
    def rate(self) -> Rate:
        """The rate, with all that was recorded."""
        self._open_limit = -inf
        if self._count:
            self._rate.add_to_open_sample(self._open_value, self._count, self.last_record_ms)
            self._count = 0
        return self._rate

    def hold_to(self, bound: float) -> None:
        """Changes the bound, in units per second; what was recorded stays."""
        self.bound = bound
        self._surely_within = bound * self._rate.whole_windows * (1 - _ROUNDING)
        self._open_limit = -inf  # of the open sample's value: what is below it needs no look at the rate

    def record(self, value: float, now_ms: int) -> None:
        """Records without a check. `value` may be negative: that takes back what was recorded before."""
        rate = self.rate
        self.last_record_ms = now_ms
        rate.record(value, now_ms)

    def record_and_get_throttle_time_ms(self, value: float, now_ms: int) -> int:
        """Records, then checks, so that what exceeds the bound counts too. 0 when the rate is at most the bound."""
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
        """Return what may be recorded next by `record_in_room`."""
        return Room(self._open_limit - self._open_value, self.last_record_ms, self._open_until_ms)

    def record_in_room(self, value: float, count: int, now_ms: int) -> None:
        """Does what `count` records would do that are `value` together and the last of which comes at `now_ms`.

        They must have been less than the room there was, each within its time and none before another: then each of
        them would have had a throttle time of 0. The sum is the same to the last bit where values are whole numbers.
        """
        self._open_value += value
        self._count += count
        self.last_record_ms = now_ms

    def _violated(self, value: float, rate: float, now_ms: int) -> int:
        window_size_ms = self._rate.window_size_ms(now_ms)
        throttle_ms = throttle_time_ms(rate, self.bound, window_size_ms)
        self.last_violation = Violation(now_ms, value, rate, self.bound, window_size_ms, throttle_ms)
        return throttle_ms
