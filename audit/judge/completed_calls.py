"""Splits sequences of attempts where a driver reported the end of a call: the next attempt is a new call, not a retry.

A failed admin call or commit raises in the application, which decides when to call again: that wait is not the
client's. Neither is the wait between one client instance and the next.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from sluice.audit.judge.model.attempts import AttemptSequence, Kind
from sluice.audit.judge.model.observation import Callback

from .waits import ended_ns

_CALLED = (Kind.ADMIN, Kind.OFFSET_COMMIT)
# A client reports "started" this shortly before its first attempt; a later report belongs to the next client.
_SAME_NS = 1_000_000


def split_calls(found: Iterable[AttemptSequence], callbacks: Sequence[Callback]) -> list[AttemptSequence]:
    """Return one sequence per call, ordered by first attempt."""
    failed = [callback.at_ns for callback in callbacks if callback.event == "call-failed"]
    made = [callback.at_ns for callback in callbacks if callback.event == "started"]
    parts = [part for sequence in found for part in _parts(sequence, made, failed if sequence.kind in _CALLED else [])]
    return sorted(parts, key=lambda sequence: sequence.attempts[0].at_ns)


def _parts(sequence: AttemptSequence, made_ns: Sequence[int], failed_ns: Sequence[int]) -> list[AttemptSequence]:
    begins = [
        number
        for number, (before, after) in enumerate(pairwise(sequence.attempts), 1)
        if any(ended_ns(before) <= at_ns < after.at_ns for at_ns in failed_ns)
        or any(before.at_ns + _SAME_NS <= at_ns < after.at_ns for at_ns in made_ns)
    ]
    return split_at(sequence, begins)


def split_at(sequence: AttemptSequence, begins: Sequence[int]) -> list[AttemptSequence]:
    if not begins:
        return [sequence]
    bounds = [0, *begins, len(sequence.attempts)]
    return [
        msgspec.structs.replace(
            sequence,
            key=sequence.key if number == 1 else f"{sequence.key}, part {number}",
            attempts=sequence.attempts[begin:end],
        )
        for number, (begin, end) in enumerate(pairwise(bounds), 1)
    ]
