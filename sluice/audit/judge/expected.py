"""The waits that a client's settings require, and the tolerance of the measurement.

Kafka's rule (KIP-580): after n + 1 failures in a row wait base * 2**n ± 20 %, at most the maximum. If the base is not
below the maximum, every wait is the maximum, without jitter. `reconnect.backoff.ms` set alone is also the maximum
(KIP-144).

Waits are measured at the broker. Scheduling lengthens them; clocks truncated to milliseconds shorten them by up to
2 ms.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

JITTER = 0.2
MULTIPLIER = 2
# Allowed delay on an idle machine, and in virtual time, where clients poll their backoff timers.
_LATE_MS, _LATE_VIRTUAL_MS = 60.0, 25.0
_EARLY_MS = 2.0
_LONGEST_LAG_MS = 25.0
_RETRY_MAX_MS = 1000.0  # KIP-580's default, if the client's value is not known

Settings = Mapping[str, float | str | bool]
T = TypeVar("T")


def required(value: T | None) -> T:
    """Return a value that follows from the settings that a statement requires."""
    assert value is not None
    return value


class Backoff(NamedTuple):
    """A configured backoff, in ms.

    other_delay_ms: the client may wait this long for another reason
    constant_jitter: share by which a constant wait may be shorter and longer, where the KIP's text has jitter
    jittered_steps: number of first waits to which this applies; the formula of KIP-580 caps the others
    jitter: share by which a growing wait may be shorter and longer
    """

    base_ms: float
    max_ms: float
    other_delay_ms: float = 0.0
    constant_jitter: tuple[float, float] = (0.0, 0.0)
    jittered_steps: int = 1
    jitter: float = JITTER

    @property
    def is_constant(self) -> bool:
        return self.base_ms >= self.max_ms

    @property
    def steps_to_cap(self) -> int:
        steps, value = 0, self.base_ms
        while 0 < value < self.max_ms:
            steps, value = steps + 1, value * MULTIPLIER
        return steps

    def value_ms(self, failures: int) -> float:
        if self.is_constant:
            return self.max_ms
        return min(self.base_ms * float(MULTIPLIER) ** min(failures, self.steps_to_cap), self.max_ms)

    def band_ms(self, failures: int) -> tuple[float, float]:
        value = self.value_ms(failures)
        if self.is_constant:
            shorter, longer = self.constant_jitter if failures < self.jittered_steps else (0.0, 0.0)
            return (1 - shorter) * value, max((1 + longer) * value, self.other_delay_ms)
        return (1 - self.jitter) * value, max(min((1 + self.jitter) * value, self.max_ms), self.other_delay_ms)

    def in_words(self) -> str:
        """Return text such as 100, 200, 400 ... 1000 ms ± 20 %."""
        if self.is_constant:
            return f"{self.max_ms:g} ms each time"
        values = [f"{self.value_ms(number):g}" for number in range(min(self.steps_to_cap + 1, 3))]
        more = " ..." if self.steps_to_cap > 3 else ","
        last = f"{more} {self.max_ms:g}" if self.steps_to_cap >= 3 else ""
        return f"{', '.join(values)}{last} ms ± {100 * self.jitter:.0f} %"


def number(settings: Settings, name: str) -> float | None:
    value = settings.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def retry_backoff(settings: Settings) -> Backoff | None:
    """Return None if the settings are not known."""
    base_ms, max_ms = number(settings, "retry.backoff.ms"), number(settings, "retry.backoff.max.ms")
    return None if base_ms is None or max_ms is None else Backoff(base_ms, max_ms)


def static_backoff(settings: Settings) -> Backoff | None:
    base_ms = number(settings, "retry.backoff.ms")
    return None if base_ms is None else Backoff(base_ms, base_ms)


def reconnect_backoff(settings: Settings) -> Backoff | None:
    """Return None if the settings are not known.

    A client connects only to send a request, whose retry backoff may delay the connection.
    """
    base_ms, max_ms = number(settings, "reconnect.backoff.ms"), number(settings, "reconnect.backoff.max.ms")
    if base_ms is None:
        return None
    retry_ms = number(settings, "retry.backoff.max.ms")
    other_delay_ms = (1 + JITTER) * (_RETRY_MAX_MS if retry_ms is None else retry_ms)
    return Backoff(base_ms, base_ms if max_ms is None else max_ms, other_delay_ms)


class Tolerance(NamedTuple):
    """How far a wait may be below and above the expected band, in ms."""

    early_ms: float
    late_ms: float

    def later(self, more_ms: float) -> "Tolerance":
        return self._replace(late_ms=self.late_ms + more_ms)


def longest_lag_ms(base_ms: float) -> float:
    return max(_LONGEST_LAG_MS, base_ms / 2)


def tolerance(base_ms: float, lag_ms: float, *, virtual: bool) -> Tolerance:
    if virtual:
        return Tolerance(_EARLY_MS, max(_LATE_VIRTUAL_MS, base_ms / 2))
    return Tolerance(_EARLY_MS + lag_ms, max(_LATE_MS, base_ms / 2) + lag_ms)
