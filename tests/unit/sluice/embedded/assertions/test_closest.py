"""The event that comes closest to an expectation."""

from collections.abc import Callable, Sequence

import pytest

from sluice.embedded.assertions.closest import closest
from sluice.journal_events import AnyEvent, Request
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.virtual_broker import VirtualBroker

Wanted = dict[str, str | int | Sequence[str] | Sequence[int]]


@pytest.fixture(scope="module")
def events() -> list[AnyEvent]:
    """Return the events of two clients: a sends Metadata, b sends ApiVersions and Metadata."""
    broker = VirtualBroker("sluice.journal.events=100")
    first, second = broker.client("a"), broker.client("b")
    first.call(MetadataRequest(), 9)
    second.call(ApiVersionsRequest(), 0)
    second.call(MetadataRequest(), 8)
    return broker.journal.events()


# What was wanted -> the closest request, and the differences.
CASES: dict[str, tuple[Wanted, Callable[[Request], object] | None, str, str]] = {
    "client id differs": (
        {"api": "Metadata", "client_id": "c"}, None, "b Metadata v8", "client_id is 'b', expected 'c'",
    ),
    "API differs": (
        {"api": ("Fetch", "Produce"), "client_id": "a"}, None, "a Metadata v9",
        "api is 'Metadata', expected 'Fetch' or 'Produce'",
    ),
    "the API is more important than the client id": (
        {"api": "ApiVersions", "client_id": "a"}, None, "b ApiVersions v0", "client_id is 'b', expected 'a'",
    ),
    "two of three differ": (
        {"api": "Produce", "client_id": "a", "broker": 2}, None, "a Metadata v9",
        "api is 'Metadata', expected 'Produce', broker is 1, expected 2",
    ),
    "only the predicate differs": (
        {"api": "Metadata", "client_id": "a"}, lambda each: each.version == 8, "a Metadata v9", "`where` is false",
    ),
    "only a predicate is wanted": ({}, lambda request: False, "b Metadata v8", "`where` is false"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_closest_event_differs_least(
    case: tuple[Wanted, Callable[[Request], object] | None, str, str], events: Sequence[AnyEvent]
) -> None:
    wanted, where, event, differences = case
    line, reason = closest(events, Request, wanted, where)
    assert f" {event} (" in line
    assert reason.strip() == differences


@pytest.mark.parametrize("wanted", [{"api": "Produce"}, {"api": "Produce", "client_id": "c"}])
def test_no_event_is_close_if_all_differ_in_everything(wanted: Wanted, events: Sequence[AnyEvent]) -> None:
    assert closest(events, Request, wanted) == []


def test_events_that_were_wanted_are_not_close() -> None:
    assert closest([], Request, {"api": "Metadata"}) == []


def test_predicate_sees_only_events_with_the_wanted_values(events: Sequence[AnyEvent]) -> None:
    def is_version_8(request: Request) -> bool:
        assert request.api == "Metadata"
        return request.version == 9

    assert closest(events, Request, {"api": "Metadata"}, is_version_8)[1:] == ["  `where` is false"]
