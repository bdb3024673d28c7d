"""The findings of handmade journals, as tests of traces compare them."""

from collections.abc import Callable, Iterable

from sluice.trace.findings.history import Found, History
from tests.support.journals import Journal, ns

Make = Callable[[Journal], object]
AFTER_MS = 1_000  # the trace ends this long after the last event


def history_of(make: Make, *, after_ms: float = AFTER_MS, failed_ms: float | None = None) -> History:
    """Return the history of the events that `make` adds to a journal of client `app`."""
    journal = Journal()
    make(journal)
    events = journal.events
    end_ns = max((event.at_ns for event in events), default=ns(0))
    failed_ns = None if failed_ms is None else ns(failed_ms)
    return History(events, ns(0), end_ns + round(after_ms * 1_000_000), failed_ns)


def found(
    find: Callable[[History], Iterable[Found]],
    make: Make,
    *,
    after_ms: float = AFTER_MS,
    failed_ms: float | None = None,
) -> list[Found]:
    return list(find(history_of(make, after_ms=after_ms, failed_ms=failed_ms)))


def kinds(findings: Iterable[Found]) -> list[tuple[str, str]]:
    """Return id and severity of each finding."""
    return [(one.id, one.severity) for one in findings]
