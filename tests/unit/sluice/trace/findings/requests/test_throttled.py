"""Throttled clients."""

import pytest

from sluice.journal_events import QuotaChange
from sluice.trace.findings.responses import throttled as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found


def throttles(*ms: int, entity: str = "", key: str = "producer_byte_rate") -> Make:
    def make(journal: Journal) -> None:
        if entity:
            journal.of_cluster(QuotaChange, 0, entity=entity, quotas={key: 1000.0})
        for number, throttle_ms in enumerate(ms, 1):
            journal.throttle(number, throttle_ms)

    return make


CASES = {
    "long": (throttles(700, 800), "warning", "2 times, for up to 800 ms"),
    "short": (throttles(20), "info", "Throttled once"),
    "by the quota of the client id": (
        throttles(20, entity="client-id=app"),
        "info",
        "producer_byte_rate=1000 of client-id=app",
    ),
    "by the default quota": (throttles(20, entity="client-id=<default>"), "info", "producer_byte_rate=1000"),
}


@pytest.mark.parametrize(("make", "severity", "text"), CASES.values(), ids=CASES)
def test_throttles(make: Make, severity: str, text: str) -> None:
    (one,) = found(find, make)
    assert (one.severity, one.id) == (severity, "throttled")
    assert text in one.text


@pytest.mark.parametrize(
    "make",
    [throttles(20, entity="client-id=other"), throttles(20, entity="client-id=app", key="consumer_byte_rate")],
    ids=["of another client", "of another kind"],
)
def test_another_quota_is_not_named(make: Make) -> None:
    (one,) = found(find, make)
    assert "The quota is" not in one.text


def test_silent_without_throttles() -> None:
    assert not found(find, lambda journal: journal.request("Produce", 1, 2))
