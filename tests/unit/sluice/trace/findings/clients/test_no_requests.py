"""Traces without requests."""

import pytest

from sluice.trace.findings.clients import no_requests as find
from tests.support.trace_findings import Make, found

CASES = {
    "no client": (lambda journal: None, ["No client connected"]),
    "a connection": (lambda journal: journal.connection(1, 2), ["No client sent a Kafka request"]),
    "a request": (lambda journal: journal.request("Produce", 1, 2), []),
}


@pytest.mark.parametrize(("make", "titles"), CASES.values(), ids=CASES)
def test_requests(make: Make, titles: list[str]) -> None:
    assert [one.title for one in found(find, make)] == titles
