"""Fact 8 about clients: connections that must wait for a throttle, and requests already in flight."""

import pytest

from sluice.audit.judge.observer.throttles import throttled_spans
from tests.support.audit_events import Journal


def early(version: int, *came_ms: float, api: str = "Produce", connection: int = 1) -> list[float]:
    """Return the premature requests after a response at 0 ms with a throttle of one second."""
    journal = Journal()
    journal.request(api, -1, 0, version=version, throttle_ms=1000)
    for at_ms in came_ms:
        journal.request(api, at_ms, at_ms + 1, version=version, connection=connection)
    return [round(at_ms) for span in throttled_spans(journal.events) for at_ms in span.early_ms]


def test_request_before_the_end_of_the_throttle_is_premature() -> None:
    assert early(9, 300, 600, 1000) == [300, 600]


def test_one_millisecond_is_rounding() -> None:
    assert early(9, 999) == []


@pytest.mark.parametrize("at_ms", [-0.5, 0, 3], ids=["before the response", "with it", "while in flight"])
def test_request_in_flight_at_the_response_is_not_premature(at_ms: float) -> None:
    assert early(9, at_ms) == []


@pytest.mark.parametrize(
    ("api", "version", "waits"),
    [("Produce", 5, False), ("Produce", 6, True), ("Fetch", 7, False), ("Fetch", 8, True), ("SaslHandshake", 1, False)],
)
def test_only_versions_with_client_side_throttling_count(api: str, version: int, waits: bool) -> None:
    assert early(version, 300, api=api) == ([300] if waits else [])


def test_other_connections_may_continue() -> None:
    assert early(9, 300, connection=2) == []


def test_end_of_the_wait_is_recorded() -> None:
    journal = Journal()
    journal.request("Produce", -1, 0, throttle_ms=1000)
    journal.request("Produce", 1007, 1008)
    (span,) = throttled_spans(journal.events)
    assert span.next_ms == pytest.approx(1007)
