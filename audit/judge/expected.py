"""What a client has to wait by its settings, and how far off a wait may be seen.

Kafka's rule: base * 2**n after n + 1 failures in a row, 20 % more or less, and at most the maximum; where the base is
not below the maximum, the maximum, each time, without jitter (KIP-580). `reconnect.backoff.ms` set alone is its own
maximum (KIP-144).

A wait is measured from when the broker ended an attempt to when the next one came, so that scheduling on either side
makes it longer, never shorter; clocks that are cut to milliseconds take away two at most.
"""

from collections.abc import Mapping
from typing import NamedTuple

JITTER = 0.2
MULTIPLIER = 2
# What a wait may be longer by on a machine that does nothing else, and in virtual time, where clients look at a backoff
# only now and then.
_LATE_MS, _LATE_VIRTUAL_MS = 60.0, 25.0
_EARLY_MS = 2.0
_LONGEST_LAG_MS = 25.0
_RETRY_MAX_MS = 1000.0  # KIP-580's default, where a client's is not known

Settings = Mapping[str, float | str | bool]


class Backoff(NamedTuple):
    """What is configured, in ms. `held_up_ms`: what else a wait may be for, so that it is longer."""

    base_ms: float
    max_ms: float
    held_up_ms: float = 0.0

    @property
    def is_constant(self) -> bool:
        return self.base_ms >= self.max_ms

    @property
    def steps_to_cap(self) -> int:
        """After how many failures the maximum is reached, less one."""
        steps, value = 0, self.base_ms
        while 0 < value < self.max_ms:
            steps, value = steps + 1, value * MULTIPLIER
        return steps

    def value_ms(self, failures: int) -> float:
        """Without jitter, after `failures` + 1 of them."""
        if self.is_constant:
            return self.max_ms
        return min(self.base_ms * float(MULTIPLIER) ** min(failures, self.steps_to_cap), self.max_ms)

    def band_ms(self, failures: int) -> tuple[float, float]:
        """The least and the most."""
        value = self.value_ms(failures)
        if self.is_constant:
            return value, max(value, self.held_up_ms)
        return (1 - JITTER) * value, max(min((1 + JITTER) * value, self.max_ms), self.held_up_ms)

    def in_words(self) -> str:
        """Such as 100, 200, 400 ... 1000 ms ± 20 %."""
        if self.is_constant:
            return f"{self.max_ms:g} ms each time"
        values = [f"{self.value_ms(number):g}" for number in range(min(self.steps_to_cap + 1, 3))]
        more = " ..." if self.steps_to_cap > 3 else ","
        last = f"{more} {self.max_ms:g}" if self.steps_to_cap >= 3 else ""
        return f"{', '.join(values)}{last} ms ± 20 %"


def number(settings: Settings, name: str) -> float | None:
    """A setting that is a number; None where it is not known."""
    value = settings.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def retry_backoff(settings: Settings) -> Backoff | None:
    """KIP-580's; None where it is not known."""
    base_ms, max_ms = number(settings, "retry.backoff.ms"), number(settings, "retry.backoff.max.ms")
    return None if base_ms is None or max_ms is None else Backoff(base_ms, max_ms)


def static_backoff(settings: Settings) -> Backoff | None:
    """`retry.backoff.ms` each time."""
    base_ms = number(settings, "retry.backoff.ms")
    return None if base_ms is None else Backoff(base_ms, base_ms)


def reconnect_backoff(settings: Settings) -> Backoff | None:
    """KIP-144's; None where it is not known. A client connects when it has something to send, for which the backoff of
    a retry may have to be over as well.
    """
    base_ms, max_ms = number(settings, "reconnect.backoff.ms"), number(settings, "reconnect.backoff.max.ms")
    if base_ms is None:
        return None
    retry_ms = number(settings, "retry.backoff.max.ms")
    held_up_ms = (1 + JITTER) * (_RETRY_MAX_MS if retry_ms is None else retry_ms)
    return Backoff(base_ms, base_ms if max_ms is None else max_ms, held_up_ms)


class Tolerance(NamedTuple):
    """How much shorter and longer than it was a wait may be seen, in ms."""

    early_ms: float
    late_ms: float

    def later(self, more_ms: float) -> "Tolerance":
        """With more on that side."""
        return self._replace(late_ms=self.late_ms + more_ms)


def longest_lag_ms(base_ms: float) -> float:
    """How late the broker's timers may have been for a verdict about waits from `base_ms` on."""
    return max(_LONGEST_LAG_MS, base_ms / 2)


def tolerance(base_ms: float, lag_ms: float, *, virtual: bool) -> Tolerance:
    """For waits from `base_ms` on, where the broker's timers were late by `lag_ms`."""
    if virtual:
        return Tolerance(_EARLY_MS, max(_LATE_VIRTUAL_MS, base_ms / 2))
    return Tolerance(_EARLY_MS + lag_ms, max(_LATE_MS, base_ms / 2) + lag_ms)
