"""An idempotent producer's id, epoch and sequences, and what errors about them mean (KIP-98, KIP-360): what Kafka's
TransactionManager does for it. No socket, no clock.

Theory of operation. The id is asked for once (InitProducerId); no batch is drained before. After that

    what happens                              what is done
    OUT_OF_ORDER_SEQUENCE_NUMBER,
      of a batch that is not the next one     tried again: the one before it has to come first
      of the next one                         there is a gap: the epoch is bumped, and it is tried again
    UNKNOWN_PRODUCER_ID                       the broker forgot us: the epoch is bumped, and it is tried again
    a batch is refused for good               its numbers are missing: the epoch is bumped
    a batch that was sent ends otherwise      nobody knows whether it was written: its partition is *unresolved*, and no
                                              new batch is drained until those on their way have ended; were their
                                              numbers acknowledged, all is well; else the epoch is bumped

A bump is this client's own (KIP-360): epoch + 1, and the numbers of that partition begin at 0, those of batches on
their way included. Past the last epoch a new id is asked for.

Different on purpose: a partition is unresolved also where the batch's first attempt is still on its way, or retries are
used up; in Kafka the batches after it then meet OUT_OF_ORDER_SEQUENCE_NUMBER until they run out of time, too. What was
written under an earlier epoch does not count for this one's sequences. And behind a batch of which nobody knows, one of
which an attempt may still arrive keeps its numbers until it is written, or its time is over: brokers hear of an epoch
only with its first batch, so that attempt could be written, and with new numbers the batch once more.
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
from .sequences import NO_PRODUCER_YET, ProducerIdAndEpoch, ProducerSequences

_LAST_EPOCH = 2**15 - 1
_LONGEST_TIMEOUT_MS = 2**31 - 1
_NOT_BELIEVED = (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class TransactionManager:
    """The state of one producer."""

    def __init__(self, retry_backoff: Backoff) -> None:
        self.sequences = ProducerSequences()
        self.producer = NO_PRODUCER_YET
        self.transactional_id: str | None = None
        self.is_completing = False  # whether a transaction waits for its batches to end
        self.is_requesting = False  # a request is on its way
        self.fatal_error: KafkaException | None = None
        self._retry_backoff = retry_backoff
        self._failures = 0  # of InitProducerId, in a row
        self._next_request_ms = -inf
        self._epoch_is_to_be_bumped = False
        self._to_rewrite: dict[TopicPartition, None] = {}
        self._unresolved: dict[TopicPartition, int] = {}  # the sequence after the last one of which nobody knows

    # -- the producer's id ---------------------------------------------------------------------------------------------

    def next_request_ms(self) -> float | None:
        """When InitProducerId is to be sent; None: it is not."""
        return None if self.producer.is_valid or self.is_requesting else self._next_request_ms

    def request(self) -> InitProducerIdRequest:
        """What is to be sent."""
        return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_LONGEST_TIMEOUT_MS)

    def answered(
        self, response: Message | None, failure: KafkaException | None, now_ms: float
    ) -> KafkaException | None:
        """Takes the answer, or that there is none. Returns what all that waits is to fail with, if it is."""
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
        if code not in _NOT_BELIEVED:  # who may, may be told later
            self.fatal_error = error
        return error

    def not_reached(self, now_ms: float) -> None:
        """There was no node to ask."""
        self.answered(None, exception_of(ErrorCode.NETWORK_EXCEPTION), now_ms)

    # -- draining ------------------------------------------------------------------------------------------------------

    def may_drain(self, first: ProducerBatch) -> bool:
        """Whether the first batch of a queue may be sent now."""
        partition = first.partition
        if self.fatal_error is not None or not self.producer.is_valid:
            return False
        if not first.has_sequence:
            if self.sequences.has_in_flight(partition) and self._is_stale(partition):
                return False  # those on their way have to end under the old epoch
            return partition not in self._unresolved
        return self.sequences.first_in_flight(partition) in (NO_SEQUENCE, first.state.base_sequence)

    def drained(self, batch: ProducerBatch) -> None:
        """A batch goes out; its first time, it gets its numbers."""
        if batch.has_sequence:
            return
        partition, sequences = batch.partition, self.sequences
        if self._is_stale(partition) and not sequences.has_in_flight(partition):
            sequences.start_at_beginning(partition, self.producer)
        is_transactional = self.transactional_id is not None
        batch.set_state(ProducerState(*self.producer, sequences.next_sequence(partition), is_transactional))
        sequences.increment(partition, batch.record_count)
        sequences.add_in_flight(batch)

    def _is_stale(self, partition: TopicPartition) -> bool:
        return self.sequences.producer(partition) != self.producer

    # -- what comes of it ----------------------------------------------------------------------------------------------

    def can_retry(self, batch: ProducerBatch, code: int, log_start_offset: int) -> bool:
        """Whether a batch may be sent again after this error; notes what that needs."""
        partition = batch.partition
        if code == ErrorCode.UNKNOWN_PRODUCER_ID:
            # Without a log start the broker did not know it: asked again it will. A batch that was renumbered on its
            # way got this error for its old numbers.
            if log_start_offset != -1 and not batch.sequence_was_reset:
                self._bump_epoch_for(partition)
            return True
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            unresolved = self._unresolved.get(partition)
            sequence = batch.state.base_sequence
            if unresolved is None and (batch.sequence_was_reset or not self.sequences.is_next(partition, sequence)):
                return True
            if unresolved is None or (sequence == unresolved and not batch.may_be_written):
                self._bump_epoch_for(partition)
            return True
        return is_retriable(code)

    def completed(self, batch: ProducerBatch, base_offset: int) -> None:
        """A batch was written, whether in time or not."""
        if batch.state[:2] == self.sequences.producer(batch.partition):
            self.sequences.acked(batch, base_offset)
        self.sequences.remove_in_flight(batch)

    def failed(self, batch: ProducerBatch, code: int, *, is_refused: bool) -> None:
        """A batch failed for good. `is_refused`: it was not written, and nobody will."""
        if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self.fatal_error = exception_of(code)
        elif batch.has_sequence:
            self.sequences.remove_in_flight(batch)
            if is_refused:
                self._bump_epoch_for(batch.partition)
            else:
                self._is_unresolved(batch)

    def _is_unresolved(self, batch: ProducerBatch) -> None:
        after = batch.last_sequence + 1
        self._unresolved[batch.partition] = max(after, self._unresolved.get(batch.partition, after))

    def resolve_sequences(self) -> None:
        """Looks at what is unresolved; and bumps the epoch, where something made that necessary."""
        for partition in list(self._unresolved):
            if not self.sequences.has_in_flight(partition):
                if not self.sequences.is_next(partition, self.sequences.next_sequence(partition)):
                    self._bump_epoch_for(partition)
                del self._unresolved[partition]
        if self._epoch_is_to_be_bumped:
            self._bump_epoch()

    def _bump_epoch_for(self, partition: TopicPartition) -> None:
        self._epoch_is_to_be_bumped = True
        self._to_rewrite[partition] = None

    def _bump_epoch(self) -> None:
        self._epoch_is_to_be_bumped = False
        if self.producer.epoch == _LAST_EPOCH:
            self.producer = NO_PRODUCER_YET
            self._next_request_ms = -inf
        elif self.producer.is_valid:
            self.producer = self.producer._replace(epoch=self.producer.epoch + 1)
        for partition in self._to_rewrite:
            self.sequences.start_at_beginning(partition, self.producer)
            self._unresolved.pop(partition, None)
        self._to_rewrite.clear()
