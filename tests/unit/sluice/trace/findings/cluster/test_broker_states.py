"""Brokers that were down."""

import pytest

from sluice.journal_events import BrokerState
from sluice.trace.findings.brokers import broker_states as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found


def states(*names: str) -> Make:
    def make(journal: Journal) -> None:
        for number, name in enumerate(names):
            journal.of_cluster(BrokerState, 1000 * number, broker=2, state=name)

    return make


CASES = {
    "stopped until the end": (states("stopped"), 5_000, ["Broker 2 was stopped at +0.000 s until the end"]),
    "started again": (states("stopped", "running"), 5_000, ["Broker 2 was stopped at +0.000 s for 1 s"]),
    "isolated": (states("isolated"), 5_000, ["Broker 2 was isolated at +0.000 s until the end"]),
    "stopped with the test": (states("stopped"), 500, []),
    "only fenced and unfenced": (states("fenced", "unfenced"), 5_000, []),
}


@pytest.mark.parametrize(("make", "after_ms", "titles"), CASES.values(), ids=CASES)
def test_brokers_that_were_down(make: Make, after_ms: float, titles: list[str]) -> None:
    assert [one.title for one in found(find, make, after_ms=after_ms)] == titles
