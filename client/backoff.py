"""How long to wait before trying again: Kafka's ExponentialBackoff (KIP-580, KIP-144, KIP-601), and the KIPs' own
formulas where their texts say something else.

Theory of operation. `backoff(n)` is for the n-th failure in a row, counted from 0, and draws once:

                          Kafka (since 3.7)                          the texts (`profile="kip"`)
    retry, KIP-580        min(max, base * 2**n * factor)             the same; also where base == max
    reconnect, KIP-144    the same                                   min(max, base * 2**n) * factor
    base >= max           max, every time, without a draw            retry: that only where base > max

with a factor of 0.8 up to 1.2. Kafka caps after the jitter: at the cap half of all draws are exactly `max`, the others
lie in [0.8 * max, max). With 100 and 1000 ms and a factor of 1: 100, 200, 400, 800, 1000, 1000, ...; so 4 tries in the
first second (at 0, 100, 300 and 700 ms), where a constant 100 ms makes 10.

That base > max is worth a warning is said where both are configured (`client.config`).
"""

import sys
from collections.abc import Callable
from math import inf, log, nextafter
from typing import Protocol

RETRY_MULTIPLIER = 2
RETRY_JITTER = 0.2

# Draws from [low, high): `random.Random(seed).uniform` is one. That may round up to `high`, which is mended here.
Uniform = Callable[[float, float], float]


class Backoff(Protocol):
    """A way to wait longer with each failure."""

    def backoff(self, attempts: int) -> int:
        """Milliseconds to wait after so many failures, not counting the last one."""


class ExponentialBackoff:
    """Kafka's class of this name, to the bit."""

    __slots__ = ("_exp_max", "_jitter", "_max_ms", "_multiplier", "_uniform", "initial_ms")

    def __init__(self, initial_ms: int, multiplier: int, max_ms: int, jitter: float, uniform: Uniform) -> None:
        """Raises ValueError for a jitter outside of 0 to 1."""
        if not 0 <= jitter <= 1:
            raise ValueError(f"jitter {jitter} must be from 0 to 1")
        self.initial_ms = min(initial_ms, max_ms)
        self._multiplier = multiplier
        self._max_ms = max_ms
        self._jitter = jitter
        self._uniform = uniform
        # The exponent at which the maximum is reached; 0: there is nothing to grow to.
        self._exp_max = _exponent_of(max_ms / max(initial_ms, 1), multiplier) if max_ms > initial_ms else 0.0

    def backoff(self, attempts: int) -> int:
        if self._exp_max == 0:
            return self.initial_ms
        exponent = self._exp_max if attempts > self._exp_max else float(attempts)
        term = self.initial_ms * float(self._multiplier) ** exponent
        return min(int(_factor(self._jitter, self._uniform) * term), self._max_ms)


class KipRetryBackoff:
    """KIP-580's text: MIN(max, base * 2 ** failures * random(0.8, 1.2)), and `max` where base > max."""

    __slots__ = ("_base_ms", "_max_ms", "_uniform")

    def __init__(self, base_ms: int, max_ms: int, uniform: Uniform) -> None:
        self._base_ms = base_ms
        self._max_ms = max_ms
        self._uniform = uniform

    def backoff(self, attempts: int) -> int:
        if self._base_ms > self._max_ms:
            return self._max_ms
        return min(self._max_ms, int(_grown(self._base_ms, self._max_ms, attempts) * _jittered(self._uniform)))


class KipReconnectBackoff:
    """KIP-144's text: the backoff grows up to `max`, and is then taken from a range of 20 % below and above it."""

    __slots__ = ("_base_ms", "_max_ms", "_uniform")

    def __init__(self, base_ms: int, max_ms: int, uniform: Uniform) -> None:
        self._base_ms = base_ms
        self._max_ms = max_ms
        self._uniform = uniform

    def backoff(self, attempts: int) -> int:
        computed = min(self._max_ms, _grown(self._base_ms, self._max_ms, attempts))
        return int(computed * _jittered(self._uniform))


class StaticBackoff:
    """The same every time, without jitter: `retry.backoff.ms` where Kafka never went further."""

    __slots__ = ("_ms",)

    def __init__(self, ms: int) -> None:
        self._ms = ms

    def backoff(self, attempts: int) -> int:
        return self._ms


def _grown(base_ms: int, max_ms: int, attempts: int) -> int:
    """base * 2 ** attempts, as far as it matters."""
    # Beyond twice the maximum no factor brings it below; and a shift by a week's failures is a long number.
    return base_ms << min(attempts, (2 * max_ms // max(base_ms, 1)).bit_length())


def _jittered(uniform: Uniform) -> float:
    return _factor(RETRY_JITTER, uniform)


def _factor(jitter: float, uniform: Uniform) -> float:
    if jitter < sys.float_info.min:
        return 1.0
    low, high = 1 - jitter, 1 + jitter
    return min(uniform(low, high), nextafter(high, low))


def _exponent_of(ratio: float, multiplier: int) -> float:
    """What `multiplier` has to be raised to for `ratio`; a multiplier of 1 never gets there."""
    return log(ratio) / log(multiplier) if multiplier > 1 else inf
