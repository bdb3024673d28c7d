"""Chains of attempts."""

import pytest

from sluice.journal_events import Request
from sluice.trace.attempts import Attempts
from tests.support.journals import Journal
from tests.support.trace_findings import Make

NOT_LEADER = 6


def batches(*failed: bool, sequence: int = -1, records: tuple[str, ...] = ()) -> Make:
    def make(journal: Journal) -> None:
        for at_ms, has_failed in enumerate(failed, 1):
            errors = [NOT_LEADER] if has_failed else []
            journal.batch(at_ms, at_ms + 0.5, sequence=sequence, records=records, errors=errors)

    return make


def lost(journal: Journal) -> None:
    journal.batch(1, ended_ms=2)
    journal.batch(3, 4)


def several(journal: Journal) -> None:
    journal.batch(1, 2, errors=[NOT_LEADER])
    journal.beside(client_id="other").batch(3, 4)
    journal.batch(5, 6, partition=1)
    journal.request("Metadata", 7, 8)
    journal.batch(9, 10)


def groups(journal: Journal) -> None:
    for at_ms, group_id in enumerate(("g", "h", "g"), 1):
        journal.request("JoinGroup", at_ms, at_ms + 0.5, group_id=group_id, errors=[15])


def later(journal: Journal) -> None:
    journal.batch(1, 2, errors=[NOT_LEADER])
    journal.batch(70_000, 70_001)


CASES = {
    "a minute later": (later, []),
    "a retry after an error": (batches(True, False), [(0, 1)]),
    "two retries": (batches(True, True, False, False), [(0, 1), (1, 2)]),
    "a retry without a response": (lost, [(0, 1)]),
    "the next batch after a success": (batches(False, False), []),
    "the same sequence after a success": (batches(False, False, sequence=3), [(0, 1)]),
    "another client, partition or API": (several, [(0, 4)]),
    "another group": (groups, [(0, 2)]),
}


@pytest.mark.parametrize(("make", "links"), CASES.values(), ids=CASES)
def test_links(make: Make, links: list[tuple[int, int]], journal: Journal) -> None:
    make(journal)
    attempts = Attempts()
    for place, event in enumerate(journal.events):
        assert isinstance(event, Request)
        attempts.add(place, event)
    assert attempts.links == links
    chained = {place for link in links for place in link}
    assert {place for place in range(6) if attempts.chain_of(place) >= 0} == chained


def test_other_records_are_another_request(journal: Journal) -> None:
    for at_ms, records in enumerate((["a"], ["b"], ["a"]), 1):
        journal.batch(at_ms, at_ms + 0.5, records=records, errors=[NOT_LEADER])
    attempts = Attempts()
    for place, event in enumerate(journal.events):
        assert isinstance(event, Request)
        attempts.add(place, event)
    assert attempts.links == [(0, 2)]
