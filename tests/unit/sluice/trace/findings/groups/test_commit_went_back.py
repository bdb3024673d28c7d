"""Committed offsets that decreased."""

import pytest

from sluice.journal_events import TopicPartition
from sluice.trace.findings.groups import commit_went_back as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found


def commit(journal: Journal, at_ms: float, offset: int, *, partition: int = 0, errors: tuple[int, ...] = ()) -> None:
    place = TopicPartition(topic="t", partition=partition, offset=offset)
    journal.request("OffsetCommit", at_ms, at_ms + 1, group_id="g", partitions=[place], errors=errors)


def commits(*offsets: int) -> Make:
    def make(journal: Journal) -> None:
        for at_ms, offset in enumerate(offsets, 1):
            commit(journal, at_ms, offset)

    return make


def by_another(journal: Journal) -> None:
    commit(journal, 1, 10)
    commit(journal.beside(client_id="other"), 2, 4)


def failed(journal: Journal) -> None:
    commit(journal, 1, 10)
    commit(journal, 2, 4, errors=(25,))


def of_another_partition(journal: Journal) -> None:
    commit(journal, 1, 10)
    commit(journal, 2, 4, partition=1)


def test_a_commit_that_went_back_is_reported_once() -> None:
    (one,) = found(find, commits(5, 10, 3, 2))
    assert one.title == "Group g committed t-0 back from 10 to 3"
    assert "7 records" in one.text


def test_the_clients_are_named() -> None:
    (one,) = found(find, by_another)
    assert "Client other committed offset 4" in one.text
    assert "after client app had committed 10" in one.text


SILENT = {
    "forward": commits(1, 1, 2),
    "an unknown offset": commits(5, -1, 6),
    "a failed commit": failed,
    "another partition": of_another_partition,
}


@pytest.mark.parametrize("make", SILENT.values(), ids=SILENT)
def test_silent(make: Make) -> None:
    assert not found(find, make)
