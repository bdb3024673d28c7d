"""Waits at one stage of a backoff: the maximum, first waits, and any wait."""

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.model.verdict import State, Verdict
from tests.support.audit_events import SETTINGS, observed
from tests.support.journals import Journal, closed_connections, failed_batch, starts

PASS, DEVIATES, INCONCLUSIVE = State.PASS, State.DEVIATES, State.INCONCLUSIVE
RAMP: list[float] = [100, 200, 400, 800]
CONNECTING = {**SETTINGS, "retry.backoff.max.ms": 10, "metadata.recovery.strategy": "none"}


class TestAtTheMaximum:
    """KIP-580/2: 800 to 1000 ms; KIP-144/2: up to 1200, because jitter came last before Kafka 3.7."""

    @pytest.mark.parametrize(
        ("waits", "state"),
        [
            pytest.param([1000, 1000, 900], PASS, id="in the band"),
            pytest.param([799] * 4, PASS, id="one millisecond below, by clock truncation"),
            pytest.param([780] * 4, DEVIATES, id="below it"),
            pytest.param([1040] * 4, PASS, id="slightly late"),
            pytest.param([1100] * 4, DEVIATES, id="above it"),
            pytest.param([1000, 1000], INCONCLUSIVE, id="two only"),
            pytest.param([1000] * 8 + [500], INCONCLUSIVE, id="one short wait among many, which may be chance"),
        ],
    )
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


class TestFirst:
    @pytest.mark.parametrize(
        ("first", "state"),
        [
            pytest.param([80, 100, 120], PASS, id="the base ± 20 percent"),
            pytest.param([75, 75, 100], DEVIATES, id="shorter"),
            pytest.param([160, 165, 100], PASS, id="slightly late"),
            pytest.param([800, 1000, 1000], DEVIATES, id="the wait reached before the success"),
            pytest.param([100, 100], INCONCLUSIVE, id="two only"),
            pytest.param([100] * 9 + [40], INCONCLUSIVE, id="one short wait"),
        ],
    )
    def test_waits_after_a_success(self, first: list[float], state: State) -> None:
        assert after_success(first).state is state

    def test_median_is_reported(self) -> None:
        assert after_success([900, 1000, 1000]).measured == {
            "waits": 3,
            "too_short": 0,
            "too_long": 3,
            "first_wait_ms": 1000,
        }


class TestAny:
    """KIP-144/5: some wait after a connection that worked; its length may have other reasons."""

    @pytest.mark.parametrize(
        ("waits", "state"),
        [
            pytest.param([40, 50, 60], PASS, id="the base ± 20 percent"),
            pytest.param([50, 3000, 50], PASS, id="longer, without data to send"),
            pytest.param([0, 1, 50], DEVIATES, id="none"),
            pytest.param([0, 50, 50, 50], INCONCLUSIVE, id="none once"),
            pytest.param([50, 50], INCONCLUSIVE, id="two only"),
        ],
    )
    def test_waits_after_a_loss(self, waits: list[float], state: State) -> None:
        journal = Journal()
        for at_ms in starts(waits, 10):
            journal.connection(at_ms, at_ms + 10, answers=True)
        assert judge("KIP-144/5", [observed("reconnect-lost", journal.events, settings=CONNECTING)]).state is state
