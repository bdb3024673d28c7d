"""Backoff formulas: Kafka's ExponentialBackoff (KIP-580, KIP-144, KIP-601), and the KIP texts' where they differ.

`backoff(n)` is the wait after the n-th failure in a row, counted from 0. It draws one factor from 0.8 to 1.2:

                          Kafka (since 3.7)                          KIP text (`profile="kip"`)
    retry, KIP-580        min(max, base * 2**n * factor)             the same, also if base == max
    reconnect, KIP-144    the same                                   min(max, base * 2**n) * factor
    base >= max           always max, without a draw                 retry: only if base > max

Kafka caps after the jitter: at the cap, half of all draws are exactly `max`, the others lie in [0.8 * max, max).
"""

import sys
from collections.abc import Callable
from math import inf, log, nextafter
from random import Random, getrandbits  # noqa: TID251  (of the module only the seed of a client is drawn)
from typing import Protocol

RETRY_MULTIPLIER = 2
RETRY_JITTER = 0.2

# Draws from [low, high), such as `random.Random(seed).uniform`, which may round up to `high`; `_factor` corrects that.
Uniform = Callable[[float, float], float]


def new_random() -> Random:
    """Return the generator of a client that was given none; a run in virtual time seeds the module, so it repeats."""
    return Random(getrandbits(64))  # noqa: S311  (for jitter and partitions, not for secrets)


class Backoff(Protocol):
    def backoff(self, attempts: int) -> int:
        """Return the ms to wait after `attempts` + 1 failures in a row."""


class ExponentialBackoff:
    """Kafka's ExponentialBackoff, with the same result for the same draw."""

    def __init__(self, initial_ms: int, multiplier: int, max_ms: int, jitter: float, uniform: Uniform) -> None:
        """Raise ValueError if `jitter` is outside 0 to 1."""
        if not 0 <= jitter <= 1:
            raise ValueError(f"jitter: expected 0 to 1, got {jitter}")
        self.initial_ms = min(initial_ms, max_ms)
        self._multiplier = multiplier
        self._max_ms = max_ms
        self._jitter = jitter
        self._uniform = uniform
        # The exponent at which the maximum is reached; 0: the backoff is constant.
        self._exp_max = _exponent_of(max_ms / max(initial_ms, 1), multiplier) if max_ms > initial_ms else 0.0

    def backoff(self, attempts: int) -> int:
        if self._exp_max == 0:
            return self.initial_ms
        exponent = self._exp_max if attempts > self._exp_max else float(attempts)
        term = self.initial_ms * float(self._multiplier) ** exponent
        return min(int(_factor(self._jitter, self._uniform) * term), self._max_ms)


class KipRetryBackoff:
    def __init__(self, base_ms: int, max_ms: int, uniform: Uniform) -> None:
        self._base_ms = base_ms
        self._max_ms = max_ms
        self._uniform = uniform

    def backoff(self, attempts: int) -> int:
        if self._base_ms > self._max_ms:
            return self._max_ms
        return min(self._max_ms, int(_grown(self._base_ms, self._max_ms, attempts) * _jittered(self._uniform)))


class KipReconnectBackoff:
    def __init__(self, base_ms: int, max_ms: int, uniform: Uniform) -> None:
        self._base_ms = base_ms
        self._max_ms = max_ms
        self._uniform = uniform

    def backoff(self, attempts: int) -> int:
        computed = min(self._max_ms, _grown(self._base_ms, self._max_ms, attempts))
        return int(computed * _jittered(self._uniform))


class StaticBackoff:
    """A constant wait without jitter, for operations without the backoff of KIP-580."""

    def __init__(self, ms: int) -> None:
        self._ms = ms

    def backoff(self, attempts: int) -> int:
        return self._ms


def _grown(base_ms: int, max_ms: int, attempts: int) -> int:
    # Twice the maximum, times any factor, exceeds the maximum, so the shift can be limited.
    return base_ms << min(attempts, (2 * max_ms // max(base_ms, 1)).bit_length())


def _jittered(uniform: Uniform) -> float:
    return _factor(RETRY_JITTER, uniform)


def _factor(jitter: float, uniform: Uniform) -> float:
    if jitter < sys.float_info.min:
        return 1.0
    low, high = 1 - jitter, 1 + jitter
    return min(uniform(low, high), nextafter(high, low))


def _exponent_of(ratio: float, multiplier: int) -> float:
    return log(ratio) / log(multiplier) if multiplier > 1 else inf
