"""KIP-91 statements about delivery results, with request.timeout.ms=2000 and delivery.timeout.ms=5000."""

from collections.abc import Sequence

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.model.observation import Callback
from sluice.audit.judge.model.verdict import State, Verdict
from tests.support.audit_events import callback, observed
from tests.support.journals import Journal

PASS, DEVIATES, INCONCLUSIVE = State.PASS, State.DEVIATES, State.INCONCLUSIVE
# Of a record: send time, result, and time of the result.
TimedCallback = tuple[float, str, float]


def callbacks(*timed: TimedCallback) -> list[Callback]:
    found: list[Callback] = []
    for number, (sent_ms, end, ended_ms) in enumerate(timed):
        found.append(callback("sent", sent_ms, number))
        if end:
            found.append(callback(end, ended_ms, number))
    return sorted(found, key=lambda each: each.at_ns)


def in_time(*timed: TimedCallback, probe: str = "delivery-mute") -> Verdict:
    return judge("KIP-91/2", [observed(probe, [], callbacks=callbacks(*timed), ended_ms=20_000)])


RECORDS = {
    "fails at the timeout": ([(0, "failed", 5000), (10, "failed", 5100)], PASS),
    "fails later": ([(0, "failed", 5400)], DEVIATES),
    "alone fails later": ([*[(0, "failed", 5000)] * 3, (10, "failed", 5700)], INCONCLUSIVE),
    "fails sooner": ([(0, "failed", 4600)], DEVIATES),
    "never ends": ([(0, "failed", 5000), (100, "", 0)], DEVIATES),
    "is still pending": ([(0, "failed", 5000), (18_000, "", 0)], PASS),
    "is delivered": ([(0, "delivered", 20)], INCONCLUSIVE),
}


@pytest.mark.parametrize(("timed", "state"), RECORDS.values(), ids=RECORDS)
def test_kip_91_2_record(timed: list[TimedCallback], state: State) -> None:
    assert in_time(*timed).state is state


def test_kip_91_2_numbers_are_reported() -> None:
    assert in_time((0, "failed", 5010), (0, "failed", 5500)).measured == {
        "failed": 2,
        "never_ended": 0,
        "soonest_ms": 5010,
        "latest_ms": 5500,
    }


FAILURES = {
    "in send order": ([(0, "failed", 5000), (10, "failed", 5010)], PASS),
    "in reverse order": ([(0, "failed", 5010), (10, "failed", 5000)], DEVIATES),
    "within one sender pass": ([(0, "failed", 5000.5), (10, "failed", 5000)], PASS),
    "but one was delivered": ([(0, "delivered", 5010), (10, "failed", 5000)], INCONCLUSIVE),
}


@pytest.mark.parametrize(("timed", "state"), FAILURES.values(), ids=FAILURES)
def test_kip_91_8_order_of_failures_in_a_partition(timed: list[TimedCallback], state: State) -> None:
    run = observed("delivery-mute", [], callbacks=callbacks(*timed), ended_ms=20_000)
    assert judge("KIP-91/8", [run]).state is state


def test_kip_91_8_partitions_are_unordered() -> None:
    timed = [callback("sent", 0, 0, 0), callback("sent", 1, 1, 1), callback("sent", 2, 2, 1)]
    ends = [callback("failed", 5000, 1, 1), callback("failed", 5010, 2, 1), callback("failed", 5050, 0, 0)]
    run = observed("delivery-mute", [], callbacks=[*timed, *ends], ended_ms=20_000)
    assert judge("KIP-91/8", [run]).state is PASS


OUTAGES = {
    "is delivered at the end": ([(1500, "delivered", 5500)], PASS),
    "fails after request.timeout.ms": ([(1500, "failed", 3500)], DEVIATES),
    "is younger than request.timeout.ms": ([(4000, "delivered", 5500)], INCONCLUSIVE),
    "was sent before the outage": ([(500, "failed", 3500)], INCONCLUSIVE),
    "fails at its own timeout": ([(1001, "failed", 6001)], INCONCLUSIVE),
}


@pytest.mark.parametrize(("timed", "state"), OUTAGES.values(), ids=OUTAGES)
def test_kip_91_13_record_waiting_for_the_end_of_an_outage(timed: list[TimedCallback], state: State) -> None:
    """No broker is reachable from 1000 to 5500 ms."""
    run = observed("delivery-long-outage", [], callbacks=callbacks(*timed), fault_ms=(1000, 5500), ended_ms=20_000)
    assert judge("KIP-91/13", [run]).state is state


def throttled(timed: Sequence[TimedCallback], throttle_ms: int) -> Verdict:
    journal = Journal()
    journal.request("Produce", 0, 1, throttle_ms=throttle_ms)
    return judge(
        "KIP-91/16", [observed("delivery-throttled", journal.events, callbacks=callbacks(*timed), ended_ms=20_000)]
    )


THROTTLES = {
    "fails at its timeout": ([(100, "failed", 5100)], 9000, PASS),
    "is delivered after the throttle": ([(100, "delivered", 9100)], 9000, DEVIATES),
    "is throttled for less than its timeout": ([(100, "failed", 5100)], 3000, INCONCLUSIVE),
    "is late enough to outlast the throttle": ([(4500, "delivered", 9100)], 9000, INCONCLUSIVE),
}


@pytest.mark.parametrize(("timed", "throttle_ms", "state"), THROTTLES.values(), ids=THROTTLES)
def test_kip_91_16_record_waiting_for_a_throttle(timed: list[TimedCallback], throttle_ms: int, state: State) -> None:
    assert throttled(timed, throttle_ms).state is state
