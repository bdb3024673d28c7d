"""Verdicts from runs; single rules have separate tests."""

import msgspec
import pytest

from sluice.audit.judge import judge, judge_sequence
from sluice.audit.judge.model.attempts import Attempt, AttemptSequence, Kind, Outcome
from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import Sort, State
from tests.support.audit_events import SETTINGS, callback, observed
from tests.support.journals import Journal, closed_connections, failed_batch, ns

RIGHT: list[float] = [50, 105, 190, 420, 790, 1000, 930, 1000]
CONSTANT: list[float] = [50.0] * 12


def test_waits_that_double_up_to_the_maximum_pass() -> None:
    settings = {**SETTINGS, "retry.backoff.max.ms": 10}
    verdict = judge("KIP-144/1", [observed("reconnect-closed", closed_connections(RIGHT).events, settings=settings)])
    assert verdict.state is State.PASS
    assert verdict.measured["wait_3_ms"] == pytest.approx(190)
    assert verdict.expected["wait_3_ms"] == "160 to 240 ms"
    assert verdict.path == "accepted, then closed"


def test_constant_waits_deviate_and_the_verdict_describes_them() -> None:
    verdict = judge("KIP-144/1", [observed("reconnect-closed", closed_connections(CONSTANT).events)])
    assert verdict.state is State.DEVIATES
    assert verdict.why == "waits about 50 ms each time; expected 50, 100, 200 ... 1000 ms ± 20 %"
    assert verdict.fit is not None
    assert verdict.fit.model == "constant"


def test_series_has_the_band_of_each_wait() -> None:
    (series,) = judge("KIP-144/1", [observed("reconnect-closed", closed_connections(RIGHT).events)]).series
    assert series.waited_ms == pytest.approx(RIGHT)
    assert len(series.low_ms) == len(series.high_ms) == len(RIGHT) == len(series.at_ms) - 1
    assert all(low <= wait <= high for low, wait, high in zip(series.low_ms, RIGHT, series.high_ms, strict=True))


DEVIATIONS = {
    "it claims to implement the KIP": (["KIP-144"], [], Sort.VIOLATES_ITS_DOCUMENTATION),
    "it is older than the KIP": ([], ["KIP-144"], Sort.PREDATES_KIP),
    "it makes no claim": ([], [], Sort.DIFFERS_FROM_KIP),
}


@pytest.mark.parametrize(("kips", "before", "sort"), DEVIATIONS.values(), ids=DEVIATIONS)
def test_deviation_is_classified_by_the_violated_claim(kips: list[str], before: list[str], sort: Sort) -> None:
    run = observed("reconnect-closed", closed_connections(CONSTANT).events, kips=kips, before=before)
    assert judge("KIP-144/1", [run]).sort is sort


def test_client_with_a_documented_difference_conforms_to_its_documentation() -> None:
    """For example a client whose table of settings documents a different jitter from the KIP's."""
    run = observed("reconnect-closed", closed_connections(CONSTANT).events, kips=["KIP-144"], otherwise=["KIP-144/1"])
    assert judge("KIP-144/1", [run]).sort is Sort.DIFFERS_FROM_KIP
    assert judge("KIP-144/4", [run]).sort is Sort.VIOLATES_ITS_DOCUMENTATION


def test_unobservable_statement_has_a_reason() -> None:
    verdict = judge("KIP-91/3", [])
    assert (verdict.state, verdict.why) == (State.NOT_OBSERVABLE, "only the client knows when it created a batch")


def test_without_a_run_one_is_required() -> None:
    verdict = judge("KIP-144/1", [observed("produce-mute", closed_connections(RIGHT).events)])
    assert (verdict.state, verdict.runs_needed) == (State.INCONCLUSIVE, 1)


def test_failed_run_is_inconclusive() -> None:
    run = observed("reconnect-closed", closed_connections(CONSTANT).events, problem="it did not start")
    assert judge("KIP-144/1", [run]).state is State.INCONCLUSIVE


def test_statement_about_an_unknown_setting_is_not_judged() -> None:
    run = observed("produce-not-leader", failed_batch([100] * 9).events, settings={"retry.backoff.ms": 100})
    verdict = judge("KIP-580/1", [run])
    assert (verdict.state, verdict.runs_needed) == (State.INCONCLUSIVE, None)
    assert verdict.why == "the client's value of retry.backoff.max.ms is not known"


def test_statement_about_a_missing_setting_is_not_observable() -> None:
    run = observed("delivery-mute", failed_batch([100] * 9).events, settings={}, lacks=["delivery.timeout.ms"])
    verdict = judge("KIP-91/1", [run])
    assert (verdict.state, verdict.why) == (State.NOT_OBSERVABLE, "the client has no delivery.timeout.ms")


def test_rejected_settings_are_reported() -> None:
    rejected = msgspec.structs.replace(callback("rejected", 0), text="max must be >= base")
    run = observed("reconnect-base-above-max", [], callbacks=[rejected], problem="the client rejects its settings")
    verdict = judge("KIP-144/8", [run])
    assert (verdict.state, verdict.runs_needed) == (State.NOT_OBSERVABLE, None)
    assert verdict.why == "the client rejects the settings of the probe: max must be >= base"


def test_first_retry_of_a_join_may_be_immediate() -> None:
    journal, at_ms = Journal(), 0.0
    for wait_ms in (5, 100, 100, 100, 100, None):
        journal.request("JoinGroup", at_ms, at_ms + 1, group_id="g", errors=[14])
        at_ms += 1 + (wait_ms or 0)
    assert judge("KIP-580/12", [observed("join-error", journal.events, role=Role.CONSUMER)]).state is State.PASS


def test_waits_of_several_rules_are_inconclusive_about_jitter() -> None:
    waits = [50.0, 1, 200, 3, 800, 2, 70, 1000] * 3
    run = observed("reconnect-closed", closed_connections(waits).events)
    runs = [msgspec.structs.replace(run, repetition=number) for number in range(4)]
    runs += [
        observed("reconnect-closed", closed_connections(waits[1:]).events, repetition=number) for number in range(4, 8)
    ]
    verdict = judge("KIP-144/9", runs)
    assert (verdict.state, verdict.runs_needed) == (State.INCONCLUSIVE, None)
    assert verdict.why.endswith("do not follow one rule")


def test_constant_reconnects_after_a_first_wait_are_no_backoff() -> None:
    run = observed("reconnect-closed", closed_connections([120.0, *[3.0] * 40]).events)
    assert judge("KIP-144/4", [run]).state is State.DEVIATES


def test_waiting_the_maximum_from_the_second_time_on_is_no_reset() -> None:
    run = observed("reconnect-closed", closed_connections([1.0, *[1000.0] * 9]).events)
    assert judge("KIP-144/4", [run]).state is State.PASS


def test_waits_that_are_only_late_have_no_jitter() -> None:
    late = [101.0, 101, 102, 101, 130, 101, 115, 101, 102, 140, 101, 101, 103, 101, 125, 101]
    run = observed("produce-timed-out", failed_batch(late).events)
    verdict = judge("KIP-580/16", [msgspec.structs.replace(run, repetition=number) for number in range(8)])
    assert verdict.state is State.DEVIATES
    assert verdict.why == "waits without jitter: 24 waits of at least 101 ms; expected ± 20%"


def test_request_delayed_until_the_client_left_ends_at_its_timeout(journal: Journal) -> None:
    for number, at_ms in enumerate(range(0, 12_600, 2100)):  # request.timeout.ms and 100 ms
        connection = journal.connection(at_ms, 20_001, by_client=True, answers=True)
        journal.batch(at_ms + 5, 20_000 + number / 10, sequence=0, connection=connection)
    verdict = judge("KIP-580/1", [observed("produce-mute", journal.events)])
    assert verdict.measured["wait_3_ms"] == pytest.approx(100)
    assert verdict.state is State.DEVIATES


def test_few_waits_require_a_stated_number_of_further_runs() -> None:
    verdict = judge("KIP-144/1", [observed("reconnect-closed", closed_connections([50, 100]).events)])
    assert (verdict.state, verdict.runs_needed) == (State.INCONCLUSIVE, 1)


def test_producer_statement_is_not_judged_for_a_consumer() -> None:
    run = observed("produce-not-leader", failed_batch([100] * 9).events, role=Role.CONSUMER)
    assert judge("KIP-580/1", [run]).state is State.NOT_OBSERVABLE


def test_deviating_probe_decides() -> None:
    right = observed("reconnect-closed", closed_connections(RIGHT).events)
    wrong = observed("reconnect-reset", closed_connections(CONSTANT).events)
    verdict = judge("KIP-144/1", [right, wrong])
    assert (verdict.state, verdict.path) == (State.DEVIATES, "accepted, then reset")


def test_unknown_statement_raises_key_error() -> None:
    with pytest.raises(KeyError):
        judge("KIP-1/1", [])


class TestFact11:
    """A client can conform to its own configuration."""

    def test_base_alone_sets_the_maximum(self) -> None:
        run = observed("reconnect-constant", closed_connections([200.0] * 9).events, settings=ALONE)
        assert judge("KIP-144/7", [run]).state is State.PASS

    def test_growing_waits_then_deviate(self) -> None:
        run = observed("reconnect-constant", closed_connections([200, 400, 800, 1600, 3200]).events, settings=ALONE)
        assert judge("KIP-144/7", [run]).state is State.DEVIATES


# Retries do not delay connections.
ALONE = {"reconnect.backoff.ms": 200, "retry.backoff.max.ms": 10}


class TestFact12:
    """A verdict is refused if the machine was too busy."""

    def test_lag_above_the_tolerance_requires_another_run(self) -> None:
        run = observed("reconnect-closed", closed_connections(RIGHT).events, virtual=False, lag_ms=40)
        verdict = judge("KIP-144/1", [run])
        assert (verdict.state, verdict.runs_needed) == (State.INCONCLUSIVE, 1)
        assert "lagged 40 ms" in verdict.why

    def test_runs_with_less_lag_are_judged(self) -> None:
        busy = observed("reconnect-closed", closed_connections(CONSTANT).events, virtual=False, lag_ms=40)
        calm = observed("reconnect-closed", closed_connections(RIGHT).events, virtual=False, lag_ms=2)
        verdict = judge("KIP-144/1", [busy, calm])
        assert (verdict.state, verdict.runs) == (State.PASS, 1)


class TestASequenceAlone:
    def test_single_sequence_is_judged_by_settings_alone(self) -> None:
        assert judge_sequence(sequence(RIGHT), SETTINGS).state is State.PASS
        wrong = judge_sequence(sequence(CONSTANT), SETTINGS)
        assert (wrong.statement, wrong.state) == ("KIP-144/1", State.DEVIATES)
        assert wrong.sort is Sort.DIFFERS_FROM_KIP

    def test_without_settings_a_sequence_is_not_judged(self) -> None:
        assert judge_sequence(sequence(RIGHT), {}).state is State.INCONCLUSIVE

    def test_some_kinds_of_sequences_have_no_kip(self) -> None:
        assert judge_sequence(sequence(RIGHT, Kind.FETCH), SETTINGS).state is State.NOT_OBSERVABLE


def sequence(waits_ms: list[float], kind: Kind = Kind.CONNECT) -> AttemptSequence:
    at_ms, attempts = 0.0, []
    for wait_ms in (*waits_ms, 0):
        attempts.append(Attempt(at_ns=ns(at_ms), ended_ns=ns(at_ms + 1), outcome=Outcome.DISCONNECTED))
        at_ms += 1 + wait_ms
    return AttemptSequence(kind=kind, key="app to broker 1 as bootstrap", attempts=attempts)


def test_record_failing_on_close_did_not_fail_too_early() -> None:
    rejected = [
        callback("sent", 0, 0),
        callback("failed", 5000, 0),
        callback("sent", 9000, 1),
        callback("failed", 9001, 1),
    ]
    run = observed("delivery-mute", [], callbacks=[*rejected, callback("closed", 9300)], ended_ms=9500)
    verdict = judge("KIP-91/2", [run])
    assert (verdict.state, verdict.measured["failed"]) == (State.PASS, 1)
