"""What fault rules did."""

from typing import Any

from sluice.journal_events import Fault
from sluice.trace.findings.faults import rule_hits as find
from tests.support.journals import Journal
from tests.support.trace_findings import found


def hits(journal: Journal) -> None:
    for at_ms in (1, 2):
        journal.request("Produce", at_ms, at_ms + 0.5, rule_id="r", errors=[7])
        request: dict[str, Any] = {"api": "Produce", "version": 9, "correlation_id": 1}
        journal.of_client(Fault, at_ms, rule_id="r", action="error", **request)


def test_hits_are_counted_by_api_and_client() -> None:
    (one,) = found(find, hits)
    assert one.title == "Fault rule r fired 2 times: error"
    assert "2 Produce of app" in one.text
    assert len(one.seqs) == 4  # requests and hits


def test_silent_without_hits() -> None:
    assert not found(find, lambda journal: journal.request("Produce", 1, 2))
