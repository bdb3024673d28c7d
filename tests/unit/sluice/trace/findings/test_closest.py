"""The request that meets most conditions."""

from sluice.journal_events import Request
from sluice.trace.findings.faults import Condition, closest
from tests.support.journals import Journal


def condition(name: str, value: str) -> Condition:
    return Condition(name, value, lambda one: str(getattr(one, name)), lambda one: str(getattr(one, name)) == value)


def requests() -> list[Request]:
    journal = Journal()
    journal.request("Metadata", 1, 2)
    journal.request("Produce", 3, 4)
    journal.beside(client_id="shop").request("Metadata", 5, 6)
    return [event for event in journal.events if isinstance(event, Request)]


def test_another_api_counts_twice() -> None:
    found = closest(requests(), [condition("api", "Produce"), condition("client_id", "shop")])
    assert found is not None
    assert (found.request.api, found.differences()) == ("Produce", "client_id is app, expected shop")


def test_the_first_of_equals() -> None:
    found = closest(requests(), [condition("client_id", "another")])
    assert found is not None
    assert found.request.received_ns == requests()[0].received_ns


def test_no_requests() -> None:
    assert closest([], [condition("api", "Produce")]) is None
