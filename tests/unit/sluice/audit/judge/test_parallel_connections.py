"""Grouping of reconnect attempts of a client with several simultaneous connections."""

from collections.abc import Sequence

import pytest

from sluice.audit.judge.expected import Backoff
from sluice.audit.judge.model.attempts import Attempt, AttemptSequence, Kind, Outcome
from sluice.audit.judge.parallel_connections import separate_lanes
from tests.support.journals import ns

BACKOFF = Backoff(50, 1000)
Tried = tuple[float, float | None, Outcome]
FAILED, WORKED = Outcome.DISCONNECTED, Outcome.SUCCEEDED


def row(*tried: Tried, key: str = "app to broker 1 as bootstrap") -> AttemptSequence:
    """Return connections from their start and end times in ms."""
    attempts = [
        Attempt(at_ns=ns(at_ms), ended_ns=None if end_ms is None else ns(end_ms), outcome=outcome, broker=1)
        for at_ms, end_ms, outcome in tried
    ]
    return AttemptSequence(kind=Kind.CONNECT, key=key, attempts=attempts)


def waits(found: Sequence[AttemptSequence]) -> list[list[float]]:
    return [[round(gap) for gap in sequence.gaps_ms()] for sequence in found]


def test_single_connections_are_unchanged() -> None:
    alone = row((0, 1, FAILED), (21, 22, FAILED), (42, 43, FAILED))
    assert separate_lanes([alone], BACKOFF, 2) == [alone]


def test_two_mixed_sequences_keep_their_backoffs() -> None:
    """One connection is lost at 1, the other at 51; their next attempts come 50 and 100 ms after their last ones."""
    mixed = [
        row((0, 1, FAILED), (101, 102, FAILED), (152, 153, FAILED)),
        row((0, 51, FAILED), (51, 52, FAILED), (202, 203, FAILED)),
    ]
    assert waits(mixed) == [[100, 50], [0, 150]]
    assert waits(separate_lanes(mixed, BACKOFF, 2)) == [[50, 100], [50, 100]]


def test_attempt_too_early_for_any_sequence_stays_too_early() -> None:
    storming = [
        row((0, 10, FAILED), (20, 30, FAILED), (40, 50, FAILED)),
        row((5, 15, FAILED), (25, 35, FAILED), (45, 55, FAILED), key="app to broker 1 as broker"),
    ]
    found = separate_lanes(storming, BACKOFF, 2)
    assert sum(len(sequence.attempts) for sequence in found) == 6
    assert max(max(each) for each in waits(found)) <= 20, "no wait is invented"


def test_no_wait_follows_a_close_by_the_client() -> None:
    at_once = row((0, 100, WORKED))
    beside = row((0, 300, FAILED), key="app to broker 1 as broker")
    following = row((110, 120, FAILED), (165, 170, FAILED), key="app to broker 1 as broker #2")
    assert waits(separate_lanes([at_once, beside, following], BACKOFF, 2)) == [[], [], [45]]


@pytest.mark.parametrize("end_ms", [None, 1000.0], ids=["to the end", "for long"])
def test_open_connection_has_no_successor(end_ms: float | None) -> None:
    kept = row((0, end_ms, WORKED))
    tries = row((1, 2, FAILED), (52, 53, FAILED), (153, 154, FAILED), key="app to broker 1 as broker")
    assert waits(separate_lanes([kept, tries], BACKOFF, 2)) == [[], [50, 100]]


def test_connection_that_the_client_gave_up_is_not_open_until_the_broker_notices() -> None:
    """A client that reconnects at once has one connection, not two that alternate."""
    silent = row(*((3000.0 * number, 3000.0 * (number + 1) + 1, Outcome.ABANDONED) for number in range(5)))
    assert waits(separate_lanes([silent], BACKOFF, 2)) == [[-1, -1, -1, -1]]


def test_clients_are_not_mixed() -> None:
    one = row((0, 1, FAILED), (20, 21, FAILED), key="one to broker 1 as bootstrap")
    other = row((0, 1, FAILED), (60, 61, FAILED), key="other to broker 1 as bootstrap")
    assert separate_lanes([one, other], BACKOFF, 2) == [one, other]
