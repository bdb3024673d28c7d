"""Clients that were not closed before the brokers stopped."""

import pytest

from sluice.trace.findings.clients import unclosed_client as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found


def connections(*ends: tuple[float, bool], reason: str = "", last_ms: float = 2) -> Make:
    """Return connections that end at a time, by the client or the broker, and requests on the first."""

    def make(journal: Journal) -> None:
        for end_ms, by_client in ends:
            number = journal.connection(0, end_ms, by_client=by_client, reason=reason)
            journal.request("Metadata", 1, 2, connection=number)
        journal.request("Metadata", last_ms, last_ms + 1)

    return make


CASES = {
    "closed by the brokers": (connections((50, False), (60, False)), ["Client app was not closed"]),
    "closed by the client": (connections((50, True), (60, True)), []),
    "one was closed by the client at the end": (connections((50, False), (60, True)), []),
    "a broker stopped before": (connections((50, False), (9_000, True)), []),
    "the client continued": (connections((50, False), last_ms=9_000), []),
    "the broker had a reason": (connections((50, False), reason="frame too large"), []),
}


@pytest.mark.parametrize(("make", "titles"), CASES.values(), ids=CASES)
def test_clients(make: Make, titles: list[str]) -> None:
    assert [one.title for one in found(find, make)] == titles
