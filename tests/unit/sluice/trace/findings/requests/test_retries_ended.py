"""Requests that clients gave up, and the settings that fit."""

import pytest

from sluice.trace.findings.retries_ended import retries_ended as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found, kinds

NOT_LEADER, TOO_LARGE, UNAVAILABLE = 6, 10, 15


def batches(
    *at_ms: float, error: int = NOT_LEADER, then_ms: float | None = None, closed_ms: float | None = None
) -> Make:
    def make(journal: Journal) -> None:
        journal.connection(0, closed_ms, by_client=True)
        for at in at_ms:
            journal.batch(at, at + 1, sequence=0, errors=[error])
        if then_ms is not None:
            journal.batch(then_ms, then_ms + 1, sequence=0)

    return make


def lookups(count: int) -> Make:
    def make(journal: Journal) -> None:
        for number in range(count):
            journal.request("FindCoordinator", 100 * number, 100 * number + 1, group_id="g", errors=[UNAVAILABLE])

    return make


def heartbeats(journal: Journal) -> None:
    for at_ms in range(0, 500, 100):
        journal.request("Heartbeat", at_ms, ended_ms=at_ms + 50, group_id="g")


def two_batches(journal: Journal) -> None:
    for sequence in (0, 1):
        for at_ms in (1, 200):
            journal.batch(at_ms + sequence, at_ms + sequence + 1, sequence=sequence, errors=[NOT_LEADER])


GAVE_UP, RETRIES = [("retries-ended", "error")], [("retries-unfinished", "error")]
CASES = {
    "after a delivery timeout": (batches(1, 3_000, 6_000, 9_000), 60_000, GAVE_UP, "delivery.timeout.ms=10000"),
    "after a number of retries": (batches(1, 101, 201), 60_000, GAVE_UP, "retries=2"),
    "without a retry": (batches(1), 60_000, GAVE_UP, "This fits retries=0."),
    "several batches": (two_batches, 60_000, GAVE_UP, "to 1 other request"),
    "still retrying at the end": (batches(1, 101, 201), 50, RETRIES, "3 attempts"),
    "closed while retrying": (batches(1, 101, closed_ms=150), 60_000, RETRIES, ""),
    "a lookup": (lookups(4), 60_000, GAVE_UP, "4 x COORDINATOR_NOT_AVAILABLE"),
    "a lookup that is repeated once": (lookups(2), 60_000, [], ""),
    "heartbeats are not retries": (heartbeats, 60_000, [], ""),
    "succeeded in the end": (batches(1, 101, then_ms=201), 60_000, [], ""),
    "not retriable": (batches(1, 101, error=TOO_LARGE), 60_000, [], ""),
}


@pytest.mark.parametrize(("make", "after_ms", "expected", "text"), CASES.values(), ids=CASES)
def test_chains_of_attempts(make: Make, after_ms: float, expected: list[tuple[str, str]], text: str) -> None:
    findings = found(find, make, after_ms=after_ms)
    assert kinds(findings) == expected
    assert all(text in one.text for one in findings)


SETTINGS = {
    "failed at once": (batches(1, 101, 201), 205, "fits retries=2."),
    "failed later": (
        batches(1, 101, 201),
        1_561,
        "fits a delivery timeout of at most 1.56 s (delivery.timeout.ms, message.timeout.ms in librdkafka), "
        "or retries=2.",
    ),
    "attempts after the failure": (batches(1, 101, 201), 150, "was still retrying when the test failed."),
    "a lookup": (lookups(4), 305, "fits retries=3."),
    "failed without a retry": (batches(1), 9_000, "fits retries=0."),
}


@pytest.mark.parametrize(("make", "failed_ms", "text"), SETTINGS.values(), ids=SETTINGS)
def test_settings_fit_the_time_of_the_failure(make: Make, failed_ms: float, text: str) -> None:
    (one,) = found(find, make, after_ms=60_000, failed_ms=failed_ms)
    assert one.text.endswith(text)


TITLES = {
    "one attempt": (batches(1), "Produce t-0@7.0.0 of client app failed at its only attempt"),
    "two attempts": (batches(1, 101), "Produce t-0@7.0.0 of client app never succeeded: 2 attempts"),
}


@pytest.mark.parametrize(("make", "title"), TITLES.values(), ids=TITLES)
def test_title_of_requests_that_never_succeeded(make: Make, title: str) -> None:
    (one,) = found(find, make, after_ms=50)
    assert one.title == title
