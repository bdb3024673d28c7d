"""Random spread of waits, for runs whose waits are the rule's times one factor."""

from collections.abc import Sequence

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.verdict import State
from tests.support.audit_events import SETTINGS, observed
from tests.support.journals import closed_connections, failed_batch

PASS, DEVIATES, INCONCLUSIVE = State.PASS, State.DEVIATES, State.INCONCLUSIVE
CONNECTING = {**SETTINGS, "retry.backoff.max.ms": 10, "metadata.recovery.strategy": "none"}


def evenly(low: float, high: float, count: int = 13) -> list[float]:
    """Return evenly spread factors, the ideal of uniform draws."""
    return [low + (high - low) * number / (count - 1) for number in range(count)]


def connecting(*rows: Sequence[float]) -> list[Observation]:
    """Return runs with these waits between closed connections."""
    return [
        observed("reconnect-closed", closed_connections(row).events, settings=CONNECTING, repetition=number)
        for number, row in enumerate(rows)
    ]


def drawn_once(factors: Sequence[float]) -> list[Observation]:
    return connecting(*([factor * wait for wait in (50, 100, 200, 400, 800)] for factor in factors))


def retrying(factors: Sequence[float]) -> list[Observation]:
    return [
        observed("produce-timed-out", failed_batch([factor * wait for wait in (100, 200, 400)]).events, repetition=run)
        for run, factor in enumerate(factors)
    ]


def test_few_draws_per_connection_whose_medians_differ_much_pass() -> None:
    """Those of our own client with one seed: 944 ms is 38 % above the median of its three draws."""
    runs = connecting([57, 97, 221, 337, 685], [47, 108, 162, 352, 655], [53, 113, 229, 464, 944])
    assert judge("KIP-144/9", runs).state is PASS


ONE_DRAW = {
    "20 percent to both sides": (evenly(0.8, 1.2), PASS),
    "none": (evenly(1, 1), DEVIATES),
    "little enough to be scheduling": (evenly(0.97, 1.03), DEVIATES),
    "8 percent of few waits": (evenly(0.92, 1.08, 5), INCONCLUSIVE),
    "8 percent of many waits": (evenly(0.92, 1.08), DEVIATES),
    "half of the range": (evenly(0.5, 1.5), DEVIATES),
    "20 percent in only two runs": (evenly(0.8, 1.2, 2), INCONCLUSIVE),
    "20 percent and a few late": ([*evenly(0.82, 1.18, 10), 1.35, 1.35, 1.35], INCONCLUSIVE),
    "25 percent less to 50 percent more": (evenly(0.75, 1.5), DEVIATES),
}


@pytest.mark.parametrize(("factors", "state"), ONE_DRAW.values(), ids=ONE_DRAW)
def test_one_draw_per_connection(factors: list[float], state: State) -> None:
    """KIP-144/9."""
    assert judge("KIP-144/9", drawn_once(factors)).state is state


REPEATED_DRAWS = {
    "20 percent to both sides": (evenly(0.8, 1.2), PASS),
    "the upper half, as left by repeated draws": (evenly(1.0, 1.2), PASS),
    "none": (evenly(1, 1), DEVIATES),
    "6 percent: inconclusive": (evenly(0.94, 1.06), INCONCLUSIVE),
    "6 percent, of waits that are shorter than most": ([0.9, 0.93, *evenly(0.97, 1.02, 11)], PASS),
    "5 percent, of waits that may be late": ([1.1, 1.07, *evenly(0.98, 1.03, 11)], INCONCLUSIVE),
    "3 percent of few waits, possibly chance": (evenly(0.97, 1.03, 5), INCONCLUSIVE),
    "3 percent of many waits": (evenly(0.97, 1.03), DEVIATES),
    "1 percent, also of few waits": (evenly(0.99, 1.01, 5), DEVIATES),
    "20 percent in only two runs": (evenly(0.8, 1.2, 2), INCONCLUSIVE),
}


@pytest.mark.parametrize(("factors", "state"), REPEATED_DRAWS.values(), ids=REPEATED_DRAWS)
def test_draws_of_a_batch_may_repeat(factors: list[float], state: State) -> None:
    """KIP-580/16."""
    assert judge("KIP-580/16", retrying(factors)).state is state


def test_single_late_wait_is_no_jitter() -> None:
    runs = retrying([1.0] * 12)
    late = observed("produce-timed-out", failed_batch([100, 200, 520]).events, repetition=12)
    assert judge("KIP-580/16", [*runs, late]).state is DEVIATES


def test_few_waits_give_the_number_of_required_runs() -> None:
    verdict = judge("KIP-144/9", drawn_once([0.9, 1.1]))
    assert verdict.measured["waits"] == 10
    assert verdict.runs_needed == 1


def test_constant_waits_by_configuration_have_no_draws() -> None:
    run = observed(
        "produce-timed-out", failed_batch([1000] * 9).events, settings={**SETTINGS, "retry.backoff.ms": 1000}
    )
    verdict = judge("KIP-580/16", [run])
    assert (verdict.state, verdict.runs_needed) == (INCONCLUSIVE, None)
