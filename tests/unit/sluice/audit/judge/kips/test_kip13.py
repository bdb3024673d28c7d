"""KIP-13/20 with throttles of 400 ms: the time of the next request on the connection."""

from collections.abc import Sequence

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.model.verdict import State, Verdict
from tests.support.audit_events import observed
from tests.support.journals import Journal

TOLD_MS = 400


def judged(
    next_ms: Sequence[float], *, api: str = "Produce", version: int = 9, beside_ms: float | None = None
) -> Verdict:
    """Judge a run: `next_ms` has the delay of the next request per response, `beside_ms` that on another connection."""
    journal, at_ms = Journal(), 0.0
    for each in next_ms:
        journal.request(api, at_ms, at_ms + 1, version=version, throttle_ms=TOLD_MS)
        if beside_ms is not None:
            journal.request(api, at_ms + 1 + beside_ms, at_ms + 2 + beside_ms, version=version, connection=2)
        journal.request(api, at_ms + 1 + each, at_ms + 2 + each, version=version)
        at_ms += 1000
    return judge("KIP-13/20", [observed("throttle-produce", journal.events)])


NEXT_REQUESTS = {
    "after the throttle": ([400, 430], State.PASS),
    "one millisecond early, by clock truncation": ([399, 399], State.PASS),
    "two milliseconds early, by clock truncation": ([398, 398], State.PASS),
    "four milliseconds before": ([396, 396], State.DEVIATES),
    "in the middle": ([100, 100], State.DEVIATES),
    "in the middle once, which may be chance": ([100, 400, 400], State.INCONCLUSIVE),
    "once": ([400], State.INCONCLUSIVE),
    "so early that it was already in flight": ([5, 5], State.INCONCLUSIVE),
    "with the response": ([0, 0], State.INCONCLUSIVE),
    "before the response": ([-0.5, -0.5], State.INCONCLUSIVE),
    "before a busy client may have read the response": ([22, 22], State.INCONCLUSIVE),
}


@pytest.mark.parametrize(("next_ms", "state"), NEXT_REQUESTS.values(), ids=NEXT_REQUESTS)
def test_next_request_is_sent(next_ms: list[float], state: State) -> None:
    assert judged(next_ms).state is state


def test_other_connections_need_not_wait() -> None:
    assert judged([400, 400], beside_ms=50).state is State.PASS


VERSIONS = [
    ("Produce", 6, State.DEVIATES),
    ("Produce", 5, State.INCONCLUSIVE),
    ("Fetch", 8, State.DEVIATES),
    ("Fetch", 7, State.INCONCLUSIVE),
    ("OffsetCommit", 4, State.DEVIATES),
    ("OffsetCommit", 3, State.INCONCLUSIVE),
    ("SaslHandshake", 1, State.INCONCLUSIVE),
]


@pytest.mark.parametrize(("api", "version", "state"), VERSIONS)
def test_only_versions_since_kip_219_must_wait(api: str, version: int, state: State) -> None:
    assert judged([100, 100], api=api, version=version).state is state


def test_verdict_reports_the_numbers() -> None:
    verdict = judged([100, 400, 150])
    assert verdict.measured == {"throttles": 3, "followed": 3, "ignored": 2, "early": 2}
    assert (
        verdict.why
        == "sends 2 requests during a throttle, such as one 100 ms after a Produce response with throttle_time_ms=400"
    )
