"""Fact 8 about clients: who must wait through a throttle, and what was on its way already."""

import pytest

from sluice.audit.judge.observer.throttles import throttled_spans
from tests.support.audit_events import Journal


def early(version: int, *came_ms: float, api: str = "Produce", connection: int = 1) -> list[float]:
    """What comes too early of requests after an answer, at 0 ms, that tells to wait a second."""
    journal = Journal()
    journal.request(api, -1, 0, version=version, throttle_ms=1000)
    for at_ms in came_ms:
        journal.request(api, at_ms, at_ms + 1, version=version, connection=connection)
    return [round(at_ms) for span in throttled_spans(journal.events) for at_ms in span.early_ms]


def test_what_comes_before_the_throttle_is_over_comes_too_early() -> None:
    assert early(9, 300, 600, 1000) == [300, 600]


def test_a_millisecond_is_rounding() -> None:
    assert early(9, 999) == []


@pytest.mark.parametrize("at_ms", [-0.5, 0, 3], ids=["before the answer", "with it", "as it is on its way"])
def test_what_was_on_its_way_when_the_answer_came_is_not_too_early(at_ms: float) -> None:
    assert early(9, at_ms) == []


@pytest.mark.parametrize(
    ("api", "version", "waits"),
    [("Produce", 5, False), ("Produce", 6, True), ("Fetch", 7, False), ("Fetch", 8, True), ("SaslHandshake", 1, False)],
)
def test_only_versions_count_whose_clients_wait_by_themselves(api: str, version: int, waits: bool) -> None:
    assert early(version, 300, api=api) == ([300] if waits else [])


def test_another_connection_may_go_on() -> None:
    assert early(9, 300, connection=2) == []


def test_when_it_went_on_is_told() -> None:
    journal = Journal()
    journal.request("Produce", -1, 0, throttle_ms=1000)
    journal.request("Produce", 1007, 1008)
    (span,) = throttled_spans(journal.events)
    assert span.next_ms == pytest.approx(1007)
