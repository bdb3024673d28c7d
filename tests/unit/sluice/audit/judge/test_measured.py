"""Backoffs measured without settings: model, reset and scope."""

from collections.abc import Sequence

import pytest

from sluice.audit.judge.measured import measured_backoffs
from sluice.audit.judge.model.attempts import Kind
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.verdict import MeasuredBackoff
from tests.support.audit_events import observed
from tests.support.journals import Journal

RIGHT = [100.0, 200, 400, 800, 1000, 1000, 1000]


def retried(probe: str, *waits: Sequence[float], partitions: Sequence[int] = (), every_ms: float = 9000) -> Observation:
    """Return a run without settings, in which batches fail with these waits, and then succeed."""
    journal = Journal()
    for number, of_one in enumerate(waits):
        at_ms, partition = every_ms * number, partitions[number] if partitions else 0
        for wait in of_one:
            journal.batch(at_ms, at_ms + 1, records=[f"{number}"], errors=[7], partition=partition)
            at_ms += 1 + wait
        journal.batch(at_ms, at_ms + 1, records=[f"{number}"], partition=partition)
    return observed(probe, journal.events, settings={}, is_command=True)


def backoff(*runs: Observation) -> MeasuredBackoff:
    (found,) = measured_backoffs(runs)
    return found


def test_model_is_measured_without_settings() -> None:
    found = backoff(retried("produce-timed-out", RIGHT, RIGHT, [100], [100]))
    assert (found.kind, found.probe, found.reset, found.is_shared) == (Kind.PRODUCE, "produce-timed-out", None, None)
    fit = found.fit
    assert (fit.model, fit.multiplier, round(fit.base_ms), fit.cap_ms) == ("exponential", 2, 100, 1000)


@pytest.mark.parametrize(("first", "reset"), [([100, 98, 103], True), ([800, 900, 950], False), ([100], None)])
def test_success_restarts_it(first: list[float], reset: bool | None) -> None:
    after = retried("produce-then-success", *([each] for each in first))
    assert backoff(retried("produce-timed-out", RIGHT), after).reset is reset


@pytest.mark.parametrize(("first", "is_shared"), [([100, 98, 103], False), ([800, 900, 950], True)])
def test_partitions_share_it(first: list[float], is_shared: bool) -> None:
    beside = retried(
        "produce-two-partitions", RIGHT, *([each] for each in first), partitions=(0, 1, 1, 1), every_ms=1000
    )
    assert backoff(retried("produce-timed-out", RIGHT), beside).is_shared is is_shared


def test_waits_without_a_common_rule_have_no_model() -> None:
    assert measured_backoffs([retried("produce-timed-out", [3, 900, 20], [1500, 4], [70, 2, 6000])]) == []
