"""The transactions of a producer: states, and one coordinator request at a time (KIP-98, KIP-360, KIP-447, KIP-890).

With its base class, this is Kafka's TransactionManager.

    state                  event                           new state
    UNINITIALIZED          init_transactions               INITIALIZING
    INITIALIZING           InitProducerId response         READY
    READY                  begin_transaction               IN_TRANSACTION
    IN_TRANSACTION         commit_transaction              COMMITTING_TRANSACTION
    IN_TRANSACTION, ABORTABLE_ERROR
                           abort_transaction               ABORTING_TRANSACTION
    COMMITTING_TRANSACTION, ABORTING_TRANSACTION
                           EndTxn response                 READY; INITIALIZING to bump the epoch
    INITIALIZING, IN_TRANSACTION, COMMITTING_TRANSACTION
                           abortable error                 ABORTABLE_ERROR
    any                    fatal error                     FATAL_ERROR

Requests are sent by priority, one at a time: coordinator lookups first, then producer ids, then partitions and offsets.
EndTxn is last and waits until all batches are complete.

The finalized `transaction.version` selects the protocol. Up to 1, the client adds partitions and groups by separate
requests, and has its epoch bumped after an abort caused by an error. From 2, brokers add them with the first batch and
bump the epoch at each end (KIP-890).

Different on purpose: before an abort, a request that adds to the transaction and has no response is repeated. Kafka's
producer assumes that nothing was added; if something was, the coordinator fences it at the epoch bump. And, up to
transaction.version 1, the epoch is bumped after a repeated EndTxn, whose first copy could otherwise end the next
transaction.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from sluice.client.backoff import Backoff
from sluice.client.committed_offsets import GroupMetadata, OffsetAndMetadata, commit_topics, with_metadata
from sluice.client.errors import KafkaException, UnsupportedVersionException, exception_of, is_retriable
from sluice.client.metadata.cluster import Node, TopicPartition, by_partition, by_topic
from sluice.client.network.in_flight import Exchange, Request, request_of
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from sluice.protocol.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from sluice.protocol.apis.end_txn import EndTxnRequest, EndTxnResponse
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sluice.protocol.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .batch import ProducerBatch
from .sequences import NO_PRODUCER_YET, ProducerIdAndEpoch
from .transaction_manager import TransactionManager
from .transaction_requests import ADD, BUMP, END, FIND, INIT, CoordinatorType, Result, TransactionRequest

E = ErrorCode

# The backoff of the first AddPartitionsToTxn while the last transaction completes.
_ADD_PARTITIONS_BACKOFF_MS = 20
_V2, _FEATURE = 2, "transaction.version"
# The last versions usable up to transaction.version 1 (V1), and from 2.
_ADD_PARTITIONS_LATEST, _END_TXN_LATEST_V1, _OFFSETS_LATEST_V1, _OFFSETS_LATEST = 3, 4, 4, 5
PRODUCE_LATEST_V1 = 11


class State(Enum):
    """Kafka's TransactionManager.State, without two-phase commit."""

    UNINITIALIZED = "UNINITIALIZED"
    INITIALIZING = "INITIALIZING"
    READY = "READY"
    IN_TRANSACTION = "IN_TRANSACTION"
    COMMITTING_TRANSACTION = "COMMITTING_TRANSACTION"
    ABORTING_TRANSACTION = "ABORTING_TRANSACTION"
    ABORTABLE_ERROR = "ABORTABLE_ERROR"
    FATAL_ERROR = "FATAL_ERROR"


_ENDING = (State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION)
_FROM: dict[State, tuple[State, ...]] = {
    State.UNINITIALIZED: (State.READY, State.ABORTABLE_ERROR),
    State.INITIALIZING: (State.UNINITIALIZED, *_ENDING),
    State.READY: (State.INITIALIZING, *_ENDING),
    State.IN_TRANSACTION: (State.READY,),
    State.COMMITTING_TRANSACTION: (State.IN_TRANSACTION,),
    State.ABORTING_TRANSACTION: (State.IN_TRANSACTION, State.ABORTABLE_ERROR),
    State.ABORTABLE_ERROR: (
        State.IN_TRANSACTION,
        State.COMMITTING_TRANSACTION,
        State.ABORTABLE_ERROR,
        State.INITIALIZING,
    ),
    State.FATAL_ERROR: tuple(State),
}

_LOOK_UP_AGAIN = (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE)
_FENCED = (E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED)
# Abortable errors, by response; all others that are not retriable are fatal.
_ABORTABLE: dict[type[Message], tuple[E, ...]] = {
    InitProducerIdResponse: (
        E.TRANSACTION_ABORTABLE,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.CLUSTER_AUTHORIZATION_FAILED,
    ),
    FindCoordinatorResponse: (E.TRANSACTION_ABORTABLE, E.GROUP_AUTHORIZATION_FAILED),
    AddOffsetsToTxnResponse: (E.TRANSACTION_ABORTABLE, E.GROUP_AUTHORIZATION_FAILED, E.UNKNOWN_PRODUCER_ID),
    TxnOffsetCommitResponse: (
        E.TRANSACTION_ABORTABLE,
        E.GROUP_AUTHORIZATION_FAILED,
        E.FENCED_INSTANCE_ID,
        E.UNKNOWN_MEMBER_ID,
        E.ILLEGAL_GENERATION,
    ),
    EndTxnResponse: (E.TRANSACTION_ABORTABLE, E.UNKNOWN_PRODUCER_ID),
}
_FATAL_FOR_PARTITIONS = (E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, E.INVALID_TXN_STATE, E.INVALID_PRODUCER_ID_MAPPING)
_FATAL_FOR_BATCHES = (
    E.CLUSTER_AUTHORIZATION_FAILED,
    E.INVALID_PRODUCER_ID_MAPPING,
    E.PRODUCER_FENCED,
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    E.UNSUPPORTED_VERSION,
)


class Transactions(TransactionManager):
    def __init__(self, retry_backoff: Backoff, transactional_id: str, timeout_ms: int) -> None:
        super().__init__(retry_backoff)
        self.transactional_id = self._id = transactional_id
        self.state = State.UNINITIALIZED
        self.last_error: KafkaException | None = None
        self.is_v2 = False
        self._timeout_ms = timeout_ms
        self._coordinators: dict[CoordinatorType, Node] = {}
        self._requests: list[TransactionRequest] = []
        self._new_partitions: dict[TopicPartition, None] = {}
        self._partitions: dict[TopicPartition, None] = {}
        self._is_started = False
        self._bumps_epoch = False
        self._result: Result | None = None

    # -- application calls ---------------------------------------------------------------------------------------------

    def init_transactions(self) -> Result:
        """Request a producer id; this fences earlier producers and completes their transactions."""
        self._raise_error()
        return self._once(State.INITIALIZING, self._initialize)

    def begin(self) -> None:
        self._raise_error()
        self._transition_to(State.IN_TRANSACTION)

    def commit(self) -> Result:
        self._raise_error()
        return self._once(State.COMMITTING_TRANSACTION, lambda: self._end(committed=True))

    def abort(self) -> Result:
        if self.state is not State.ABORTABLE_ERROR:
            self._raise_error()
        self._new_partitions.clear()
        return self._once(State.ABORTING_TRANSACTION, lambda: self._end(committed=False))

    def send_offsets(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: GroupMetadata) -> Result:
        self.ensure_in_transaction()
        left = {partition: with_metadata(offset) for partition, offset in offsets.items()}
        if self.is_v2:
            self._is_started = True
            return self._commit_offsets(left, group, Result())
        message = AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            group_id=group.group_id,
        )

        def handle(request: TransactionRequest, response: Message, now_ms: float) -> None:
            assert isinstance(response, AddOffsetsToTxnResponse)
            if self._check_error(request, response, response.error_code, now_ms):
                self._is_started = True
                if not request.result.is_done:  # otherwise the transaction has failed
                    self._commit_offsets(left, group, request.result)

        return self._enqueue_request(ADD, lambda: request_of(message), handle)

    def ensure_in_transaction(self) -> None:
        self._raise_error()
        if self.state is not State.IN_TRANSACTION:
            raise KafkaException(f"no transaction is in progress: the producer is {self.state.value}")

    def add_partition(self, partition: TopicPartition) -> None:
        if self.is_v2:
            self._partitions[partition] = None
            self._is_started = True
        elif partition not in self._partitions:
            self._new_partitions[partition] = None

    def _once(self, state: State, begin: Callable[[], Result]) -> Result:
        if self._result is not None and not self._result.is_done and self.state is state:
            return self._result
        self._transition_to(state)
        self._result = begin()
        return self._result

    def _raise_error(self) -> None:
        if self.last_error is not None and self.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            if self.state is State.FATAL_ERROR:
                raise self.last_error
            raise KafkaException(f"the transaction has failed: {self.last_error}; abort it")

    def _transition_to(self, state: State, error: KafkaException | None = None) -> None:
        if self.state not in _FROM[state]:
            raise KafkaException(f"invalid transition from {self.state.value} to {state.value}")
        self.state, self.last_error = state, error
        self.is_completing = state in _ENDING

    # -- errors --------------------------------------------------------------------------------------------------------

    @property
    def has_abortable_error(self) -> bool:
        return self.state is State.ABORTABLE_ERROR

    @property
    def is_open(self) -> bool:
        return self.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR)

    @property
    def is_aborting(self) -> bool:
        return self.state is State.ABORTING_TRANSACTION

    def fail(self, error: KafkaException) -> None:
        self._transition_to(State.FATAL_ERROR, error)
        self.fatal_error = error
        self._fail_requests(error)

    def _fail_transaction(self, error: KafkaException) -> None:
        if self.state is State.ABORTING_TRANSACTION:
            return
        if self.state not in _FROM[State.ABORTABLE_ERROR]:
            self.fail(error)
            return
        if not self.is_v2 and not self.is_completing:
            self._bumps_epoch = True
        self._transition_to(State.ABORTABLE_ERROR, error)
        unknown = [request for request in self._requests if request.may_have_started]
        self._fail_requests(error)
        self._requests = unknown  # they are repeated, so that the coordinator has a transaction to abort

    def _fail_requests(self, error: KafkaException) -> None:
        requests, self._requests = self._requests, []
        for request in requests:
            request.result.end(error)
        if self._result is not None:
            self._result.end(error)

    # -- sender calls --------------------------------------------------------------------------------------------------

    def next_request_ms(self) -> float | None:
        """Return None: `init_transactions` requests the id."""
        return None

    def next_request(self, *, is_any_incomplete: bool) -> TransactionRequest | None:
        """Return the request to send before any batch; None also if EndTxn waits for batches."""
        if self._new_partitions:
            self._enqueue_add_partitions()
        if not self._requests:
            return None
        request = min(self._requests, key=lambda one: one.priority)  # the first of equals
        if request.ends_transaction:
            if is_any_incomplete:
                return None
            if not self._is_started:
                self._requests.remove(request)
                self._ended(request.result)
                return self.next_request(is_any_incomplete=is_any_incomplete)
        return request

    def coordinator(self, request: TransactionRequest) -> Node | None:
        return None if request.coordinator is None else self._coordinators.get(request.coordinator)

    def lookup_coordinator(self, request: TransactionRequest) -> None:
        kind, key = request.coordinator, request.key
        assert kind is not None
        self._coordinators.pop(kind, None)
        if any(one.priority == FIND and one.key == key for one in self._requests):
            return
        many = FindCoordinatorRequest(key=key, key_type=kind.value, coordinator_keys=[key])

        def handle(lookup: TransactionRequest, response: Message, now_ms: float) -> None:
            assert isinstance(response, FindCoordinatorResponse)
            found = response.coordinators[0] if response.coordinators else response
            if self._check_error(lookup, response, found.error_code, now_ms):
                self._coordinators[kind] = Node(found.node_id, found.host, found.port)
                lookup.result.end()

        lookup = TransactionRequest(FIND, lambda: request_of(many), handle)
        lookup.key = key
        self._requests.append(lookup)

    def sent(self, request: TransactionRequest) -> None:
        self._requests.remove(request)
        self.is_requesting = True

    def reenqueue(self, request: TransactionRequest, now_ms: float, after_ms: float | None = None) -> None:
        request.next_attempt_ms = now_ms + (self._retry_backoff.backoff(0) if after_ms is None else after_ms)
        if request not in self._requests:
            self._requests.append(request)

    def handle_response(self, request: TransactionRequest, features: Mapping[str, int], exchange: Exchange) -> None:
        response, failure, now_ms = exchange.response, exchange.failure(), exchange.received_ms
        self.is_requesting = False
        if self.state is State.FATAL_ERROR:
            request.result.end(self.last_error)
        elif isinstance(failure, UnsupportedVersionException):
            request.result.end(failure)
            self.fail(failure)
        elif response is None:
            request.may_have_started = request.adds
            if request.ends_transaction and not self.is_v2:
                self._bumps_epoch = True
            if request.coordinator is not None:
                self.lookup_coordinator(request)
            self.reenqueue(request, now_ms)
        else:
            if isinstance(response, InitProducerIdResponse):
                self.is_v2 = features.get(_FEATURE, 0) >= _V2
            request.handle(request, response, now_ms)

    def _enqueue_request(
        self,
        priority: int,
        build: Callable[[], Request],
        handle: Callable[[TransactionRequest, Message, float], None],
        *,
        group: str | None = None,
        result: Result | None = None,
    ) -> Result:
        kind, key = CoordinatorType.TRANSACTION, self._id
        if group is not None:
            kind, key = CoordinatorType.GROUP, group
        request = TransactionRequest(priority, build, handle, coordinator=kind, key=key, result=result)
        self._requests.append(request)
        return request.result

    def _check_error(self, request: TransactionRequest, response: Message, code: int, now_ms: float) -> bool:
        """Handle an error; return whether there was none."""
        if not code:
            return True
        if request.coordinator is not None and code in _LOOK_UP_AGAIN:
            self.lookup_coordinator(request)
            self.reenqueue(request, now_ms)
        elif is_retriable(code):
            self.reenqueue(request, now_ms)
        else:
            error = exception_of(E.PRODUCER_FENCED if code in _FENCED else code)
            request.result.end(error)
            # An abort cannot itself be aborted.
            if code in _ABORTABLE[type(response)] and not (request.ends_transaction and self.is_aborting):
                self._fail_transaction(error)
            else:
                self.fail(error)
        return False

    # -- requests ------------------------------------------------------------------------------------------------------

    def _initialize(self, producer: ProducerIdAndEpoch = NO_PRODUCER_YET) -> Result:
        message = InitProducerIdRequest(
            transactional_id=self._id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
        )

        def handle(request: TransactionRequest, response: Message, now_ms: float) -> None:
            assert isinstance(response, InitProducerIdResponse)
            if self._check_error(request, response, response.error_code, now_ms):
                self.producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
                self._transition_to(State.READY)
                if producer.is_valid:
                    self.sequences.clear()
                    self._unresolved.clear()
                request.result.end()

        return self._enqueue_request(BUMP if producer.is_valid else INIT, lambda: request_of(message), handle)

    def _enqueue_add_partitions(self) -> None:
        partitions = list(self._new_partitions)
        self._new_partitions.clear()
        message = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.producer.producer_id,
            v3_and_below_producer_epoch=self.producer.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in by_topic(partitions).items()
            ],
        )

        def handle(request: TransactionRequest, response: Message, now_ms: float) -> None:
            assert isinstance(response, AddPartitionsToTxnResponse)
            codes = [
                E(partition.partition_error_code)
                for topic in response.results_by_topic_v3_and_below
                for partition in topic.results_by_partition
            ]
            self._handle_add_partitions_response(request, partitions, codes, now_ms)

        self._enqueue_request(ADD, lambda: request_of(message, latest=_ADD_PARTITIONS_LATEST), handle)

    def _handle_add_partitions_response(
        self, request: TransactionRequest, partitions: Sequence[TopicPartition], codes: Sequence[E], now_ms: float
    ) -> None:
        for code in codes:
            if code in _LOOK_UP_AGAIN:
                self.lookup_coordinator(request)
                self.reenqueue(request, now_ms)
                return
            if is_retriable(code):
                is_first = code == E.CONCURRENT_TRANSACTIONS and not self._partitions
                backoff_ms = self._retry_backoff.backoff(0)
                self.reenqueue(request, now_ms, min(backoff_ms, _ADD_PARTITIONS_BACKOFF_MS) if is_first else None)
                return
            if code in _FENCED or code in _FATAL_FOR_PARTITIONS:
                self.fail(exception_of(E.PRODUCER_FENCED if code in _FENCED else code))
                return
        failed = [code for code in codes if code]
        if failed:
            self._fail_transaction(exception_of(failed[0]))
            return
        self._partitions |= dict.fromkeys(partitions)
        self._is_started = True
        request.result.end()

    def _commit_offsets(
        self, left: dict[TopicPartition, OffsetAndMetadata], group: GroupMetadata, result: Result
    ) -> Result:
        def build() -> Request:
            message = TxnOffsetCommitRequest(
                transactional_id=self._id,
                group_id=group.group_id,
                producer_id=self.producer.producer_id,
                producer_epoch=self.producer.epoch,
                generation_id_or_member_epoch=group.generation_id,
                member_id=group.member_id,
                group_instance_id=group.group_instance_id,
                topics=commit_topics(left, TxnOffsetCommitRequestTopic, TxnOffsetCommitRequestPartition),
            )
            return request_of(message, latest=_OFFSETS_LATEST if self.is_v2 else _OFFSETS_LATEST_V1)

        def handle(request: TransactionRequest, response: Message, now_ms: float) -> None:
            assert isinstance(response, TxnOffsetCommitResponse)
            for partition, partition_result in by_partition(response.topics).items():
                if partition_result.error_code == E.REQUEST_TIMED_OUT:
                    self.lookup_coordinator(request)
                if self._check_error(request, response, partition_result.error_code, now_ms):
                    left.pop(partition, None)
            if not left:
                result.end()

        return self._enqueue_request(ADD, build, handle, group=group.group_id, result=result)

    def _end(self, *, committed: bool) -> Result:
        if self._new_partitions:
            self._enqueue_add_partitions()
        message = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            committed=committed,
        )
        latest = None if self.is_v2 else _END_TXN_LATEST_V1

        def handle(request: TransactionRequest, response: Message, now_ms: float) -> None:
            assert isinstance(response, EndTxnResponse)
            if self._check_error(request, response, response.error_code, now_ms):
                if response.producer_id >= 0:
                    self.producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
                    self.sequences.clear()
                    self._unresolved.clear()
                self._ended(request.result)

        return self._enqueue_request(END, lambda: request_of(message, latest=latest), handle)

    def _ended(self, result: Result) -> None:
        bumps, self._bumps_epoch, self._is_started = self._bumps_epoch, False, False
        self._new_partitions.clear()
        self._partitions.clear()
        if bumps:
            self._transition_to(State.INITIALIZING)
            self._initialize(self.producer).listen(lambda: result.end(self.last_error))
        else:
            self._transition_to(State.READY)
            result.end()

    # -- batches -------------------------------------------------------------------------------------------------------

    def may_drain(self, first: ProducerBatch) -> bool:
        return first.partition in self._partitions and super().may_drain(first)

    def can_retry(self, batch: ProducerBatch, code: int, log_start_offset: int) -> bool:
        partition = batch.partition
        if code == E.UNKNOWN_PRODUCER_ID:
            if log_start_offset == -1 or batch.sequence_was_reset:
                return True
            if self.sequences[partition].last_acked_offset < log_start_offset:
                # Retention removed all state of this producer: sequences in flight restart.
                self.sequences[partition].start_at_beginning(self.producer)
                return True
            return False
        if code == E.OUT_OF_ORDER_SEQUENCE_NUMBER:
            is_next = self.sequences[partition].is_next(batch.state.base_sequence)
            return partition not in self._unresolved and (batch.sequence_was_reset or not is_next)
        return is_retriable(code)

    def failed(self, batch: ProducerBatch, code: int, *, is_refused: bool) -> None:
        """Fail the transaction, also if the batch was never sent."""
        if code in _FATAL_FOR_BATCHES:
            self.fail(exception_of(code))
            return
        self._fail_transaction(exception_of(code))
        if batch.has_sequence:
            self.sequences[batch.partition].remove_in_flight(batch)
            if is_refused:
                self.sequences[batch.partition].close_gap(batch)
            else:
                self._mark_unresolved(batch)

    def resolve_sequences(self) -> None:
        for partition in list(self._unresolved):
            if not self.sequences[partition].in_flight:
                if not self.sequences[partition].is_next(self.sequences[partition].next_sequence):
                    self._bumps_epoch = not self.is_v2
                    self._fail_transaction(KafkaException("records may be missing; abort the transaction"))
                del self._unresolved[partition]
