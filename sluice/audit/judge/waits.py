"""The waits in a sequence of attempts, and the number of failures in a row before each."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from sluice.audit.judge.model.attempts import Attempt, AttemptSequence, Kind, Outcome
from sluice.audit.judge.model.verdict import Series

from .expected import Backoff, Tolerance

_NS_PER_MS = 1e6
_MOST_SERIES = 12
# These errors require the client to rejoin at once: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS,
# MEMBER_ID_REQUIRED.
_JOINING = (Kind.JOIN_GROUP, Kind.SYNC_GROUP)
_AGAIN_AT_ONCE = frozenset((22, 25, 27, 79))
# The end of the observation may cut off one batch, but not several after the same number of attempts.
_SURELY_GIVEN_UP = 4
NO_BOUND_MS = 1e12


class Wait(NamedTuple):
    """The wait before one attempt.

    failures: failures in a row before it, less one
    may_be_shorter: the attempt needs no backoff: it goes to another broker, or rejoins at once
    may_be_longer: the attempt also had to wait for another batch, or for a connection, or was read late
    """

    failures: int
    waited_ms: float
    may_be_shorter: bool = False
    may_be_longer: bool = False


class Track(NamedTuple):
    sequence: AttemptSequence
    repetition: int
    waits: list[Wait]
    before: int = 0  # attempts of the operation that precede the first one here

    def rows(self) -> list[list[float]]:
        rows: list[list[float]] = []
        for wait in self.waits:
            if wait.failures == 0 or not rows:
                rows.append([])
            rows[-1].append(wait.waited_ms)
        return rows

    def series(self, backoff: Backoff | None, tolerance: Tolerance) -> Series:
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
    """Return the waits of each sequence, up to its first success.

    Sequences with an attempt that may have been sent before the last one ended, because the broker read it late, are
    left out.
    """
    made: list[Track] = []
    last_ns: dict[str, int] = {}  # by partition: the last attempt of earlier batches
    for sequence in map(_until_success, found):
        if _is_read_late(sequence):
            continue
        where = partition_of(sequence) if sequence.kind is Kind.PRODUCE else ""
        made.append(track(sequence, repetition, blocked_until_ns=last_ns.get(where, 0)))
        if where:
            last_ns[where] = max(last_ns.get(where, 0), sequence.attempts[-1].at_ns)
    return made


def _until_success(sequence: AttemptSequence) -> AttemptSequence:
    """Leave out what follows a success, except for connections, which are lost after it."""
    ends = (number for number, each in enumerate(sequence.attempts, 1) if each.outcome is Outcome.SUCCEEDED)
    end = len(sequence.attempts) if sequence.kind is Kind.CONNECT else next(ends, len(sequence.attempts))
    return (
        sequence
        if end == len(sequence.attempts)
        else msgspec.structs.replace(sequence, attempts=sequence.attempts[:end])
    )


def _is_read_late(sequence: AttemptSequence) -> bool:
    return any(
        before.ended_ns is not None and after.unread_since_ns is not None and after.unread_since_ns < before.ended_ns
        for before, after in pairwise(sequence.attempts)
    )


def track(sequence: AttemptSequence, repetition: int = 0, *, blocked_until_ns: int = 0) -> Track:
    waits: list[Wait] = []
    failures = 0
    for (before, after), waited_ms in zip(pairwise(sequence.attempts), sequence.gaps_ms(), strict=True):
        failures = 0 if before.outcome is Outcome.SUCCEEDED else failures
        waits.append(
            Wait(
                failures,
                waited_ms,
                may_be_shorter=_may_come_at_once(sequence, before, after, failures),
                may_be_longer=ended_ns(before) <= blocked_until_ns
                or after.unread_since_ns is not None
                or _needs_connection(sequence, before),
            )
        )
        failures += 1
    return Track(sequence, repetition, waits)


def _may_come_at_once(sequence: AttemptSequence, before: Attempt, after: Attempt, failures: int) -> bool:
    if sequence.kind is Kind.PRODUCE:
        return before.broker != after.broker  # the client has learned of a new leader
    # A consumer that keeps its partitions sends the first retry of a join without a wait
    # (AbstractCoordinator.joinGroupIfNeeded, with an expired timer).
    return sequence.kind in _JOINING and (failures == 0 or not _AGAIN_AT_ONCE.isdisjoint(before.error_codes))


def _needs_connection(sequence: AttemptSequence, before: Attempt) -> bool:
    return sequence.kind is not Kind.CONNECT and before.outcome is not Outcome.ERROR


def ended_ns(attempt: Attempt) -> int:
    return attempt.at_ns if attempt.ended_ns is None else attempt.ended_ns


def partition_of(sequence: AttemptSequence) -> str:
    return sequence.key.partition("@")[0].partition("~")[0]


def place_of(found: Iterable[Track], wanted: Wait) -> str:
    for each in found:
        for number, wait in enumerate(each.waits, each.before + 1):
            if wait is wanted:
                return f"run {each.repetition + 1}, attempts {number} and {number + 1} of {each.sequence.key}"
    return ""


def gives_up_after(found: Sequence[Track]) -> int:
    """Return the number of attempts after which several batches were given up, or 0 if another batch had more."""
    most = max((len(each.sequence.attempts) for each in found), default=0)
    longest = [each.sequence.attempts[-1] for each in found if len(each.sequence.attempts) == most]
    given_up = sum(attempt.outcome is Outcome.ERROR for attempt in longest)
    return most if given_up == len(longest) >= _SURELY_GIVEN_UP else 0


def longest_tracks(found: Sequence[Track]) -> list[Track]:
    return sorted(found, key=lambda each: -len(each.waits))[:_MOST_SERIES]
