"""The sequence numbers of an idempotent producer, by partition (Kafka's TxnPartitionMap and TxnPartitionEntry).

A batch gets its sequence at its first drain and keeps it over retries. Under a new epoch, sequences restart at 0, also
those of batches in flight.
"""

from collections import defaultdict
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


class PartitionSequences:
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

    def increment(self, records: int) -> None:
        self.next_sequence = add_to_sequence(self.next_sequence, records)

    def is_next(self, sequence: int) -> bool:
        return sequence - self.last_acked_sequence == 1

    def acked(self, batch: ProducerBatch, base_offset: int) -> None:
        self.last_acked_sequence = max(self.last_acked_sequence, batch.last_sequence)
        if base_offset >= 0:
            self.last_acked_offset = max(self.last_acked_offset, base_offset + batch.record_count - 1)

    def add_in_flight(self, batch: ProducerBatch) -> None:
        assert batch.has_sequence, f"{batch} has no sequence"
        self.in_flight.append(batch)
        self.in_flight.sort(key=lambda one: one.state[:3])

    def remove_in_flight(self, batch: ProducerBatch) -> None:
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    @property
    def first_in_flight(self) -> int:
        return self.in_flight[0].state.base_sequence if self.in_flight else NO_SEQUENCE

    def close_gap(self, failed: ProducerBatch) -> None:
        self.next_sequence -= failed.record_count
        for batch in self.in_flight:
            if batch.state.base_sequence >= failed.state.base_sequence:
                moved = batch.state.base_sequence - failed.record_count
                assert moved >= 0, f"{batch}: sequence {moved} is negative"
                batch.reset_state(batch.state._replace(base_sequence=moved))


ProducerSequences = defaultdict[TopicPartition, PartitionSequences]
