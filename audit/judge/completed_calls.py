"""Where a driver told that a call had come to its end, what comes afterwards is another call, and no retry.

An admin's call, or a commit, that its client gives up raises in the application, and that calls again when it likes:
the wait in between is the application's. So is one between two clients that were made one after the other.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from sluice.audit.judge.model.attempts import AttemptSequence, Kind
from sluice.audit.judge.model.observation import Callback

from .waits import ended_ns

_CALLED = (Kind.ADMIN, Kind.OFFSET_COMMIT)
# A client's first try comes after it is made: what is told to be made within so long of that is this client.
_SAME_NS = 1_000_000


def apart(found: Iterable[AttemptSequence], callbacks: Sequence[Callback]) -> list[AttemptSequence]:
    """The same sequences, each of one call, by when the first attempt came."""
    failed = [told.at_ns for told in callbacks if told.event == "call-failed"]
    made = [told.at_ns for told in callbacks if told.event == "started"]
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
    """The attempts of a sequence, apart before those of these numbers."""
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
