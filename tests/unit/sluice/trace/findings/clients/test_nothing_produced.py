"""Producers that sent no record."""

import pytest

from sluice.journal_events import TopicPartition
from sluice.trace.findings.clients import nothing_produced as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found

TOPIC = [TopicPartition(topic="t", partition=-1)]


def sends(*apis: str) -> Make:
    def make(journal: Journal) -> None:
        for at_ms, api in enumerate(apis, 1):
            journal.request(api, at_ms, at_ms + 0.5, partitions=TOPIC if api == "Metadata" else ())

    return make


def reader_of_the_journal(journal: Journal) -> None:
    journal.beside(client_id="sluice-journal").request("ApiVersions", 1, 2)


CASES = {
    "a reader of the journal": (reader_of_the_journal, []),
    "looked up a topic": (sends("ApiVersions", "Metadata"), ["Client app produced nothing to t"]),
    "initialized a producer id": (sends("InitProducerId"), ["Client app produced nothing"]),
    "produced": (sends("Metadata", "Produce"), []),
    "a consumer": (sends("Metadata", "Fetch"), []),
    "an admin client": (sends("Metadata", "CreateTopics"), []),
    "only connected": (sends("ApiVersions"), ["Client app produced nothing"]),
    "another client without a topic": (sends("ApiVersions", "FindCoordinator"), []),
}


@pytest.mark.parametrize(("make", "titles"), CASES.values(), ids=CASES)
def test_producers(make: Make, titles: list[str]) -> None:
    assert [one.title for one in found(find, make)] == titles
