"""Separation of heartbeat retries from regular heartbeats.

After a failed heartbeat, some clients do not retry but send the next one after `heartbeat.interval.ms`. A heartbeat
that arrives when only a regular one is due counts as regular.
"""

from math import inf

from sluice.audit.judge.completed_calls import split_at
from sluice.audit.judge.expected import Backoff
from sluice.audit.judge.model.attempts import AttemptSequence
from sluice.audit.judge.waits import ended_ns

_NS_PER_MS = 1_000_000
_ON_TIME = 0.1


def without_regular(
    sequence: AttemptSequence, backoff: Backoff, interval_ms: float, late_ms: float
) -> list[AttemptSequence]:
    begins: list[int] = []
    first, failures = sequence.attempts[0], 0
    for number, attempt in enumerate(sequence.attempts[1:], 1):
        low_ms, high_ms = backoff.band_ms(failures)
        waited_ms = (attempt.at_ns - ended_ns(sequence.attempts[number - 1])) / _NS_PER_MS
        is_retry = low_ms <= waited_ms <= high_ms + late_ms
        if not is_retry and _off_time((attempt.at_ns - first.at_ns) / _NS_PER_MS, interval_ms) < _ON_TIME:
            begins.append(number)
            first, failures = attempt, 0
        else:
            failures += 1
    return split_at(sequence, begins)


def _off_time(since_ms: float, interval_ms: float) -> float:
    return abs(since_ms - interval_ms) / interval_ms if interval_ms else inf
