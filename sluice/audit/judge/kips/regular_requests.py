"""Separation of retries from requests that are no retries: regular heartbeats, and lookups by another thread.

After a failed heartbeat, some clients do not retry but send the next one after `heartbeat.interval.ms`. A heartbeat
that arrives when only a regular one is due counts as regular.

The heartbeat thread of Kafka's consumer also looks up an unknown coordinator (AbstractCoordinator). It may do so just
before a call, which counts its failures from its own first lookup. If most sequences begin in this way, it is the
client's rule.
"""

from collections.abc import Sequence
from math import inf

from sluice.audit.judge.completed_calls import split_at
from sluice.audit.judge.expected import Backoff, Tolerance
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


def without_other_lookups(
    found: Sequence[AttemptSequence], every: Sequence[AttemptSequence], backoff: Backoff, allowed: Tolerance
) -> list[AttemptSequence]:
    """Split the sequences of a run; `every` has the sequences of all runs."""
    if 2 * sum(_begins_with_another(each, backoff, allowed) for each in every) > len(every):
        return list(found)
    return [
        part for each in found for part in split_at(each, [1] if _begins_with_another(each, backoff, allowed) else [])
    ]


def _begins_with_another(sequence: AttemptSequence, backoff: Backoff, allowed: Tolerance) -> bool:
    """Return whether the waits follow the rule only without the first attempt."""
    waits = sequence.gaps_ms()
    late_ms = backoff.band_ms(0)[1] + allowed.late_ms
    is_restart = len(waits) > 1 and waits[1] <= late_ms
    return is_restart and _is_short(waits, backoff, allowed) and not _is_short(waits[1:], backoff, allowed)


def _is_short(waits: Sequence[float], backoff: Backoff, allowed: Tolerance) -> bool:
    return any(wait < backoff.band_ms(failures)[0] - allowed.early_ms for failures, wait in enumerate(waits))
