"""Events that the journal no longer had."""

from sluice.journal_events import Gap
from sluice.trace.findings.clients import lost_events as find
from tests.support.journals import Journal
from tests.support.trace_findings import found


def test_gaps_are_added_up() -> None:
    def make(journal: Journal) -> None:
        for at_ms in (1, 2):
            journal.of_cluster(Gap, at_ms, lost=1_000)

    (one,) = found(find, make)
    assert one.title == "The journal no longer had 2,000 events before the first"


def test_silent_without_gaps() -> None:
    assert not found(find, lambda journal: journal.request("Produce", 1, 2))
