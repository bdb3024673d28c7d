"""Separates the parallel connections of a client to one broker into lanes, each with its own backoff.

If the observer, which does not know the configuration, mixes lanes, correct waits can seem too short. Here a connection
goes to the lane with the longest required wait for which it is not too early. There are as many lanes as connections
open at the same time.

A client that waits too little can look like two that alternate. So a client that never returns to its bootstrap
addresses (`metadata.recovery.strategy=none`) is not judged by lanes.
"""

from collections.abc import Iterable, Sequence
from math import inf

from sluice.audit.judge.model.attempts import Attempt, AttemptSequence, Outcome

from .expected import Backoff
from .observer.connections import CLOSE_NOTICED_NS
from .waits import ended_ns

_NS_PER_MS = 1_000_000


class _Lane:
    def __init__(self, key: str, path: str) -> None:
        self.key, self.path = key, path
        self.attempts: list[Attempt] = []
        self.failures = 0
        self.is_free = False  # the client closed the last connection itself

    def too_early_ms(self, attempt: Attempt, backoff: Backoff) -> float:
        """Return inf while the last connection is open."""
        last = self.attempts[-1]
        if last.ended_ns is None or _end_ns(last) > attempt.at_ns:
            return inf
        return self.least_ms(backoff) - (attempt.at_ns - last.ended_ns) / _NS_PER_MS

    def least_ms(self, backoff: Backoff) -> float:
        return 0.0 if self.is_free else backoff.band_ms(self.failures)[0]

    def append(self, attempt: Attempt, *, is_free: bool) -> None:
        self.failures = 0 if attempt.outcome is Outcome.SUCCEEDED or not self.attempts else self.failures + 1
        self.is_free = is_free
        self.attempts.append(attempt)


def separate_lanes(found: Iterable[AttemptSequence], backoff: Backoff, early_ms: float) -> list[AttemptSequence]:
    by_client: dict[str, list[AttemptSequence]] = {}
    for sequence in found:
        by_client.setdefault(sequence.key.partition(" as ")[0], []).append(sequence)
    made: list[AttemptSequence] = []
    for sequences in by_client.values():
        most = _open_at_once(sequences)
        made += sequences if most == 1 else _in_lanes(sequences, most, backoff, early_ms)
    return sorted(made, key=lambda sequence: sequence.attempts[0].at_ns)


def _in_lanes(
    sequences: Sequence[AttemptSequence], most: int, backoff: Backoff, early_ms: float
) -> list[AttemptSequence]:
    lanes: list[_Lane] = []
    done: list[_Lane] = []
    attempts = [(attempt, sequence) for sequence in sequences for attempt in sequence.attempts]
    for attempt, sequence in sorted(attempts, key=lambda pair: pair[0].at_ns):
        lane = _lane_for(attempt, lanes, backoff, early_ms)
        if lane is None or (len(lanes) < most and lane.too_early_ms(attempt, backoff) > early_ms):
            lane = _Lane(sequence.key, sequence.path)
            lanes.append(lane)
        elif lane.is_free:
            lanes.remove(lane)
            done.append(lane)
            lane = _Lane(sequence.key, sequence.path)
            lanes.append(lane)
        was_ended = attempt is sequence.attempts[-1] and attempt.ended_ns is not None
        lane.append(attempt, is_free=was_ended and attempt.outcome is Outcome.SUCCEEDED)
    kind = sequences[0].kind
    return [
        AttemptSequence(kind=kind, key=lane.key, attempts=lane.attempts, path=lane.path) for lane in (*done, *lanes)
    ]


def _lane_for(attempt: Attempt, lanes: Sequence[_Lane], backoff: Backoff, early_ms: float) -> _Lane | None:
    early = [(lane.too_early_ms(attempt, backoff), lane) for lane in lanes]
    able = [lane for too_early, lane in early if too_early <= early_ms]
    if able:
        return max(able, key=lambda lane: (lane.least_ms(backoff), ended_ns(lane.attempts[-1])))
    ended = [(too_early, lane) for too_early, lane in early if too_early < inf]
    return min(ended, key=lambda pair: pair[0])[1] if ended else None


def _end_ns(attempt: Attempt) -> float:
    if attempt.ended_ns is None:
        return inf
    is_given_up = attempt.outcome is Outcome.ABANDONED
    return max(attempt.at_ns, attempt.ended_ns - CLOSE_NOTICED_NS) if is_given_up else attempt.ended_ns


def _open_at_once(sequences: Sequence[AttemptSequence]) -> int:
    changes = [
        change
        for sequence in sequences
        for attempt in sequence.attempts
        for change in ((attempt.at_ns, 1), (_end_ns(attempt), -1))
    ]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
