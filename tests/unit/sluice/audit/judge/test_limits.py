"""Waits at one stage of a backoff: the maximum, first waits, and any wait."""

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.model.verdict import State, Verdict
from tests.support.audit_events import SETTINGS, observed
from tests.support.journals import Journal, closed_connections, failed_batch, starts

PASS, DEVIATES, INCONCLUSIVE = State.PASS, State.DEVIATES, State.INCONCLUSIVE
RAMP: list[float] = [100, 200, 400, 800]
CONNECTING = {**SETTINGS, "retry.backoff.max.ms": 10, "metadata.recovery.strategy": "none"}


RETRIES = {
    "in the band": ([1000, 1000, 900], PASS),
    "one millisecond below, by clock truncation": ([799] * 4, PASS),
    "below it": ([780] * 4, DEVIATES),
    "slightly late": ([1040] * 4, PASS),
    "above it": ([1100] * 4, DEVIATES),
    "two only": ([1000, 1000], INCONCLUSIVE),
    "one short wait among many, which may be chance": ([1000] * 8 + [500], INCONCLUSIVE),
}


class TestAtTheMaximum:
    """KIP-580/2: 800 to 1000 ms; KIP-144/2: up to 1200, because jitter came last before Kafka 3.7."""

    @pytest.mark.parametrize(("waits", "state"), RETRIES.values(), ids=RETRIES)
    def test_waits_of_retries_at_the_maximum(self, waits: list[float], state: State) -> None:
        verdict = judge("KIP-580/2", [observed("produce-timed-out", failed_batch(RAMP + waits).events)])
        assert verdict.state is state

    @pytest.mark.parametrize(("wait", "state"), [(1000, PASS), (1190, PASS), (1300, DEVIATES), (780, DEVIATES)])
    def test_waits_of_connections_at_the_maximum(self, wait: float, state: State) -> None:
        journal = closed_connections([50, 100, 200, 400, 800, *[wait] * 5])
        assert judge("KIP-144/2", [observed("reconnect-closed", journal.events, settings=CONNECTING)]).state is state

    def test_too_few_waits_give_the_number_of_further_runs(self) -> None:
        verdict = judge("KIP-580/2", [observed("produce-timed-out", failed_batch([*RAMP, 1000]).events)])
        assert (verdict.state, verdict.runs_needed) == (INCONCLUSIVE, 2)

    def test_constant_waits_have_no_maximum_to_reach(self) -> None:
        settings = {**SETTINGS, "retry.backoff.ms": 1000}
        run = observed("produce-timed-out", failed_batch([1000] * 9).events, settings=settings)
        assert (judge("KIP-580/2", [run]).state, judge("KIP-580/2", [run]).runs_needed) == (INCONCLUSIVE, None)


def after_success(first: list[float]) -> Verdict:
    """KIP-580/6: a batch fails four times, then others once each, and all are delivered."""
    journal, at_ms = Journal(), 0.0
    for sequence, waits in enumerate([RAMP, *([wait] for wait in first)]):
        for wait in waits:
            journal.batch(at_ms, at_ms + 1, sequence=sequence, errors=[19])
            at_ms += 1 + wait
        journal.batch(at_ms, at_ms + 1, sequence=sequence)
        at_ms += 10
    return judge("KIP-580/6", [observed("produce-then-success", journal.events)])


SUCCESSES = {
    "the base ± 20 percent": ([80, 100, 120], PASS),
    "shorter": ([75, 75, 100], DEVIATES),
    "slightly late": ([160, 165, 100], PASS),
    "the wait reached before the success": ([800, 1000, 1000], DEVIATES),
    "two only": ([100, 100], INCONCLUSIVE),
    "one short wait": ([100] * 9 + [40], INCONCLUSIVE),
}


class TestFirst:
    @pytest.mark.parametrize(("first", "state"), SUCCESSES.values(), ids=SUCCESSES)
    def test_waits_after_a_success(self, first: list[float], state: State) -> None:
        assert after_success(first).state is state

    def test_median_is_reported(self) -> None:
        assert after_success([900, 1000, 1000]).measured == {
            "waits": 3,
            "too_short": 0,
            "too_long": 3,
            "first_wait_ms": 1000,
        }


LOSSES = {
    "the base ± 20 percent": ([40, 50, 60], PASS),
    "longer, without data to send": ([50, 3000, 50], PASS),
    "none": ([0, 1, 50], DEVIATES),
    "none once": ([0, 50, 50, 50], INCONCLUSIVE),
    "two only": ([50, 50], INCONCLUSIVE),
}


class TestAny:
    """KIP-144/5: some wait after a connection that worked; its length may have other reasons."""

    @pytest.mark.parametrize(("waits", "state"), LOSSES.values(), ids=LOSSES)
    def test_waits_after_a_loss(self, waits: list[float], state: State, journal: Journal) -> None:
        for at_ms in starts(waits, 10):
            journal.connection(at_ms, at_ms + 10, answers=True)
        assert judge("KIP-144/5", [observed("reconnect-lost", journal.events, settings=CONNECTING)]).state is state
