"""Which connections of a client to one broker are tries of the same thing, where it keeps several at once: as far as
the backoff allows it, such that none came too early.

The observer tells them apart by when the next try was due, without knowing what is configured. Where rows of tries are
mixed (Kafka's client goes back to its bootstrap addresses when it loses a broker) that can be wrong, and waits would
seem too short that are not. So a connection is given to a row for which it did not come too early, if there is one: of
several to the one that had to wait the longest. There are as many rows as connections were ever open at once.

A client that waits too little may so be taken for two that take turns; one that was told not to go back to its
bootstrap addresses (`metadata.recovery.strategy=none`) is not given that chance.
"""

from collections.abc import Iterable, Sequence
from math import inf

from sluice.audit.judge.model.attempts import Attempt, AttemptSequence, Outcome

from .expected import Backoff
from .waits import ended_ns

_NS_PER_MS = 1_000_000


class _Row:
    def __init__(self, key: str, path: str) -> None:
        self.key, self.path = key, path
        self.attempts: list[Attempt] = []
        self.failures = 0
        self.is_free = False  # the client ended the last one itself

    def too_early_ms(self, attempt: Attempt, backoff: Backoff) -> float:
        """By how much an attempt would come too early here; inf: while the last one is open."""
        last = self.attempts[-1]
        if last.ended_ns is None or last.ended_ns > attempt.at_ns:
            return inf
        return self.least_ms(backoff) - (attempt.at_ns - last.ended_ns) / _NS_PER_MS

    def least_ms(self, backoff: Backoff) -> float:
        return 0.0 if self.is_free else backoff.band_ms(self.failures)[0]

    def append(self, attempt: Attempt, *, is_free: bool) -> None:
        self.failures = 0 if attempt.outcome is Outcome.SUCCEEDED or not self.attempts else self.failures + 1
        self.is_free = is_free
        self.attempts.append(attempt)


def rethreaded(found: Iterable[AttemptSequence], backoff: Backoff, early_ms: float) -> list[AttemptSequence]:
    """The same attempts, in rows that keep the backoff where that is possible."""
    by_client: dict[str, list[AttemptSequence]] = {}
    for sequence in found:
        by_client.setdefault(sequence.key.partition(" as ")[0], []).append(sequence)
    made: list[AttemptSequence] = []
    for sequences in by_client.values():
        most = _open_at_once(sequences)
        made += sequences if most == 1 else _rows(sequences, most, backoff, early_ms)
    return sorted(made, key=lambda sequence: sequence.attempts[0].at_ns)


def _rows(sequences: Sequence[AttemptSequence], most: int, backoff: Backoff, early_ms: float) -> list[AttemptSequence]:
    rows: list[_Row] = []
    done: list[_Row] = []
    attempts = [(attempt, sequence) for sequence in sequences for attempt in sequence.attempts]
    for attempt, sequence in sorted(attempts, key=lambda pair: pair[0].at_ns):
        row = _row_for(attempt, rows, backoff, early_ms)
        if row is None or (len(rows) < most and row.too_early_ms(attempt, backoff) > early_ms):
            row = _Row(sequence.key, sequence.path)
            rows.append(row)
        elif row.is_free:
            rows.remove(row)
            done.append(row)
            row = _Row(sequence.key, sequence.path)
            rows.append(row)
        was_ended = attempt is sequence.attempts[-1] and attempt.ended_ns is not None
        row.append(attempt, is_free=was_ended and attempt.outcome is Outcome.SUCCEEDED)
    kind = sequences[0].kind
    return [AttemptSequence(kind=kind, key=row.key, attempts=row.attempts, path=row.path) for row in (*done, *rows)]


def _row_for(attempt: Attempt, rows: Sequence[_Row], backoff: Backoff, early_ms: float) -> _Row | None:
    early = [(row.too_early_ms(attempt, backoff), row) for row in rows]
    able = [row for too_early, row in early if too_early <= early_ms]
    if able:
        return max(able, key=lambda row: (row.least_ms(backoff), ended_ns(row.attempts[-1])))
    ended = [(too_early, row) for too_early, row in early if too_early < inf]
    return min(ended, key=lambda pair: pair[0])[1] if ended else None


def _open_at_once(sequences: Sequence[AttemptSequence]) -> int:
    changes = [
        change
        for sequence in sequences
        for attempt in sequence.attempts
        for change in ((attempt.at_ns, 1), (inf if attempt.ended_ns is None else attempt.ended_ns, -1))
    ]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
