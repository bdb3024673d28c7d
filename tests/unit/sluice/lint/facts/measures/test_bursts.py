"""Bursts of one source."""

from collections.abc import Iterable

import pytest

from sluice.journal_events import Gap
from sluice.lint.facts.measures.bursts import Burst

MS = 1_000_000


def burst(times_ms: Iterable[float], sources: int = 1) -> Burst:
    """Return a burst of 5 events within a second, after events at these times from sources in turn."""
    made = Burst(5, 1.0)
    for number, at_ms in enumerate(times_ms):
        made.add(Gap(seq=number, at_ns=round(at_ms * MS), broker=-1, lost=0), number % sources)
    return made


BURSTS = {
    "as many as needed": (range(0, 500, 100), 1, 400),
    "too few": (range(0, 400, 100), 1, 0),
    "too slow": (range(0, 3000, 300), 1, 0),
    "fast enough": (range(0, 3000, 200), 1, 800),
    "after a pause": ([0, 1500, 1600, 1700, 1800, 1900], 1, 400),
    "the fastest counts": ([0, 100, 200, 300, 400, 410, 420, 430, 440], 1, 40),
    "of two sources": (range(0, 500, 100), 2, 0),
}


@pytest.mark.parametrize(("times_ms", "sources", "lasted_ms"), BURSTS.values(), ids=BURSTS)
def test_burst(times_ms: Iterable[float], sources: int, lasted_ms: float) -> None:
    assert burst(times_ms, sources).fastest_ns == lasted_ms * MS


def test_all_events_are_counted() -> None:
    made = burst(range(0, 10_000, 500))
    assert (made.count, made.fastest_ns, made.examples) == (20, 0, [])


def test_words() -> None:
    assert burst(range(0, 500, 100)).in_words == "5 within 0.4 s"
