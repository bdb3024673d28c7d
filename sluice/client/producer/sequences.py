"""The sequence numbers of an idempotent producer, by partition (Kafka's TxnPartitionMap and TxnPartitionEntry).

A batch gets its sequence at its first drain and keeps it over retries. Under a new epoch, sequences restart at 0, also
those of batches in flight.
"""

from typing import NamedTuple

from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, add_to_sequence

from .batch import ProducerBatch, ProducerState

_NONE_ACKED = -1


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH

    @property
    def is_valid(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID


NO_PRODUCER_YET = ProducerIdAndEpoch()


class _Partition:
    def __init__(self) -> None:
        self.producer = NO_PRODUCER_YET
        self.next_sequence = 0
        self.last_acked_sequence = _NONE_ACKED
        self.last_acked_offset = -1
        self.in_flight: list[ProducerBatch] = []  # drained and incomplete, by sequence

    def start_at_beginning(self, producer: ProducerIdAndEpoch) -> None:
        sequence = 0
        for batch in self.in_flight:
            is_transactional = batch.state.is_transactional
            batch.reset_state(ProducerState(producer.producer_id, producer.epoch, sequence, is_transactional))
            sequence = add_to_sequence(sequence, batch.record_count)
        self.producer = producer
        self.next_sequence = sequence
        self.last_acked_sequence = _NONE_ACKED


class ProducerSequences:
    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, _Partition] = {}

    def _of(self, partition: TopicPartition) -> _Partition:
        found = self._partitions.get(partition)
        if found is None:
            found = self._partitions[partition] = _Partition()
        return found

    def producer(self, partition: TopicPartition) -> ProducerIdAndEpoch:
        return self._of(partition).producer

    def next_sequence(self, partition: TopicPartition) -> int:
        return self._of(partition).next_sequence

    def increment(self, partition: TopicPartition, records: int) -> None:
        found = self._of(partition)
        found.next_sequence = add_to_sequence(found.next_sequence, records)

    def is_next(self, partition: TopicPartition, sequence: int) -> bool:
        return sequence - self._of(partition).last_acked_sequence == 1

    def last_acked_offset(self, partition: TopicPartition) -> int:
        return self._of(partition).last_acked_offset

    def acked(self, batch: ProducerBatch, base_offset: int) -> None:
        found = self._of(batch.partition)
        found.last_acked_sequence = max(found.last_acked_sequence, batch.last_sequence)
        if base_offset >= 0:
            found.last_acked_offset = max(found.last_acked_offset, base_offset + batch.record_count - 1)

    def add_in_flight(self, batch: ProducerBatch) -> None:
        assert batch.has_sequence, f"{batch} has no sequence"
        in_flight = self._of(batch.partition).in_flight
        in_flight.append(batch)
        in_flight.sort(key=_by_sequence)

    def remove_in_flight(self, batch: ProducerBatch) -> None:
        in_flight = self._of(batch.partition).in_flight
        if batch in in_flight:
            in_flight.remove(batch)

    def has_in_flight(self, partition: TopicPartition) -> bool:
        return bool(self._of(partition).in_flight)

    def first_in_flight(self, partition: TopicPartition) -> int:
        in_flight = self._of(partition).in_flight
        return in_flight[0].state.base_sequence if in_flight else NO_SEQUENCE

    def start_at_beginning(self, partition: TopicPartition, producer: ProducerIdAndEpoch) -> None:
        self._of(partition).start_at_beginning(producer)

    def close_gap(self, failed: ProducerBatch) -> None:
        found = self._of(failed.partition)
        found.next_sequence -= failed.record_count
        for batch in found.in_flight:
            if batch.state.base_sequence >= failed.state.base_sequence:
                moved = batch.state.base_sequence - failed.record_count
                assert moved >= 0, f"{batch}: sequence {moved} is negative"
                batch.reset_state(batch.state._replace(base_sequence=moved))

    def forget(self, partition: TopicPartition) -> None:
        self._partitions.pop(partition, None)

    def reset(self) -> None:
        self._partitions.clear()


def _by_sequence(batch: ProducerBatch) -> tuple[int, int, int]:
    return batch.state[:3]
