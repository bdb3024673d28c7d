import pytest

from sluice.audit.judge import findings
from sluice.audit.judge.model.observation import Callback, Observation
from sluice.audit.judge.model.verdict import FindingKind
from tests.support.audit_events import callback, observed
from tests.support.journals import Journal, closed_connections, failed_batch


def kinds(*runs: Observation) -> list[FindingKind]:
    return [finding.kind for finding in findings(runs)]


class TestStorms:
    def test_hundreds_of_connections_within_seconds_are_a_storm(self) -> None:
        (finding,) = findings([observed("reconnect-closed", closed_connections([10.0] * 300).events)])
        assert finding.kind is FindingKind.STORM
        assert finding.why == "301 connections within 5 s"

    def test_fifty_connections_in_five_seconds_are_no_storm(self) -> None:
        assert kinds(observed("reconnect-closed", closed_connections([100.0] * 300).events)) == []

    @pytest.mark.parametrize(("errors", "found"), [([], []), ([6], [FindingKind.STORM])], ids=["well", "failing"])
    def test_requests_of_the_workload_count_only_if_they_fail(
        self, journal: Journal, errors: list[int], found: list[FindingKind]
    ) -> None:
        for number in range(300):
            journal.request("Fetch", number, number + 0.5, errors=errors)
        assert kinds(observed("fetch-error", journal.events)) == found

    @pytest.mark.parametrize(("again", "found"), [(True, [FindingKind.STORM]), (False, [])], ids=["again", "once"])
    def test_batches_count_only_if_repeated(self, journal: Journal, again: bool, found: list[FindingKind]) -> None:
        for number in range(300):
            journal.batch(10 * number, 10 * number + 1, errors=[6], sequence=0 if again else number)
        assert kinds(observed("produce-no-retry", journal.events)) == found


class TestStalls:
    def test_silence_after_the_fault_is_a_stall(self, journal: Journal) -> None:
        journal.batch(0, 1, errors=[7])
        run = observed("produce-timed-out", journal.events, fault_ms=(0, 1000), ended_ms=15_000)
        assert kinds(run) == [FindingKind.STALL]

    def test_later_request_ends_the_stall(self, journal: Journal) -> None:
        journal.batch(0, 1, errors=[7])
        journal.batch(2000, 2001)
        assert kinds(observed("produce-timed-out", journal.events, fault_ms=(0, 1000), ended_ms=15_000)) == []

    @pytest.mark.parametrize(
        ("callbacks", "ended_ms"),
        [([], 5000), ([callback("sent", 0, 0), callback("failed", 900, 0)], 15_000)],
        ids=["a short observation", "a finished workload"],
    )
    def test_stall_needs_an_observable_gap(self, journal: Journal, callbacks: list[Callback], ended_ms: float) -> None:
        journal.batch(0, 1, errors=[7])
        run = observed("produce-timed-out", journal.events, fault_ms=(0, 1000), ended_ms=ended_ms, callbacks=callbacks)
        assert kinds(run) == []


KAFKAJS = {
    "read while the broker handled the first request": (10_174, [10_168.0] * 5, []),
    "read just after it": (10_174, [10_180.0], []),
    "sent long after the acknowledgement": (500, [10_168.0], [FindingKind.DUPLICATE]),
    "sent after an acknowledgement later than request.timeout.ms": (700, [10_168.0], []),
    "sent within a round trip": (500, [505.0], []),
}


class TestDuplicates:
    def test_acknowledged_batch_sent_again_is_a_duplicate(self, journal: Journal) -> None:
        journal.batch(0, 1, sequence=0)
        journal.batch(100, 101, sequence=0)
        (finding,) = findings([observed("produce-mute", journal.events)])
        assert (finding.kind, finding.measured["batches"]) == (FindingKind.DUPLICATE, 1)

    def test_batch_sent_again_after_an_error_is_a_retry(self) -> None:
        assert kinds(observed("produce-mute", failed_batch([100, 200]).events)) == []

    def test_response_that_a_fault_may_have_cut_is_no_acknowledgement(self, journal: Journal) -> None:
        one = failed_batch([]).events[0].partitions  # type: ignore[union-attr]
        journal.request("Produce", 0, 1, partitions=one, rule_id="mid-response")
        journal.request("Produce", 100, 101, partitions=one)
        assert kinds(observed("produce-mute", journal.events)) == []

    def test_request_read_after_the_client_left_is_no_duplicate(self, journal: Journal) -> None:
        muted = journal.connection(0, 1503, by_client=True, answers=True)
        other = journal.connection(900, 5000, by_client=True, answers=True)
        journal.batch(910, 911, sequence=0, connection=other)
        journal.batch(1501, 1502, sequence=0, connection=muted)
        assert kinds(observed("throttle-long", journal.events)) == []

    def test_response_written_as_the_connection_ended_is_no_acknowledgement(self, journal: Journal) -> None:
        lost = journal.connection(0, 102, answers=True)
        journal.batch(100, 101, sequence=0, connection=lost)
        journal.batch(200, 201, sequence=0, connection=journal.connection(150, 5000, answers=True))
        assert kinds(observed("metadata-disconnect", journal.events)) == []

    @pytest.mark.parametrize(("answered_ms", "again_ms", "found"), KAFKAJS.values(), ids=KAFKAJS)
    def test_batch_of_kafkajs(
        self, journal: Journal, answered_ms: float, again_ms: list[float], found: list[FindingKind]
    ) -> None:
        """It retries on the connection that the broker does not read, and ignores late responses (2.2.4)."""
        journal.connection(0, answers=True)
        journal.batch(10, answered_ms, sequence=10, records=["a"])
        for at_ms in again_ms:
            journal.batch(at_ms, max(at_ms, answered_ms) + 2, sequence=10, records=["a"])
        # The sequence number is used again for another record.
        journal.batch(10_190, 10_192, sequence=10, records=["b"])
        settings: dict[str, float | str | bool] = {"request.timeout.ms": 600}
        assert kinds(observed("delivery-mute", journal.events, settings=settings)) == found


class TestCountersThatWrap:
    def test_waits_that_drop_after_many_failures_are_reported_with_their_number(self) -> None:
        waits = [*[1000.0] * 32, 50, 100, 200, 400, 800]
        (finding,) = findings([observed("long-outage", closed_connections(waits).events)])
        assert (finding.kind, finding.measured["failures"]) == (FindingKind.WRAPPED, 33)

    def test_drop_of_a_client_that_counts_by_call_is_none(self) -> None:
        waits = [*[1000.0] * 32, 50, 100, 200, 400, 800]
        run = observed("long-outage", closed_connections(waits).events, callbacks=[callback("gave-up", 32_000)])
        assert kinds(run) == []

    def test_earlier_short_wait_does_not_hide_the_drop(self) -> None:
        waits = [5.0, 10, 20, 40, *[50.0] * 20, 17, *[50.0] * 7, 0, 10, 11, 22, 42, 51, 50]
        (finding,) = findings([observed("long-outage", failed_batch(waits).events)])
        assert (finding.kind, finding.measured["failures"]) == (FindingKind.WRAPPED, 33)

    def test_single_short_wait_is_no_finding(self) -> None:
        waits = [*[1000.0] * 32, 50, 1000, 1000]
        assert kinds(observed("long-outage", closed_connections(waits).events)) == []

    def test_drop_by_milliseconds_is_no_finding(self) -> None:
        waits = [*[10.0] * 32, 1, 2, 4, 8]
        assert kinds(observed("long-outage", closed_connections(waits).events)) == []

    def test_parallel_sequences_may_be_mixed_up(self) -> None:
        journal = closed_connections([*[1000.0] * 32, 50, 100, 200, 400, 800])
        for at_ms in range(5000, 29_000, 4000):
            journal.connection(at_ms, at_ms + 3000, answers=True)
        assert kinds(observed("long-outage", journal.events)) == []

    def test_sequence_of_another_kind_refutes_nothing(self) -> None:
        waits = [*[1000.0] * 32, 50, 100, 200, 400, 800]
        runs = [
            observed("long-outage", failed_batch(waits).events),
            observed("long-outage", closed_connections([1000.0] * 60).events, repetition=1),
        ]
        assert kinds(*runs) == [FindingKind.WRAPPED]

    def test_sequence_without_the_drop_refutes_it(self) -> None:
        runs = [
            observed("long-outage", closed_connections(waits).events, repetition=number)
            for number, waits in enumerate(([*[1000.0] * 32, 50, 100, 200, 400, 800], [1000.0] * 60))
        ]
        assert kinds(*runs) == []


def test_worst_of_several_runs_is_reported() -> None:
    runs = [
        observed("reconnect-closed", closed_connections([20.0] * count).events, repetition=number)
        for number, count in enumerate((220, 240))
    ]
    (finding,) = findings(runs)
    assert finding.measured["repetition"] == 1


def test_failed_run_has_no_findings() -> None:
    run = observed("reconnect-closed", closed_connections([1.0] * 300).events, problem="it did not start")
    assert findings([run]) == []
