"""Fact 5 about clients: some do not name their software."""

from sluice.audit.judge.observer.identity import identities
from tests.support.audit_events import Journal


def with_requests(journal: Journal) -> Journal:
    journal.request("ApiVersions", 0, 1, version=3)
    journal.request("Metadata", 2, 3, version=12)
    journal.request("Metadata", 4, 5, version=12)
    journal.request("Fetch", 6, 7, version=11)
    return journal


def test_client_with_a_software_name_is_identified_by_it() -> None:
    (one,) = identities(with_requests(Journal(client_id="shop", software=("apache-kafka-java", "4.0.0"))).events)
    assert (one.client_id, one.software, one.host) == ("shop", "apache-kafka-java 4.0.0", "10.0.0.1")


def test_client_is_also_identified_by_its_sequence_of_apis() -> None:
    (one,) = identities(with_requests(Journal(client_id="")).events)
    assert (one.software, one.fingerprint) == ("", "ApiVersions.3 Metadata.12 Fetch.11")
