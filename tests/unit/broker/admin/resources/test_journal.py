"""`/api/v1/journal` of the admin port."""

import pytest

from sluice.broker.journal.reader import API_NAMES
from sluice.journal_events import KINDS, schema
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.http import Admin
from tests.support.records import produce
from tests.support.virtual_broker import JOURNAL, broker_with_topic

PATH = "/api/v1/journal"


@pytest.fixture
def admin() -> Admin:
    """Return the admin port of a broker with a connection, a Metadata and a Produce event each of clients a and b."""
    broker = broker_with_topic(JOURNAL)
    for name in ("a", "b"):
        client = broker.client(name)
        client.send(MetadataRequest(), 9)
        client.send(produce(9), 9)
    return Admin(broker=broker)


QUERIES = {
    "all": ("", [1, 2, 3, 4, 5, 6], 6),
    "of a client": ("client_id=a", [2, 3], 6),
    "of two clients": ("client_id=a&client_id=b", [2, 3, 5, 6], 6),
    "of a kind": ("kind=connection-opened", [1, 4], 6),
    "of an API": ("api=Produce", [3, 6], 6),
    "of a client and an API": ("api=Produce&client_id=b", [6], 6),
    "after an event": ("after=4", [5, 6], 6),
    "last matching event": ("last=1&client_id=a", [3], 6),
    "limit": ("limit=2", [1, 2], 2),
    "of an unknown broker": ("broker=9", [], 6),
}


@pytest.mark.parametrize(("query", "seqs", "after"), QUERIES.values(), ids=QUERIES)
def test_events_match_the_query(admin: Admin, query: str, seqs: list[int], after: int) -> None:
    status, response = admin.send(PATH, query=query)
    assert (status, [one["seq"] for one in response["events"]]) == (200, seqs)
    assert (response["after"], response["last"]) == (after, 6)


def test_journal_requests_are_not_in_the_journal(admin: Admin) -> None:
    admin.send(PATH)
    assert admin.send(PATH)[1]["last"] == 6


def test_schema_is_served(admin: Admin) -> None:
    assert admin.send(f"{PATH}/schema") == (200, schema())


ACCEPTED = "client_id, api, kind, broker, after, last, limit, follow"
WRONG = {
    "unknown parameter": ("colour=red", f"colour: unknown parameter; expected {ACCEPTED}"),
    "unknown kind": ("kind=dream", f"kind: expected one of {', '.join(KINDS)}, got dream"),
    "unknown API": ("api=Prodcue", f"api: expected one of {', '.join(API_NAMES)}, got Prodcue. Did you mean Produce?"),
    "broker id not a number": ("broker=x", "broker: expected a node id, got x"),
    "event number not a number": ("after=x", "after: expected a whole number, got 'x'"),
    "limit too high": ("limit=10001", "limit: expected a whole number <= 10000, got '10001'"),
    "after and last": ("after=1&last=1", "after and last exclude each other; set one of them"),
    "invalid boolean": ("follow=maybe", "follow: expected true or false, got 'maybe'"),
}


@pytest.mark.parametrize(("query", "problem"), WRONG.values(), ids=WRONG)
def test_invalid_parameter_is_rejected_with_the_accepted_values(admin: Admin, query: str, problem: str) -> None:
    assert admin.send(PATH, query=query) == (400, {"error": problem})


def test_disabled_journal_is_not_found() -> None:
    error = "there is no journal: sluice.journal.events is 0; set it to 16384, for example"
    assert Admin().send(PATH) == (404, {"error": error})


@pytest.mark.parametrize("path", [PATH, f"{PATH}/schema"])
def test_journal_requires_the_token(path: str) -> None:
    admin = Admin(JOURNAL, "sluice.admin.token=secret")
    assert admin.send(path)[0] == 401
    assert admin.send(path, token="secret")[0] == 200
