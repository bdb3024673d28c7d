import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.expected import Backoff
from sluice.audit.judge.kips.regular_requests import without_regular
from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import State
from sluice.audit.judge.observer.calls import call_sequences
from tests.support.audit_events import SETTINGS, observed
from tests.support.journals import Journal

BACKOFF = Backoff(100, 1000)


def heartbeats(*at_ms: float) -> Journal:
    journal = Journal()
    for each in at_ms:
        journal.request("Heartbeat", each, each, group_id="g", errors=[14])
    return journal


HEARTBEATS = {
    "two retries, then the next regular heartbeat": ([0, 100, 300, 1000, 1100, 1300], [[100, 200], [100, 200]]),
    "retries until success": ([0, 100, 300, 700, 1500, 2500], [[100, 200, 400, 800, 1000]]),
    "early retries are not regular heartbeats": ([0, 100, 200, 300, 400], [[100] * 4]),
    "unrelated to retry and regular times": ([0, 100, 300, 640], [[100, 200, 340]]),
}


@pytest.mark.parametrize(("at_ms", "gaps"), HEARTBEATS.values(), ids=HEARTBEATS)
def test_classification_of_heartbeats(at_ms: list[float], gaps: list[list[float]]) -> None:
    (sequence,) = call_sequences(heartbeats(*at_ms).events)
    parts = without_regular(sequence, BACKOFF, interval_ms=1000, late_ms=60)
    assert [[round(gap) for gap in part.gaps_ms()] for part in parts] == gaps


def test_client_with_doubling_retries_up_to_success_passes() -> None:
    at_ms = [from_ms + each for from_ms in range(0, 6000, 1000) for each in (0, 100, 300)]
    settings = {**SETTINGS, "heartbeat.interval.ms": 1000}
    run = observed("heartbeat-error", heartbeats(*at_ms).events, role=Role.CONSUMER, settings=settings)
    assert judge("KIP-580/11", [run]).state is State.PASS
