"""Fact 3 about clients: a retry is identified by its batch, not by its connection."""

from sluice.audit.judge.model.attempts import AttemptSequence, Outcome
from sluice.audit.judge.observer.batches import MOVED, produce_sequences
from sluice.journal_events import TopicPartition
from tests.support.journals import Journal


def outcomes_by_batch(sequences: list[AttemptSequence]) -> dict[str, list[Outcome]]:
    return {sequence.key: [attempt.outcome for attempt in sequence.attempts] for sequence in sequences}


ERROR, SUCCEEDED = Outcome.ERROR, Outcome.SUCCEEDED


def test_batches_in_flight_are_distinguished_by_sequences(journal: Journal) -> None:
    for at_ms, sequence in ((0, 0), (1, 1), (2, 2), (103, 0), (104, 1), (105, 2)):
        journal.batch(at_ms, at_ms + 0.5, sequence=sequence, errors=[7] if at_ms < 100 else [])
    found = produce_sequences(journal.events)
    assert outcomes_by_batch(found) == {f"t-0@7.0.{number}": [ERROR, SUCCEEDED] for number in range(3)}
    assert [round(gap, 1) for sequence in found for gap in sequence.gaps_ms()] == [102.5] * 3


def test_batch_repeated_over_another_connection_is_the_same(journal: Journal) -> None:
    journal.batch(0, ended_ms=10, sequence=0, connection=1)
    journal.batch(120, 121, sequence=0, connection=2)
    assert outcomes_by_batch(produce_sequences(journal.events)) == {"t-0@7.0.0": [Outcome.DISCONNECTED, SUCCEEDED]}


def test_sequence_number_of_other_records_is_another_batch(journal: Journal) -> None:
    """As in kafkajs, which uses the number of a batch that it gave up for the next one."""
    for at_ms, record, errors in ((0, "a", [7]), (101, "a", [7]), (131, "b", [7]), (232, "b", [])):
        journal.batch(at_ms, at_ms + 0.5, sequence=4, records=[record], errors=errors)
    found = produce_sequences(journal.events)
    assert [[attempt.outcome for attempt in one.attempts] for one in found] == [[ERROR, ERROR], [ERROR, SUCCEEDED]]


class TestWithoutNumbers:
    def test_batch_of_the_same_size_after_a_failure_is_a_retry(self, journal: Journal) -> None:
        for at_ms, size, errors in ((0, 100, [7]), (1, 200, [7]), (101, 200, []), (102, 100, [])):
            journal.batch(at_ms, at_ms + 0.5, errors=errors, request_bytes=size)
        found = produce_sequences(journal.events)
        assert outcomes_by_batch(found) == {"t-0~1": [ERROR, SUCCEEDED], "t-0~2": [ERROR, SUCCEEDED]}
        assert [round(sequence.gaps_ms()[0], 1) for sequence in found] == [101.5, 99.5]

    def test_batch_after_a_success_is_new(self, journal: Journal) -> None:
        journal.batch(0, 1)
        journal.batch(10, 11)
        assert outcomes_by_batch(produce_sequences(journal.events)) == {"t-0~1": [SUCCEEDED], "t-0~2": [SUCCEEDED]}

    def test_batch_before_the_failure_response_is_new(self, journal: Journal) -> None:
        journal.batch(0, 50, errors=[7])
        journal.batch(10, 60)
        assert len(produce_sequences(journal.events)) == 2

    def test_partitions_have_separate_batches(self, journal: Journal) -> None:
        journal.batch(0, 1, partition=0, errors=[7])
        journal.batch(100, 101, partition=1)
        assert len(produce_sequences(journal.events)) == 2


def test_in_a_request_with_several_partitions_repeated_ones_have_failed(journal: Journal) -> None:
    both = [TopicPartition(topic="t", partition=n, producer_id=7, producer_epoch=0, base_sequence=0) for n in (0, 1)]
    journal.request("Produce", 0, 1, partitions=both, errors=[7])
    journal.request("Produce", 100, 101, partitions=both[:1])
    assert outcomes_by_batch(produce_sequences(journal.events)) == {
        "t-0@7.0.0": [ERROR, SUCCEEDED],
        "t-1@7.0.0": [SUCCEEDED],
    }


def test_record_that_a_retry_sends_to_another_partition_decides_nothing(journal: Journal) -> None:
    """As in kafkajs, which chooses a partition for each retry of a record without a key."""
    for at_ms, partition in ((0, 0), (301, 1), (902, 0)):
        journal.batch(at_ms, at_ms + 0.5, partition=partition, records=["a"], errors=[7])
    journal.batch(950, 951, records=["b"])
    assert [one.doubt for one in produce_sequences(journal.events)] == [MOVED, MOVED, ""]
