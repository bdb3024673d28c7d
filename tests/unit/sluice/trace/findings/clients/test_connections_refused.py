"""Refused connections."""

from sluice.journal_events import ConnectionRefused
from sluice.trace.findings.clients import connections_refused as find
from tests.support.journals import Journal
from tests.support.trace_findings import found


def test_refusals_are_grouped_by_reason() -> None:
    def make(journal: Journal) -> None:
        for at_ms, reason in ((1, "limit a"), (2, "limit b"), (3, "limit a")):
            journal.of_client(ConnectionRefused, at_ms, reason=reason, throttle_time_ms=0)

    titles = [one.title for one in found(find, make)]
    assert titles == ["2 connections refused: limit a", "1 connection refused: limit b"]


def test_silent_without_refusals() -> None:
    assert not found(find, lambda journal: journal.request("Produce", 1, 2))


def test_the_connections_that_hold_the_limit_are_named() -> None:
    def make(journal: Journal) -> None:
        journal.connection(0, 20, answers=True)
        journal.connection(1, 2, answers=True)
        journal.of_client(ConnectionRefused, 5, reason="limit", throttle_time_ms=0, peer="10.0.0.1:9")

    (one,) = found(find, make)
    assert one.text.endswith("Open connections from the same address at the first refusal: #1 of client app.")
