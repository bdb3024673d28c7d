import pytest

from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer.batch import Codec, ProducerBatch, ProducerState
from sluice.client.producer.sequences import PartitionSequences, ProducerIdAndEpoch
from tests.support.producing import Nobody

T0 = TopicPartition("t", 0)


@pytest.fixture
def sequences() -> PartitionSequences:
    return PartitionSequences()


def in_flight(sequences: PartitionSequences, records: int, base_sequence: int) -> ProducerBatch:
    batch = ProducerBatch(T0, Codec(), 1000, 0, memory=0, ratio=1.0)
    for _ in range(records):
        batch.try_append(0, None, b"", (), Nobody())
    batch.set_state(ProducerState(7, 0, base_sequence))
    sequences.add_in_flight(batch)
    return batch


def test_sequence_wraps_from_the_maximum_to_0(sequences: PartitionSequences) -> None:
    sequences.increment(2**31 - 1)
    assert sequences.next_sequence == 2**31 - 1
    sequences.increment(3)
    assert sequences.next_sequence == 2


def test_batches_in_flight_are_found_by_base_sequence(sequences: PartitionSequences) -> None:
    assert sequences.first_in_flight == -1
    later, first = in_flight(sequences, 1, 5), in_flight(sequences, 2, 3)
    assert sequences.first_in_flight == 3
    sequences.remove_in_flight(first)
    sequences.remove_in_flight(first)
    assert sequences.first_in_flight == 5
    sequences.remove_in_flight(later)
    assert not sequences.in_flight


def test_next_expected_sequence_follows_the_last_acknowledged(sequences: PartitionSequences) -> None:
    assert sequences.is_next(0)
    sequences.acked(in_flight(sequences, 3, 0), 100)
    assert sequences.is_next(3)
    assert sequences.last_acked_offset == 102
    sequences.acked(in_flight(sequences, 1, 0), -1)
    assert (sequences.is_next(3), sequences.last_acked_offset) == (True, 102)


def test_epoch_bump_renumbers_batches_in_flight(sequences: PartitionSequences) -> None:
    first, second = in_flight(sequences, 3, 10), in_flight(sequences, 2, 13)
    sequences.acked(first, 50)
    bumped = ProducerIdAndEpoch(7, 1)
    sequences.start_at_beginning(bumped)
    assert (first.state, second.state) == ((7, 1, 0, False), (7, 1, 3, False))
    assert (sequences.next_sequence, sequences.producer) == (5, bumped)
    assert sequences.is_next(0)


def test_gap_after_a_rejected_batch_is_closed(sequences: PartitionSequences) -> None:
    sequences.increment(6)
    before, failed, after = in_flight(sequences, 1, 0), in_flight(sequences, 2, 1), in_flight(sequences, 3, 3)
    sequences.remove_in_flight(failed)
    sequences.close_gap(failed)
    assert (before.state.base_sequence, after.state.base_sequence) == (0, 1)
    assert sequences.next_sequence == 4
