"""Fact 5 about clients: not every one says who it is."""

from sluice.audit.judge.observer.identity import identities
from tests.support.audit_events import Journal


def asked(journal: Journal) -> Journal:
    journal.request("ApiVersions", 0, 1, version=3)
    journal.request("Metadata", 2, 3, version=12)
    journal.request("Metadata", 4, 5, version=12)
    journal.request("Fetch", 6, 7, version=11)
    return journal


def test_one_that_names_its_software_is_known_by_that() -> None:
    (one,) = identities(asked(Journal(client_id="shop", software=("apache-kafka-java", "4.0.0"))).events)
    assert (one.client_id, one.software, one.host) == ("shop", "apache-kafka-java 4.0.0", "10.0.0.1")


def test_any_is_known_by_what_it_asks_for_in_which_order() -> None:
    (one,) = identities(asked(Journal(client_id="")).events)
    assert (one.software, one.fingerprint) == ("", "ApiVersions.3 Metadata.12 Fetch.11")
