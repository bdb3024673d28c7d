"""Separation of a coordinator lookup by another thread from the lookups that follow.

The heartbeat thread of Kafka's consumer also looks up an unknown coordinator (AbstractCoordinator). It may do so just
before a call, which counts its failures from its own first lookup. If most sequences begin in this way, it is the
client's rule.
"""

from collections.abc import Sequence

from sluice.audit.judge.completed_calls import split_at
from sluice.audit.judge.expected import Backoff, Tolerance
from sluice.audit.judge.model.attempts import AttemptSequence


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
