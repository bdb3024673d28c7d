import pytest

from sluice.audit.judge import findings
from sluice.audit.judge.model.observation import Callback, Observation
from sluice.audit.judge.model.verdict import FindingKind
from tests.support.audit_events import Journal, callback, closed_connections, failed_batch, observed


def kinds(*runs: Observation) -> list[FindingKind]:
    return [finding.kind for finding in findings(runs)]


class TestStorms:
    def test_hundreds_of_connections_within_seconds_are_one(self) -> None:
        (finding,) = findings([observed("reconnect-closed", closed_connections([10.0] * 300).events)])
        assert finding.kind is FindingKind.STORM
        assert finding.why == "301 connections within 5 s"

    def test_fifty_in_five_seconds_are_none(self) -> None:
        assert kinds(observed("reconnect-closed", closed_connections([100.0] * 300).events)) == []

    @pytest.mark.parametrize(("errors", "found"), [([], []), ([6], [FindingKind.STORM])], ids=["well", "failing"])
    def test_what_a_workload_asks_for_counts_only_if_it_fails(
        self, errors: list[int], found: list[FindingKind]
    ) -> None:
        journal = Journal()
        for number in range(300):
            journal.request("Fetch", number, number + 0.5, errors=errors)
        assert kinds(observed("fetch-error", journal.events)) == found

    @pytest.mark.parametrize(("again", "found"), [(True, [FindingKind.STORM]), (False, [])], ids=["again", "once"])
    def test_batches_count_only_if_they_come_again(self, again: bool, found: list[FindingKind]) -> None:
        journal = Journal()
        for number in range(300):
            journal.batch(10 * number, 10 * number + 1, errors=[6], sequence=0 if again else number)
        assert kinds(observed("produce-no-retry", journal.events)) == found


class TestStalls:
    def test_silence_after_the_fault_is_one(self) -> None:
        journal = Journal()
        journal.batch(0, 1, errors=[7])
        run = observed("produce-timed-out", journal.events, fault_ms=(0, 1000), ended_ms=15_000)
        assert kinds(run) == [FindingKind.STALL]

    def test_what_comes_afterwards_ends_it(self) -> None:
        journal = Journal()
        journal.batch(0, 1, errors=[7])
        journal.batch(2000, 2001)
        assert kinds(observed("produce-timed-out", journal.events, fault_ms=(0, 1000), ended_ms=15_000)) == []

    @pytest.mark.parametrize(
        ("callbacks", "ended_ms"),
        [([], 5000), ([callback("sent", 0, 0), callback("failed", 900, 0)], 15_000)],
        ids=["nobody looked for long", "it had nothing left to do"],
    )
    def test_it_is_none_where_nothing_was_to_be_seen(self, callbacks: list[Callback], ended_ms: float) -> None:
        journal = Journal()
        journal.batch(0, 1, errors=[7])
        run = observed("produce-timed-out", journal.events, fault_ms=(0, 1000), ended_ms=ended_ms, callbacks=callbacks)
        assert kinds(run) == []


class TestDuplicates:
    def test_a_batch_that_was_acknowledged_and_comes_again_is_one(self) -> None:
        journal = Journal()
        journal.batch(0, 1, sequence=0)
        journal.batch(100, 101, sequence=0)
        (finding,) = findings([observed("produce-mute", journal.events)])
        assert (finding.kind, finding.measured["batches"]) == (FindingKind.DUPLICATE, 1)

    def test_after_an_error_it_is_a_retry(self) -> None:
        assert kinds(observed("produce-mute", failed_batch([100, 200]).events)) == []

    def test_an_answer_that_a_rule_may_have_cut_short_is_no_acknowledgement(self) -> None:
        journal = Journal()
        one = failed_batch([]).events[0].partitions  # type: ignore[union-attr]
        journal.request("Produce", 0, 1, partitions=one, rule_id="mid-response")
        journal.request("Produce", 100, 101, partitions=one)
        assert kinds(observed("produce-mute", journal.events)) == []

    def test_a_try_that_was_read_when_the_client_had_long_gone_is_none(self) -> None:
        journal = Journal()
        muted = journal.connection(0, 1503, by_client=True, answers=True)
        other = journal.connection(900, 5000, by_client=True, answers=True)
        journal.batch(910, 911, sequence=0, connection=other)
        journal.batch(1501, 1502, sequence=0, connection=muted)
        assert kinds(observed("throttle-long", journal.events)) == []

    def test_an_answer_that_left_when_the_connection_ended_is_no_acknowledgement(self) -> None:
        journal = Journal()
        lost = journal.connection(0, 102, answers=True)
        journal.batch(100, 101, sequence=0, connection=lost)
        journal.batch(200, 201, sequence=0, connection=journal.connection(150, 5000, answers=True))
        assert kinds(observed("metadata-disconnect", journal.events)) == []


class TestCountersThatWrap:
    def test_waits_that_fall_back_after_many_failures_are_told_with_their_number(self) -> None:
        waits = [*[1000.0] * 32, 50, 100, 200, 400, 800]
        (finding,) = findings([observed("long-outage", closed_connections(waits).events)])
        assert (finding.kind, finding.measured["failures"]) == (FindingKind.WRAPPED, 33)

    def test_one_wait_that_was_short_before_hides_none(self) -> None:
        waits = [5.0, 10, 20, 40, *[50.0] * 20, 17, *[50.0] * 7, 0, 10, 11, 22, 42, 51, 50]
        (finding,) = findings([observed("long-outage", failed_batch(waits).events)])
        assert (finding.kind, finding.measured["failures"]) == (FindingKind.WRAPPED, 33)

    def test_one_short_wait_is_none(self) -> None:
        waits = [*[1000.0] * 32, 50, 1000, 1000]
        assert kinds(observed("long-outage", closed_connections(waits).events)) == []

    def test_what_falls_back_by_milliseconds_is_none(self) -> None:
        waits = [*[10.0] * 32, 1, 2, 4, 8]
        assert kinds(observed("long-outage", closed_connections(waits).events)) == []

    def test_rows_of_which_there_are_several_may_be_mixed_up(self) -> None:
        journal = closed_connections([*[1000.0] * 32, 50, 100, 200, 400, 800])
        for at_ms in range(5000, 29_000, 4000):
            journal.connection(at_ms, at_ms + 3000, answers=True)
        assert kinds(observed("long-outage", journal.events)) == []

    def test_a_row_of_another_kind_refutes_nothing(self) -> None:
        waits = [*[1000.0] * 32, 50, 100, 200, 400, 800]
        runs = [
            observed("long-outage", failed_batch(waits).events),
            observed("long-outage", closed_connections([1000.0] * 60).events, repetition=1),
        ]
        assert kinds(*runs) == [FindingKind.WRAPPED]

    def test_a_row_that_did_not_fall_back_then_refutes_it(self) -> None:
        runs = [
            observed("long-outage", closed_connections(waits).events, repetition=number)
            for number, waits in enumerate(([*[1000.0] * 32, 50, 100, 200, 400, 800], [1000.0] * 60))
        ]
        assert kinds(*runs) == []


def test_of_several_runs_the_worst_is_told() -> None:
    runs = [
        observed("reconnect-closed", closed_connections([20.0] * count).events, repetition=number)
        for number, count in enumerate((220, 240))
    ]
    (finding,) = findings(runs)
    assert finding.measured["repetition"] == 1


def test_a_run_that_was_none_has_no_findings() -> None:
    run = observed("reconnect-closed", closed_connections([1.0] * 300).events, problem="it did not start")
    assert findings([run]) == []
