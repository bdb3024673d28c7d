"""The id, epoch and sequences of an idempotent producer (KIP-98, KIP-360; that part of Kafka's TransactionManager).

No batch is drained before the response to InitProducerId. After that:

    event                                     action
    OUT_OF_ORDER_SEQUENCE_NUMBER
      for a batch that is not the next one    retry: an earlier batch must be written first
      for the next one                        there is a gap: bump the epoch, retry
    UNKNOWN_PRODUCER_ID                       the broker has no state of this producer: bump the epoch, retry
    a batch is rejected permanently           its sequences are missing: bump the epoch
    a sent batch fails otherwise              its result is unknown: the partition is *unresolved*. No new batch is
                                              drained until those in flight are complete; if their sequences were not
                                              acknowledged, bump the epoch

The client bumps the epoch itself (KIP-360): epoch + 1, and the sequences of that partition restart at 0, including
those in flight. After the last epoch it requests a new id.

Different on purpose: a partition is also unresolved while the first attempt of a batch is in flight, or after its last
retry; in Kafka, later batches then fail with OUT_OF_ORDER_SEQUENCE_NUMBER until they expire. A batch written under an
earlier epoch does not advance the current sequences. And a batch that follows one with an unknown result, and may
still be written, keeps its sequence until it is written or expires: a broker learns of an epoch only with its first
batch, so the batch could be written twice.
"""

from math import inf

from sluice.client.backoff import Backoff
from sluice.client.errors import KafkaException, UnsupportedVersionException, exception_of, is_retriable
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.batch import NO_SEQUENCE

from .batch import ProducerBatch, ProducerState
from .sequences import NO_PRODUCER_YET, PartitionSequences, ProducerIdAndEpoch, ProducerSequences

_LAST_EPOCH = 2**15 - 1
_LONGEST_TIMEOUT_MS = 2**31 - 1
_UNAUTHORIZED = (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class TransactionManager:
    def __init__(self, retry_backoff: Backoff) -> None:
        self.sequences = ProducerSequences(PartitionSequences)
        self.producer = NO_PRODUCER_YET
        self.transactional_id: str | None = None
        self.is_completing = False
        self.is_requesting = False
        self.fatal_error: KafkaException | None = None
        self._retry_backoff = retry_backoff
        self._failures = 0  # of InitProducerId, in a row
        self._next_request_ms = -inf
        self._epoch_bump_required = False
        self._to_rewrite: dict[TopicPartition, None] = {}
        self._unresolved: dict[TopicPartition, int] = {}  # the sequence after the last batch with an unknown result

    # -- producer id ---------------------------------------------------------------------------------------------------

    def next_request_ms(self) -> float | None:
        """Return when to send InitProducerId; None if it is not needed."""
        return None if self.producer.is_valid or self.is_requesting else self._next_request_ms

    def request(self) -> InitProducerIdRequest:
        return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_LONGEST_TIMEOUT_MS)

    def handle_init_producer_id(
        self, response: Message | None, failure: KafkaException | None, now_ms: float
    ) -> KafkaException | None:
        """Handle a response or a failure; return an error that fails all pending batches."""
        self.is_requesting = False
        if isinstance(failure, UnsupportedVersionException):
            self.fatal_error = failure
            return failure
        code = ErrorCode.NETWORK_EXCEPTION if failure is not None else ErrorCode.NONE
        if isinstance(response, InitProducerIdResponse):
            code = ErrorCode(response.error_code)
            if not code:
                self._failures = 0
                self.producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
                return None
        self._next_request_ms = now_ms + self._retry_backoff.backoff(self._failures)
        self._failures += 1
        if is_retriable(code):
            return None
        error = exception_of(code)
        if code not in _UNAUTHORIZED:  # permissions can change later
            self.fatal_error = error
        return error

    def not_reached(self, now_ms: float) -> None:
        self.handle_init_producer_id(None, exception_of(ErrorCode.NETWORK_EXCEPTION), now_ms)

    # -- draining ------------------------------------------------------------------------------------------------------

    def may_drain(self, first: ProducerBatch) -> bool:
        """Return whether the first batch of a queue may be sent now."""
        partition = first.partition
        if self.fatal_error is not None or not self.producer.is_valid:
            return False
        if not first.has_sequence:
            if self.sequences[partition].in_flight and self._is_stale(partition):
                return False  # batches in flight must complete under the old epoch
            return partition not in self._unresolved
        return self.sequences[partition].first_in_flight in (NO_SEQUENCE, first.state.base_sequence)

    def drained(self, batch: ProducerBatch) -> None:
        if batch.has_sequence:
            return
        partition, sequences = batch.partition, self.sequences
        if self._is_stale(partition) and not sequences[partition].in_flight:
            sequences[partition].start_at_beginning(self.producer)
        is_transactional = self.transactional_id is not None
        batch.set_state(ProducerState(*self.producer, sequences[partition].next_sequence, is_transactional))
        sequences[partition].increment(batch.record_count)
        sequences[batch.partition].add_in_flight(batch)

    def _is_stale(self, partition: TopicPartition) -> bool:
        return self.sequences[partition].producer != self.producer

    # -- results -------------------------------------------------------------------------------------------------------

    def can_retry(self, batch: ProducerBatch, code: int, log_start_offset: int) -> bool:
        """Return whether to retry a batch after an error, after preparing the retry."""
        partition = batch.partition
        if code == ErrorCode.UNKNOWN_PRODUCER_ID:
            # Without a log start offset, the partition was unknown to the broker, and a retry can succeed. A batch that
            # was renumbered in flight received this error for its old sequence.
            if log_start_offset != -1 and not batch.sequence_was_reset:
                self._bump_epoch_for(partition)
            return True
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            unresolved = self._unresolved.get(partition)
            sequence = batch.state.base_sequence
            if unresolved is None and (batch.sequence_was_reset or not self.sequences[partition].is_next(sequence)):
                return True
            if unresolved is None or (sequence == unresolved and not batch.may_be_written):
                self._bump_epoch_for(partition)
            return True
        return is_retriable(code)

    def completed(self, batch: ProducerBatch, base_offset: int) -> None:
        if batch.state[:2] == self.sequences[batch.partition].producer:
            self.sequences[batch.partition].acked(batch, base_offset)
        self.sequences[batch.partition].remove_in_flight(batch)

    def failed(self, batch: ProducerBatch, code: int, *, is_refused: bool) -> None:
        """`is_refused`: the batch was not written, and will not be."""
        if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self.fatal_error = exception_of(code)
        elif batch.has_sequence:
            self.sequences[batch.partition].remove_in_flight(batch)
            if is_refused:
                self._bump_epoch_for(batch.partition)
            else:
                self._mark_unresolved(batch)

    def _mark_unresolved(self, batch: ProducerBatch) -> None:
        after = batch.last_sequence + 1
        self._unresolved[batch.partition] = max(after, self._unresolved.get(batch.partition, after))

    def resolve_sequences(self) -> None:
        for partition in list(self._unresolved):
            if not self.sequences[partition].in_flight:
                if not self.sequences[partition].is_next(self.sequences[partition].next_sequence):
                    self._bump_epoch_for(partition)
                del self._unresolved[partition]
        if self._epoch_bump_required:
            self._bump_epoch()

    def _bump_epoch_for(self, partition: TopicPartition) -> None:
        self._epoch_bump_required = True
        self._to_rewrite[partition] = None

    def _bump_epoch(self) -> None:
        self._epoch_bump_required = False
        if self.producer.epoch == _LAST_EPOCH:
            self.producer = NO_PRODUCER_YET
            self._next_request_ms = -inf
        elif self.producer.is_valid:
            self.producer = self.producer._replace(epoch=self.producer.epoch + 1)
        for partition in self._to_rewrite:
            self.sequences[partition].start_at_beginning(self.producer)
            self._unresolved.pop(partition, None)
        self._to_rewrite.clear()
