"""Groups without committed offsets."""

import pytest

from sluice.journal_events import TopicPartition
from sluice.trace.findings.consumers import without_offsets as find
from tests.support.journals import Journal, fetched
from tests.support.trace_findings import Make, found


def lookup(offset: int, *, group_id: str = "g2", topic: str = "t", commits: bool = True) -> Make:
    def make(journal: Journal) -> None:
        if commits:
            place = TopicPartition(topic="t", partition=0, offset=5)
            journal.beside(client_id="other").request("OffsetCommit", 1, 2, group_id="g", partitions=[place])
        place = TopicPartition(topic=topic, partition=0, offset=offset)
        journal.request("OffsetFetch", 6, 7, group_id=group_id, partitions=[place])

    return make


def reads(*, commits: bool = False, again: bool = False) -> Make:
    def make(journal: Journal) -> None:
        journal.request("JoinGroup", 1, 2, group_id="g")
        journal.request("Fetch", 5, 6, partitions=[fetched("t", 0, 0, 9, 1)])
        if again:
            lookup(-1, group_id="g", commits=False)(journal.beside(client_id="second"))
        if commits:
            journal.request("OffsetCommit", 7, 8, group_id="g", partitions=[TopicPartition(topic="t", partition=0)])

    return make


CASES = {
    "another group has them": (lookup(-1), 0, ["Group g2 has no committed offsets of t, but group g has some"]),
    "it has offsets": (lookup(5), 0, []),
    "no group has them": (lookup(-1, commits=False), 0, []),
    "the same group": (lookup(-1, group_id="g"), 0, []),
    "of another topic": (lookup(-1, topic="u"), 0, []),
    "reads without a commit": (reads(), 7_000, ["Group g reads, but never committed an offset"]),
    "reads for a short time": (reads(), 3_000, []),
    "reads again without offsets": (reads(again=True), 0, ["Group g reads, but never committed an offset"]),
    "reads and commits": (reads(commits=True), 7_000, []),
}


@pytest.mark.parametrize(("make", "after_ms", "titles"), CASES.values(), ids=CASES)
def test_groups(make: Make, after_ms: float, titles: list[str]) -> None:
    assert [one.title for one in found(find, make, after_ms=after_ms)] == titles
