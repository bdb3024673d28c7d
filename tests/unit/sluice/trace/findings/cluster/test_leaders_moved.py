"""Leaders that moved."""

import pytest

from sluice.journal_events import LeaderChange
from sluice.trace.findings.brokers import leaders_moved as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found


def change(before: int, after: int, topic: str = "t") -> Make:
    def make(journal: Journal) -> None:
        fields = {"topic": topic, "partition": 0, "leader_epoch": 1, "isr": [1], "lost_records": 0}
        journal.of_cluster(LeaderChange, 1, broker=after, before=before, **fields)

    return make


CASES = {
    "from broker to broker": (change(1, 2), ["The leader moved at +0.001 s: t-0 from broker 1 to 2"]),
    "the first leader": (change(-1, 2), []),
    "no leader": (change(1, -1), []),
    "of an internal topic": (change(1, 2, "__consumer_offsets"), []),
}


@pytest.mark.parametrize(("make", "titles"), CASES.values(), ids=CASES)
def test_moves(make: Make, titles: list[str]) -> None:
    assert [one.title for one in found(find, make)] == titles
