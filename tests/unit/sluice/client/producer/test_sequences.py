import pytest

from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer.batch import Codec, ProducerBatch, ProducerState
from sluice.client.producer.sequences import NO_PRODUCER_YET, ProducerIdAndEpoch, ProducerSequences
from tests.support.producing import Nobody

T0 = TopicPartition("t", 0)


@pytest.fixture
def sequences() -> ProducerSequences:
    return ProducerSequences()


def in_flight(sequences: ProducerSequences, records: int, base_sequence: int) -> ProducerBatch:
    batch = ProducerBatch(T0, Codec(), 1000, 0, memory=0, ratio=1.0)
    for _ in range(records):
        batch.try_append(0, None, b"", (), Nobody())
    batch.set_state(ProducerState(7, 0, base_sequence))
    sequences.add_in_flight(batch)
    return batch


def test_sequence_wraps_from_the_maximum_to_0(sequences: ProducerSequences) -> None:
    sequences.increment(T0, 2**31 - 1)
    assert sequences.next_sequence(T0) == 2**31 - 1
    sequences.increment(T0, 3)
    assert sequences.next_sequence(T0) == 2


def test_batches_in_flight_are_found_by_base_sequence(sequences: ProducerSequences) -> None:
    assert sequences.first_in_flight(T0) == -1
    later, first = in_flight(sequences, 1, 5), in_flight(sequences, 2, 3)
    assert sequences.first_in_flight(T0) == 3
    sequences.remove_in_flight(first)
    sequences.remove_in_flight(first)
    assert sequences.first_in_flight(T0) == 5
    sequences.remove_in_flight(later)
    assert not sequences.has_in_flight(T0)


def test_next_expected_sequence_follows_the_last_acknowledged(sequences: ProducerSequences) -> None:
    assert sequences.is_next(T0, 0)
    sequences.acked(in_flight(sequences, 3, 0), 100)
    assert sequences.is_next(T0, 3)
    assert sequences.last_acked_offset(T0) == 102
    sequences.acked(in_flight(sequences, 1, 0), -1)
    assert (sequences.is_next(T0, 3), sequences.last_acked_offset(T0)) == (True, 102)


def test_epoch_bump_renumbers_batches_in_flight(sequences: ProducerSequences) -> None:
    first, second = in_flight(sequences, 3, 10), in_flight(sequences, 2, 13)
    sequences.acked(first, 50)
    bumped = ProducerIdAndEpoch(7, 1)
    sequences.start_at_beginning(T0, bumped)
    assert (first.state, second.state) == ((7, 1, 0, False), (7, 1, 3, False))
    assert (sequences.next_sequence(T0), sequences.producer(T0)) == (5, bumped)
    assert sequences.is_next(T0, 0)


def test_gap_after_a_rejected_batch_is_closed(sequences: ProducerSequences) -> None:
    sequences.increment(T0, 6)
    before, failed, after = in_flight(sequences, 1, 0), in_flight(sequences, 2, 1), in_flight(sequences, 3, 3)
    sequences.remove_in_flight(failed)
    sequences.close_gap(failed)
    assert (before.state.base_sequence, after.state.base_sequence) == (0, 1)
    assert sequences.next_sequence(T0) == 4


@pytest.mark.parametrize("method", ["forget", "reset"])
def test_forgotten_partition_restarts_at_0(sequences: ProducerSequences, method: str) -> None:
    sequences.increment(T0, 5)
    sequences.forget(T0) if method == "forget" else sequences.reset()
    assert (sequences.next_sequence(T0), sequences.producer(T0)) == (0, NO_PRODUCER_YET)
