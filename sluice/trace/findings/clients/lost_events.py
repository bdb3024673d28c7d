"""Events that the journal no longer had."""

from collections.abc import Iterator

from sluice.journal_events import Gap
from sluice.trace.described import counted
from sluice.trace.findings.history import Found, History, seqs


def find(history: History) -> Iterator[Found]:
    gaps = history.of(Gap)
    if gaps:
        lost = sum(gap.lost for gap in gaps)
        title = f"The journal no longer had {counted(lost, 'event')} before the first"
        text = "The journal keeps the last events. Increase sluice.journal.events to see the start."
        yield Found("lost-events", "warning", title, text, gaps[0].at_ns, seqs(gaps))
