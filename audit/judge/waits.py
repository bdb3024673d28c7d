"""What was waited in a sequence of attempts, and after how many failures in a row: what rules of backoff are about."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from sluice.audit.judge.model.attempts import Attempt, AttemptSequence, Kind, Outcome
from sluice.audit.judge.model.verdict import Series

from .expected import Backoff, Tolerance

_NS_PER_MS = 1e6
_MOST_SERIES = 12
# Who is told to join again, or with which member id, has nothing to wait for: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
# REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED.
_JOINING = (Kind.JOIN_GROUP, Kind.SYNC_GROUP)
_AGAIN_AT_ONCE = frozenset((22, 25, 27, 79))
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


def tracks(found: Iterable[AttemptSequence], repetition: int = 0) -> list[Track]:
    """The waits of sequences of one run, which are in the order of their first attempts."""
    made: list[Track] = []
    last_ns: dict[str, int] = {}  # by partition: until when batches were sent that go before those to come
    for sequence in found:
        where = partition_of(sequence) if sequence.kind is Kind.PRODUCE else ""
        made.append(track(sequence, repetition, held_up_until_ns=last_ns.get(where, 0)))
        if where:
            last_ns[where] = max(last_ns.get(where, 0), sequence.attempts[-1].at_ns)
    return made


def track(sequence: AttemptSequence, repetition: int = 0, *, held_up_until_ns: int = 0) -> Track:
    """The waits of a sequence. Until `held_up_until_ns` something had to go first."""
    waits: list[Wait] = []
    failures = 0
    for (before, after), waited_ms in zip(pairwise(sequence.attempts), sequence.gaps_ms(), strict=True):
        failures = 0 if before.outcome is Outcome.SUCCEEDED else failures
        waits.append(
            Wait(
                failures,
                waited_ms,
                may_be_shorter=_may_come_at_once(sequence, before, after, failures),
                may_be_longer=ended_ns(before) <= held_up_until_ns or _needs_connection(sequence, before),
            )
        )
        failures += 1
    return Track(sequence, repetition, waits)


def _may_come_at_once(sequence: AttemptSequence, before: Attempt, after: Attempt, failures: int) -> bool:
    if sequence.kind is Kind.PRODUCE:
        return before.broker != after.broker  # it has learnt of a new leader
    # A consumer that has its partitions joins beside reading, with no time of its own to sleep in: where it reads on,
    # Kafka's sends the first retry at once (AbstractCoordinator.joinGroupIfNeeded, with an expired timer).
    return sequence.kind in _JOINING and (failures == 0 or not _AGAIN_AT_ONCE.isdisjoint(before.error_codes))


def _needs_connection(sequence: AttemptSequence, before: Attempt) -> bool:
    """Whether there had to be another connection first, which has a backoff of its own."""
    return sequence.kind is not Kind.CONNECT and before.outcome is not Outcome.ERROR


def ended_ns(attempt: Attempt) -> int:
    """When it was over, as far as anybody knows."""
    return attempt.at_ns if attempt.ended_ns is None else attempt.ended_ns


def partition_of(sequence: AttemptSequence) -> str:
    """Of a batch, TOPIC-PARTITION."""
    return sequence.key.partition("@")[0].partition("~")[0]


def longest_tracks(found: Sequence[Track]) -> list[Track]:
    """Those with the most attempts, as many as a report has room for."""
    return sorted(found, key=lambda each: -len(each.waits))[:_MOST_SERIES]
