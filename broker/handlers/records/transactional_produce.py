"""Produce of transactional records, appended after verification by the coordinator (KIP-890).

Up to v11 the client adds partitions to the transaction, which is verified. Since v12 the broker adds them, and retries
while the coordinator completes the previous transaction. Up to v10 TRANSACTION_ABORTABLE is not returned.

Follows KafkaApis.handleProduceRequest and ReplicaManager.handleProduceAppend.
"""

from collections.abc import Callable, Collection

from sluice.broker.broker import Broker
from sluice.broker.handlers.transactions.verification import Errors, verify
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.batch import MAGIC_AT, BatchHeader, read_header
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.validate import check_produced

from .append import append, error_response
from .authorization import unwritable_topics

_ADDS_PARTITIONS_SINCE = 12
_ABORTABLE_SINCE = 11
_TOPIC_IDS_SINCE = 13
# Producers do not retry all of these errors, so they get NOT_ENOUGH_REPLICAS instead.
_RETRIABLE = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


def produce_when_verified(ctx: RequestContext, broker: Broker, request: ProduceRequest) -> Message | Outcome:
    headers = (_header(item) for topic in request.topic_data for item in topic.partition_data)
    if not any(header is not None and header.is_transactional for header in headers):  # a message set with the same bit
        return append(ctx, broker, request, {}, unwritable_topics(ctx, broker, request))
    if request.transactional_id is None or not broker.auth.authorize(
        ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    ):
        return error_response(ctx, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    denied = unwritable_topics(ctx, broker, request)
    writes = _transactional_writes(ctx, broker, request, denied)
    producers = {(batch.producer_id, batch.producer_epoch) for batch in writes.values()}
    if len(producers) > 1:
        message = "Transactional records contained more than one producer ID"
        return error_response(ctx, request, ErrorCode.INVALID_PRODUCER_ID_MAPPING, message)
    if not producers:
        return append(ctx, broker, request, {}, denied)

    def verify_first(done: Callable[[Errors], None]) -> None:
        assert request.transactional_id is not None
        sequences = {partition: batch.base_sequence for partition, batch in writes.items()}
        verification = _Verification(ctx, broker, request.transactional_id, *producers.copy().pop(), sequences, done)
        verification.attempt()
        if not verification.is_done:
            _keep_records(request)

    def append_verified(errors: Errors) -> Message | Outcome:
        versioned = {partition: _versioned_error(ctx.version, code) for partition, code in errors.items()}
        return append(ctx, broker, request, versioned, denied)

    return respond_when_done(ctx, verify_first, append_verified)


class _Verification:
    def __init__(
        self,
        ctx: RequestContext,
        broker: Broker,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        sequences: dict[Partition, int],
        done: Callable[[Errors], None],
    ) -> None:
        self.is_done = False
        self._broker = broker
        self._producer = transactional_id, producer_id, producer_epoch
        self._sequences = sequences
        self._adds = ctx.version >= _ADDS_PARTITIONS_SINCE
        self._done = done
        self._backoff_ms = broker.config.integer("add.partitions.to.txn.retry.backoff.ms")
        limits = "add.partitions.to.txn.retry.backoff.max.ms", "request.timeout.ms"
        self._last_ms = broker.clock.monotonic_ms() + min(map(broker.config.integer, limits))

    def attempt(self) -> None:
        verify(self._broker, *self._producer, self._sequences, self._adds, self._on_verified)

    def _retry(self) -> None:
        self.attempt()
        self._broker.actions.complete()

    def _on_verified(self, errors: Errors) -> None:
        busy = self._adds and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
        if busy and self._broker.clock.monotonic_ms() < self._last_ms:
            self._broker.scheduler.schedule_once(self._backoff_ms, self._retry)
        else:
            self.is_done = True
            self._done(errors)


def _header(item: PartitionProduceData) -> BatchHeader | None:
    records = item.records
    if not isinstance(records, memoryview) or len(records) <= MAGIC_AT or records[MAGIC_AT] != 2:
        return None
    try:
        return read_header(records)
    except InvalidRecords:
        return None


def _transactional_writes(
    ctx: RequestContext, broker: Broker, request: ProduceRequest, denied: Collection[str]
) -> dict[Partition, BatchHeader]:
    writes = {}
    for topic in request.topic_data:
        for item in topic.partition_data:
            partition, header = _partition(ctx, broker, topic, item.index), _header(item)
            if (
                partition is None
                or partition.topic.name in denied
                or header is None
                or not header.is_transactional
                or header.producer_id < 0
            ):
                continue
            assert isinstance(item.records, memoryview)  # it has a header
            try:
                check_produced(ctx.version, item.records)
            except InvalidRecords:
                continue
            writes[partition] = header
    return writes


def _partition(ctx: RequestContext, broker: Broker, data: TopicProduceData, index: int) -> Partition | None:
    metadata = broker.metadata
    by_id = ctx.version >= _TOPIC_IDS_SINCE
    topic = metadata.topics_by_id.get(data.topic_id) if by_id else metadata.topics.get(data.name)
    return None if topic is None else topic.partition(index)


def _keep_records(request: ProduceRequest) -> None:
    for topic in request.topic_data:
        for item in topic.partition_data:
            if isinstance(item.records, memoryview):
                item.records = memoryview(bytearray(item.records))


def _versioned_error(version: int, code: ErrorCode) -> tuple[ErrorCode, str | None]:
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_SINCE:
        code = ErrorCode.INVALID_TXN_STATE
    if code == ErrorCode.INVALID_TXN_STATE:
        return code, "Partition was not added to the transaction"
    waits = code == ErrorCode.CONCURRENT_TRANSACTIONS and version >= _ADDS_PARTITIONS_SINCE
    if code in _RETRIABLE and not waits:
        cause = f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}"
        return ErrorCode.NOT_ENOUGH_REPLICAS, cause
    return code, None
