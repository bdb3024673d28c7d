"""Facts 4, 6 and 7 about clients: grouping of reconnect attempts, and kinds of failure."""

import msgspec
import pytest

from sluice.audit.judge.model.attempts import AFTER_VERSIONS, CLOSED, LOST, SILENT, AttemptSequence, Outcome
from sluice.audit.judge.observer.connections import connect_sequences, connections, group_connections, most_half_open
from sluice.journal_events import AnyEvent, ClientEvent
from tests.support.journals import Journal, closed_connections


def gaps(sequences: list[AttemptSequence]) -> list[list[float]]:
    return [[round(gap, 3) for gap in sequence.gaps_ms()] for sequence in sequences]


def outcomes(sequence: AttemptSequence) -> list[Outcome]:
    return [attempt.outcome for attempt in sequence.attempts]


def test_wait_lasts_from_one_connections_end_to_the_next_ones_start() -> None:
    assert gaps(connect_sequences(closed_connections([50, 100, 200]).events)) == [[50, 100, 200]]


class TestPaths:
    """Clients handle kinds of failure differently, so they are distinguished."""

    def test_accepted_then_closed(self) -> None:
        (sequence,) = connect_sequences(closed_connections([50]).events)
        assert (sequence.path, outcomes(sequence)) == (CLOSED, [Outcome.DISCONNECTED] * 2)

    def test_accepted_and_silent_until_the_client_gave_up(self, journal: Journal) -> None:
        journal.connection(0, 2000, by_client=True)
        (sequence,) = connect_sequences(journal.events)
        assert (sequence.path, outcomes(sequence)) == (SILENT, [Outcome.ABANDONED])

    def test_dropped_after_api_versions_was_answered(self, journal: Journal) -> None:
        journal.connection(0, 3, answers=True)
        (sequence,) = connect_sequences(journal.events)
        assert (sequence.path, outcomes(sequence)) == (AFTER_VERSIONS, [Outcome.SUCCEEDED])

    def test_lost_after_success(self, journal: Journal) -> None:
        number = journal.connection(0, 100, answers=True)
        journal.request("Metadata", 10, 11, connection=number)
        (sequence,) = connect_sequences(journal.events)
        assert sequence.path == LOST

    def test_error_response_to_api_versions_is_no_success(self, journal: Journal) -> None:
        number = journal.connection(0, 3)
        journal.request("ApiVersions", 1, 2, connection=number, errors=[35])
        (sequence,) = connect_sequences(journal.events)
        assert outcomes(sequence) == [Outcome.ERROR]

    def test_unfinished_connection_is_open(self, journal: Journal) -> None:
        journal.connection(0)
        (sequence,) = connect_sequences(journal.events)
        assert outcomes(sequence) == [Outcome.UNANSWERED]
        assert sequence.attempts[0].ended_ns is None


class TestTheKeyOfAReconnect:
    """Client instance, broker and role: each has a separate backoff."""

    def test_brokers_have_separate_sequences(self, journal: Journal) -> None:
        for broker, times in ((1, (0, 51, 152)), (2, (10, 71))):
            for at_ms in times:
                journal.connection(at_ms, at_ms + 1, broker=broker)
        assert gaps(connect_sequences(journal.events)) == [[50, 100], [60]]

    def test_hosts_have_separate_sequences(self) -> None:
        one, other = closed_connections([50, 100], host="10.0.0.1"), closed_connections([60, 110], host="10.0.0.2")
        renumbered = [*one.events, *(_later_number(event) for event in other.events)]
        assert gaps(connect_sequences(sorted(renumbered, key=lambda event: event.at_ns))) == [[50, 100], [60, 110]]

    def test_simultaneous_roles_are_distinguished(self, journal: Journal) -> None:
        journal.connection(0, answers=True)
        broker = journal.connection(5, 100, answers=True)
        journal.batch(20, 21, connection=broker)
        again = journal.connection(150, answers=True)
        journal.batch(160, 161, connection=again)
        bootstrap, of_broker = connect_sequences(journal.events)
        assert [bootstrap.key, of_broker.key] == ["app to broker 1 as bootstrap", "app to broker 1 as broker"]
        assert gaps([bootstrap, of_broker]) == [[], [50]]

    def test_coordinator_and_broker_connections_are_distinguished_by_their_apis(self, journal: Journal) -> None:
        coordinator, broker = journal.connection(0, 100, answers=True), journal.connection(1, 100, answers=True)
        journal.request("Heartbeat", 10, 11, connection=coordinator, group_id="g")
        journal.request("Fetch", 10, 11, connection=broker)
        later = journal.connection(150, answers=True)
        journal.request("Fetch", 160, 161, connection=later)
        found = connect_sequences(journal.events)
        assert gaps(found) == [[], [50]]
        assert found[1].key == "app to broker 1 as broker"

    def test_simultaneously_failing_sequences_are_distinguished_by_due_times(self, journal: Journal) -> None:
        for at_ms in (0.0, 45.0, 136.0, 338.0):
            journal.connection(at_ms, at_ms + 1)
        for at_ms in (0.5, 1001.5, 2002.5):
            journal.connection(at_ms, at_ms + 1)
        assert gaps(connect_sequences(journal.events)) == [[44, 90, 201], [1000, 1000]]

    def test_instances_with_one_client_id_are_distinguished_by_software(self) -> None:
        old = Journal(software=("rdkafka", "2.3"))
        new = old.beside(client_id="app", software=("rdkafka", "2.12"))
        old.connection(0, 1, answers=False, names=False, port=41000)
        old.connection(51, 52, answers=False, names=False, port=41002)
        new.connection(2, 3, answers=False, names=False, port=41001)
        assert gaps(connect_sequences(old.events)) == [[50], []]

    def test_otherwise_close_ports_distinguish_instances(self, journal: Journal) -> None:
        for at_ms, port in ((0, 40000), (0.5, 50000), (51, 50001), (51.2, 40001)):
            journal.connection(at_ms, at_ms + 1, port=port)
        by_port = [[one.port for one in row.connections] for row in group_connections(connections(journal.events))]
        assert by_port == [[40000, 40001], [50000, 50001]]


def _later_number(event: AnyEvent) -> AnyEvent:
    assert isinstance(event, ClientEvent)
    changed: AnyEvent = msgspec.structs.replace(event, connection=event.connection + 100)
    return changed


class TestWhatIsNoRetry:
    def test_connection_closed_by_the_client_starts_a_new_sequence(self, journal: Journal) -> None:
        journal.connection(0, 100, answers=True, by_client=True)
        journal.connection(5000, answers=True)
        assert gaps(connect_sequences(journal.events)) == [[], []]

    def test_success_separates_sequences_of_failures(self, journal: Journal) -> None:
        """Fact 7: clients differ in the reset point; the gap after a success is judged separately."""
        journal.connection(0, 1)
        journal.connection(51, 60, answers=True)
        journal.connection(112, 113)
        (sequence,) = connect_sequences(journal.events)
        assert outcomes(sequence) == [Outcome.DISCONNECTED, Outcome.SUCCEEDED, Outcome.DISCONNECTED]
        assert gaps([sequence]) == [[50, 52]]


SIMULTANEOUS = {
    "one after the other": ([(0, 10), (20, 30)], 1),
    "three simultaneously": ([(0, 10), (5, 30), (6, 7)], 3),
}


@pytest.mark.parametrize(("times", "most"), SIMULTANEOUS.values(), ids=SIMULTANEOUS)
def test_simultaneous_connection_attempts_are_counted(times: list[tuple[float, float]], most: int) -> None:
    journal = Journal()
    for at_ms, until_ms in times:
        journal.connection(at_ms, until_ms)
    assert most_half_open(connections(journal.events)) == most


def test_connection_closed_by_the_client_is_not_retried_when_another_is_lost() -> None:
    journal = Journal(client_id="app")
    journal.connection(0, 40, by_client=True, answers=True)  # to the bootstrap address
    journal.connection(35, 60, answers=True)
    journal.connection(62, 862, by_client=True)
    journal.connection(863, 1663, by_client=True)
    assert gaps(connect_sequences(journal.events)) == [[], [2, 1]]


BEFORE_THE_CLOSE = {"that it gave up": (False, 4), "that it used and closed": (True, 1)}


@pytest.mark.parametrize(("answers", "attempts"), BEFORE_THE_CLOSE.values(), ids=BEFORE_THE_CLOSE)
def test_client_connects_again_before_the_broker_notices_the_close_of_a_connection(
    answers: bool, attempts: int
) -> None:
    journal = Journal()
    for number in range(4):
        journal.connection(3000.0 * number, 3000.0 * (number + 1) + 1, by_client=True, answers=answers)
    found = connect_sequences(journal.events)
    assert max(len(each.attempts) for each in found) == attempts
