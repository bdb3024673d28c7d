"""Acquisition locks that timed out."""

from typing import Any

from sluice.journal_events import AcquisitionTimeout
from sluice.trace.findings.groups import acquisition_timeouts as find
from tests.support.journals import Journal
from tests.support.trace_findings import found


def test_records_are_added_up_by_topic() -> None:
    def make(journal: Journal) -> None:
        for topic, last in (("a", 4), ("b", 0), ("a", 1)):
            place: dict[str, Any] = {"group_id": "g", "member_id": "m", "topic": topic, "partition": 0}
            journal.of_cluster(AcquisitionTimeout, 1, first_offset=0, last_offset=last, **place)

    assert [one.title for one in found(find, make)] == [
        "Group g did not acknowledge 7 records of a in time",
        "Group g did not acknowledge 1 record of b in time",
    ]


def test_silent_without_timeouts() -> None:
    assert not found(find, lambda journal: journal.request("ShareFetch", 1, 2))
