"""What was waited in a sequence of attempts, and after how many failures in a row: what rules of backoff are about."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from sluice.audit.attempts import AttemptSequence, Kind, Outcome
from sluice.audit.verdict import Series

from .expected import Backoff, Tolerance

_NS_PER_MS = 1e6
_MOST_SERIES = 12
# Without bounds: nothing is demanded of this wait.
NO_BOUND_MS = 1e12


class Wait(NamedTuple):
    """Before one attempt.

    failures: in a row until then, not counting the last
    waited_ms: how long
    may_be_shorter: it is sent elsewhere than before, which needs no wait
    may_be_longer: it had to wait for another one as well
    """

    failures: int
    waited_ms: float
    may_be_shorter: bool = False
    may_be_longer: bool = False


class Track(NamedTuple):
    """A sequence with its waits: one before each attempt but the first."""

    sequence: AttemptSequence
    repetition: int
    waits: list[Wait]

    def rows(self) -> list[list[float]]:
        """The waits of each row of failures."""
        rows: list[list[float]] = []
        for wait in self.waits:
            if wait.failures == 0 or not rows:
                rows.append([])
            rows[-1].append(wait.waited_ms)
        return rows

    def series(self, backoff: Backoff | None, tolerance: Tolerance) -> Series:
        """For a plot, with the band of a rule."""
        attempts = self.sequence.attempts
        bands = [] if backoff is None else [backoff.band_ms(wait.failures) for wait in self.waits]
        return Series(
            kind=self.sequence.kind,
            key=self.sequence.key,
            repetition=self.repetition,
            at_ms=[(attempt.at_ns - attempts[0].at_ns) / _NS_PER_MS for attempt in attempts],
            waited_ms=[wait.waited_ms for wait in self.waits],
            low_ms=[
                0.0 if wait.may_be_shorter else max(0.0, low - tolerance.early_ms)
                for wait, (low, _) in zip(self.waits, bands, strict=bool(bands))
            ],
            high_ms=[
                NO_BOUND_MS if wait.may_be_longer else high + tolerance.late_ms
                for wait, (_, high) in zip(self.waits, bands, strict=bool(bands))
            ],
            outcomes=[str(attempt.outcome) for attempt in attempts],
        )


def track(sequence: AttemptSequence, others: Sequence[AttemptSequence], repetition: int = 0) -> Track:
    """The waits of a sequence; `others` are all of the same run."""
    waits: list[Wait] = []
    failures = 0
    older = _older_of_partition(sequence, others)
    for (before, after), waited_ms in zip(pairwise(sequence.attempts), sequence.gaps_ms(), strict=True):
        failures = 0 if before.outcome is Outcome.SUCCEEDED else failures
        ended_ns = before.at_ns if before.ended_ns is None else before.ended_ns
        waits.append(
            Wait(
                failures,
                waited_ms,
                may_be_shorter=sequence.kind is Kind.PRODUCE and before.broker != after.broker,
                may_be_longer=any(ended_ns <= last_ns for last_ns in older),
            )
        )
        failures += 1
    return Track(sequence, repetition, waits)


def _older_of_partition(sequence: AttemptSequence, others: Sequence[AttemptSequence]) -> list[int]:
    """Of the batches that have to go before this one, when they were last sent."""
    if sequence.kind is not Kind.PRODUCE:
        return []
    where, first_ns = partition_of(sequence), sequence.attempts[0].at_ns
    return [
        other.attempts[-1].at_ns
        for other in others
        if other.kind is Kind.PRODUCE and other.attempts[0].at_ns < first_ns and partition_of(other) == where
    ]


def partition_of(sequence: AttemptSequence) -> str:
    """Of a batch, TOPIC-PARTITION."""
    return sequence.key.partition("@")[0].partition("~")[0]


def most_telling(tracks: Sequence[Track]) -> list[Track]:
    """Those with the most attempts, as many as a report has room for."""
    return sorted(tracks, key=lambda track: -len(track.waits))[:_MOST_SERIES]
