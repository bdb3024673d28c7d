"""Rules about throttle times: each fires, stays silent on healthy use, and stays silent without evidence."""

import pytest

from tests.support.journals import Journal
from tests.support.rule_cases import RuleCase, rule_tests, texts

THROTTLE_MS = 400


def throttled(next_ms: float, *, api: str = "Produce", version: int = 9, count: int = 4) -> Journal:
    """Return a journal in which a request follows this long after each response with a throttle time."""
    made = Journal()
    for number in range(count):
        at_ms = number * 1000
        made.request(api, at_ms, at_ms + 1, version=version, throttle_ms=THROTTLE_MS)
        made.request(api, at_ms + 1 + next_ms, at_ms + 2 + next_ms, version=version)
    return made


def busy(throttle_ms: int, seconds: int) -> Journal:
    """Return a journal with a throttled request per second."""
    made = Journal()
    for number in range(seconds + 1):
        made.request("Produce", number * 1000, number * 1000 + 1, throttle_ms=throttle_ms)
    return made


CASES = {
    "throttle-ignored": RuleCase(
        "4 requests were sent before the throttle time was over, after 4 of 4 responses with one",
        lambda: throttled(200),
        lambda: throttled(THROTTLE_MS),
        lambda: throttled(100),
    ),
    "mostly-throttled": RuleCase(
        "a connection was throttled for 12.0 of 20.0 s",
        lambda: busy(600, 20),
        lambda: busy(400, 20),
        lambda: busy(600, 8),
    ),
}


test_rule, test_all_rules_have_a_case = rule_tests(CASES, "throttling")


@pytest.mark.parametrize(("version", "fires"), [(5, False), (6, True)])
def test_only_versions_count_whose_clients_enforce_throttles(version: int, *, fires: bool) -> None:
    assert bool(texts("throttle-ignored", throttled(200, version=version))) is fires


def test_requests_in_flight_do_not_count(journal: Journal) -> None:
    for at_ms in (0, 1000, 2000):
        journal.request("Produce", at_ms, at_ms + 1, throttle_ms=THROTTLE_MS)
        journal.request("Produce", at_ms + 0.5, at_ms + 150)
        journal.request("Produce", at_ms + 200, at_ms + 201)
    assert texts("throttle-ignored", journal) == []


def test_requests_on_another_connection_do_not_count(journal: Journal) -> None:
    for at_ms in (0, 1000, 2000):
        journal.request("Produce", at_ms, at_ms + 1, throttle_ms=THROTTLE_MS)
        journal.request("Produce", at_ms + 200, at_ms + 201, connection=2)
    assert texts("throttle-ignored", journal) == []


def test_throttle_times_of_requests_in_flight_overlap(journal: Journal) -> None:
    for number in range(21):
        for more in range(3):
            journal.request("Produce", number * 1000 + more, number * 1000 + more + 1, throttle_ms=300)
    assert texts("mostly-throttled", journal) == []


def test_connections_are_throttled_separately(journal: Journal) -> None:
    for number in range(21):
        for connection in (1, 2, 3):
            journal.request("Produce", number * 1000, number * 1000 + 1, throttle_ms=300, connection=connection)
    assert texts("mostly-throttled", journal) == []


def test_requests_without_a_pause_are_early_too(journal: Journal) -> None:
    for at_ms in range(0, 1000, 2):
        journal.request("Produce", at_ms, at_ms + 0.5, throttle_ms=0 if at_ms % 50 else THROTTLE_MS)
    (found,) = texts("throttle-ignored", journal)
    assert found == "375 requests were sent before the throttle time was over, after 16 of 20 responses with one"
