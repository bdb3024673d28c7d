"""The Sender: sends drained batches and handles their results (Kafka's Sender). Sans-I/O.

    while True:
        until_ms = sender.run_once(now_ms)      # one iteration of Kafka's loop
        await network.wait(until_ms)            # returns earlier after a change

One iteration drains ready batches into one request for each node. Then it fails expired batches (KIP-91), queued ones
before those in flight, in order of creation. Then it sends the requests, expired batches included. The request of an
expired batch continues, and its partition stays muted until the request ends.

A batch is retried after a retriable error if it has not expired and `retries` are left. After MESSAGE_TOO_LARGE, a
batch of several records is split, without using a retry.

Different on purpose: batches also expire during InitProducerId, which blocks Kafka's sender thread. A rejected batch
counts as not written only if no earlier attempt may have been written; Kafka's sender reuses its sequences anyway.
"""

import logging
from collections.abc import Mapping
from functools import partial
from math import inf
from operator import attrgetter
from typing import NamedTuple

from sluice.client.errors import (
    INVALID_METADATA,
    ApiException,
    KafkaException,
    TimeoutException,
    error_name,
    exception_of,
    is_retriable,
)
from sluice.client.metadata.cluster import Node, TopicPartition
from sluice.client.network.in_flight import Exchange, Request, request_of
from sluice.client.network.network_client import NetworkClient
from sluice.protocol.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID

from .batch import NO_ERRORS_OF_RECORDS, ProducerBatch
from .metadata import ProducerMetadata
from .record_accumulator import RecordAccumulator
from .transaction_manager import TransactionManager
from .transactions import PRODUCE_LATEST_V1, Transactions

log = logging.getLogger("sluice.client")

_PRODUCE = 0
# The first version with magic 2, and the last one with topic names.
_OLDEST_VERSION, _LATEST_BY_NAME = 3, 12
_OTHERS_ARE_INVALID = "it was in a batch with invalid records, which was not written"
_ABORTED = "the transaction was aborted before the record was sent"
# An attempt that fails with one of these has not written the batch, and will not. After other errors it may have.
_NOT_WRITTEN = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)
_LEADER_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class SenderSettings(NamedTuple):
    acks: int
    retries: int
    max_request_size: int
    request_timeout_ms: int
    keeps_order: bool  # one batch of each partition in flight at a time


class Sender:
    def __init__(
        self,
        settings: SenderSettings,
        accumulator: RecordAccumulator,
        metadata: ProducerMetadata,
        network: NetworkClient,
        transactions: TransactionManager | None,
    ) -> None:
        self.settings = settings
        self._accumulator = accumulator
        self._metadata = metadata
        self._network = network
        self._transactions = transactions
        self._in_flight: dict[TopicPartition, list[ProducerBatch]] = {}

    @property
    def has_work(self) -> bool:
        return bool(self._accumulator.incomplete) or self._network.in_flight() > 0

    # -- iteration -----------------------------------------------------------------------------------------------------

    def run_once(self, now_ms: float) -> float:
        transactions = self._transactions
        if transactions is not None:
            if transactions.fatal_error is not None:
                self._accumulator.abort(transactions.fatal_error)
                return inf
            transactions.resolve_sequences()
            if isinstance(transactions, Transactions):
                until_ms = self._send_transactional(transactions, now_ms)
                if until_ms is not None:
                    return min(until_ms, self._expire(now_ms))
            next_request_ms = transactions.next_request_ms()
            if next_request_ms is not None and self._accumulator.incomplete:
                return min(self._send_init_producer_id(transactions, next_request_ms, now_ms), self._expire(now_ms))
        return self._send(now_ms)

    def _send_init_producer_id(self, transactions: TransactionManager, next_request_ms: float, now_ms: float) -> float:
        if next_request_ms > now_ms:
            return next_request_ms
        node = self._network.least_loaded_node(now_ms).node
        if node is None:
            transactions.not_reached(now_ms)
            return transactions.next_request_ms() or inf
        if not self._network.ready(node, now_ms):
            return now_ms + self._network.poll_delay_ms(node.id, now_ms)
        transactions.is_requesting = True
        self._network.send(node.id, request_of(transactions.request()), self._handle_init_producer_id_response, now_ms)
        return inf

    def _handle_init_producer_id_response(self, exchange: Exchange) -> None:
        assert self._transactions is not None
        error = self._transactions.handle_init_producer_id(exchange.response, exchange.failure(), exchange.received_ms)
        if error is not None:
            self._accumulator.abort(error)

    # -- transactions --------------------------------------------------------------------------------------------------

    def _send_transactional(self, transactions: Transactions, now_ms: float) -> float | None:
        if transactions.is_requesting:
            return inf
        if transactions.has_abortable_error and transactions.last_error is not None:
            self._accumulator.abort(transactions.last_error, only_undrained=True)
        elif transactions.is_aborting:
            self._accumulator.abort(KafkaException(_ABORTED), only_undrained=True)
        request = transactions.next_request(is_any_incomplete=bool(self._accumulator.incomplete))
        if request is None:
            return None
        if request.next_attempt_ms > now_ms:
            return request.next_attempt_ms
        if request.coordinator is None:
            node = self._network.least_loaded_node(now_ms).node
        else:
            node = transactions.coordinator(request)
            if node is None:
                transactions.lookup_coordinator(request)
                return now_ms
        if node is None:
            transactions.reenqueue(request, now_ms)
            return request.next_attempt_ms
        if not self._network.ready(node, now_ms):
            if self._network.connection_failed(node.id) and request.coordinator is not None:
                transactions.lookup_coordinator(request)  # the coordinator may have moved
                transactions.reenqueue(request, now_ms)
            return now_ms + self._network.poll_delay_ms(node.id, now_ms)
        transactions.sent(request)
        versions = self._network.api_versions(node.id)
        features = {} if versions is None else versions.features
        handle = partial(transactions.handle_response, request, features)
        self._network.send(node.id, request.build(), handle, now_ms)
        return inf

    # -- batches -------------------------------------------------------------------------------------------------------

    def _send(self, now_ms: float) -> float:
        accumulator, network = self._accumulator, self._network
        cluster = self._metadata.cluster
        ready = accumulator.ready(cluster, now_ms)
        if ready.unknown_leader_topics:
            for topic in ready.unknown_leader_topics:
                self._metadata.add(topic, now_ms)
            self._metadata.request_update()
            network.wakeup()
        until_ms = ready.next_check_ms
        nodes: list[Node] = []
        for node in ready.nodes:
            is_ready = network.ready(node, now_ms)
            accumulator.node_was_ready(node.id, now_ms, is_ready=is_ready)
            if is_ready:
                nodes.append(node)
            else:
                until_ms = min(until_ms, now_ms + network.poll_delay_ms(node.id, now_ms))
        drained = accumulator.drain(cluster, nodes, self.settings.max_request_size, now_ms)
        until_ms = min(until_ms, accumulator.next_backoff_ms)
        for batches in drained.values():
            for batch in batches:
                self._in_flight.setdefault(batch.partition, []).append(batch)
                if self.settings.keeps_order:
                    accumulator.mute(batch.partition)
        until_ms = min(until_ms, self._expire(now_ms))
        is_any_sent = False
        for node_id, batches in drained.items():
            if batches:
                is_any_sent = True
                self._send_to(node_id, batches, now_ms)
        return now_ms if is_any_sent else until_ms  # there may be more for the same nodes

    def _expire(self, now_ms: float) -> float:
        """Fail expired batches; return when the next one expires, or now if other batches may be unblocked."""
        queued, next_expiry_ms = self._accumulator.expired(now_ms)
        timeout_ms = self._accumulator.settings.delivery_timeout_ms
        expired_in_flight: list[ProducerBatch] = []
        for partition, batches in list(self._in_flight.items()):
            # A retried batch is behind later ones, so all are checked.
            expired = [batch for batch in batches if batch.has_expired(timeout_ms, now_ms)]
            expired_in_flight += sorted(expired, key=attrgetter("created_ms"))
            left = [batch for batch in batches if batch not in expired] if expired else batches
            if left:
                self._in_flight[partition] = left
                next_expiry_ms = min(next_expiry_ms, *(batch.created_ms + timeout_ms for batch in left))
            else:
                del self._in_flight[partition]
        for batch in queued:
            self._fail_expired(batch, now_ms)
            self._accumulator.give_back(batch)
        for batch in expired_in_flight:  # their memory is released when the request ends
            self._fail_expired(batch, now_ms)
        return now_ms if queued or expired_in_flight else next_expiry_ms

    def _fail_expired(self, batch: ProducerBatch, now_ms: float) -> None:
        passed_ms = int(now_ms - batch.created_ms)
        error = TimeoutException(
            f"Expiring {batch.record_count} record(s) for {batch.partition}: {passed_ms} ms has passed since batch "
            "creation. The request has not been sent, or no server response has been received yet."
        )
        self._fail(batch, error, is_refused=False)

    # -- requests ------------------------------------------------------------------------------------------------------

    def _send_to(self, node_id: int, batches: list[ProducerBatch], now_ms: float) -> None:
        topic_ids = self._metadata.cluster.topic_ids
        topics: dict[str, TopicProduceData] = {}
        by_partition: dict[TopicPartition, ProducerBatch] = {}
        for batch in batches:
            name, number = batch.partition
            topic = topics.get(name)
            if topic is None:
                topic_id = topic_ids.get(name, ZERO_UUID)
                topic = topics[name] = TopicProduceData(name=name, topic_id=topic_id, partition_data=[])
            topic.partition_data.append(PartitionProduceData(index=number, records=batch.records()))
            by_partition[batch.partition] = batch
        transactions = self._transactions
        message = ProduceRequest(
            transactional_id=None if transactions is None else transactions.transactional_id,
            acks=self.settings.acks,
            timeout_ms=self.settings.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        latest = None if all(name in topic_ids for name in topics) else _LATEST_BY_NAME
        if isinstance(transactions, Transactions) and not transactions.is_v2:
            latest = PRODUCE_LATEST_V1
        request = Request(
            _PRODUCE,
            lambda _version: message,
            oldest=_OLDEST_VERSION,
            latest=latest,
            timeout_ms=self.settings.request_timeout_ms,
            expects_response=self.settings.acks != 0,
        )
        names = {topic.topic_id: name for name, topic in topics.items()}
        self._network.send(node_id, request, partial(self._handle_produce_response, by_partition, names), now_ms)

    def _handle_produce_response(
        self, batches: Mapping[TopicPartition, ProducerBatch], names: Mapping[bytes, str], exchange: Exchange
    ) -> None:
        now_ms, response = exchange.received_ms, exchange.response
        failure = exchange.failure()
        if failure is not None or not isinstance(response, ProduceResponse):
            for batch in batches.values():
                self._ended(batch, _missing_response(exchange), failure, now_ms)
            return
        leaders: dict[TopicPartition, tuple[int, int]] = {}
        for topic in response.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for result in topic.partition_responses:
                partition = TopicPartition(name, result.index)
                if partition not in batches:
                    log.error("Produce response for another partition", extra={"partition": str(partition)})
                    continue
                self._ended(batches[partition], result, None, now_ms)
                leader = result.current_leader
                if result.error_code in _LEADER_MOVED and leader is not None:
                    leaders[partition] = leader.leader_id, leader.leader_epoch
        if leaders:
            nodes = [Node(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
            self._metadata.update_partition_leadership(leaders, nodes)

    def _ended(
        self, batch: ProducerBatch, result: PartitionProduceResponse, failure: KafkaException | None, now_ms: float
    ) -> None:
        code = result.error_code
        if code == ErrorCode.MESSAGE_TOO_LARGE and batch.record_count > 1 and not batch.is_done:
            self._split(batch)
        elif code == ErrorCode.NONE or (code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER and not batch.is_done):
            self._complete(batch, result)
        elif self._can_retry(batch, result, now_ms):
            log.info("batch is retried", extra={"partition": str(batch.partition), "error": error_name(code)})
            batch.may_be_written |= code not in _NOT_WRITTEN
            self._accumulator.reenqueue(batch, now_ms)
            self._remove_from_in_flight(batch)
        else:
            # An earlier attempt may have written the batch, although this one is rejected.
            is_refused = not batch.may_be_written and self.settings.retries > 0 and not is_retriable(code)
            error = failure or exception_of(code, result.error_message)
            self._fail(batch, error, _errors_of_records(result), is_refused=is_refused)
            self._accumulator.give_back(batch)
        if code in INVALID_METADATA:
            self._metadata.request_update()
            self._network.wakeup()
        if self.settings.keeps_order:
            self._accumulator.unmute(batch.partition)

    def _can_retry(self, batch: ProducerBatch, result: PartitionProduceResponse, now_ms: float) -> bool:
        if (
            batch.is_done
            or batch.attempts >= self.settings.retries
            or batch.has_expired(self._accumulator.settings.delivery_timeout_ms, now_ms)
        ):
            return False
        if self._transactions is None:
            return is_retriable(result.error_code)
        return self._transactions.can_retry(batch, result.error_code, result.log_start_offset)

    def _split(self, batch: ProducerBatch) -> None:
        if self._transactions is not None:
            self._transactions.sequences[batch.partition].remove_in_flight(batch)
        parts = self._accumulator.split_and_reenqueue(batch)
        log.info("batch is split", extra={"partition": str(batch.partition), "parts": parts})
        self._remove_from_in_flight(batch)
        self._accumulator.completed(batch)
        self._accumulator.give_back(batch)

    def _complete(self, batch: ProducerBatch, result: PartitionProduceResponse) -> None:
        if self._transactions is not None:
            self._transactions.completed(batch, result.base_offset)
        if batch.complete(result.base_offset, result.log_append_time_ms):
            self._remove_from_in_flight(batch)
            self._accumulator.completed(batch)
        self._accumulator.give_back(batch)

    def _fail(
        self,
        batch: ProducerBatch,
        error: KafkaException,
        by_record: Mapping[int, KafkaException] = NO_ERRORS_OF_RECORDS,
        *,
        is_refused: bool,
    ) -> None:
        if batch.fail(KafkaException(_OTHERS_ARE_INVALID) if by_record else error, by_record):
            if self._transactions is not None:
                code = error.code if isinstance(error, ApiException) else ErrorCode.UNKNOWN_SERVER_ERROR
                self._transactions.failed(batch, code, is_refused=is_refused)
            self._remove_from_in_flight(batch)
            self._accumulator.completed(batch)

    def _remove_from_in_flight(self, batch: ProducerBatch) -> None:
        batches = self._in_flight.get(batch.partition)
        if batches is not None and batch in batches:
            batches.remove(batch)
            if not batches:
                del self._in_flight[batch.partition]


def _missing_response(exchange: Exchange) -> PartitionProduceResponse:
    code = ErrorCode.NONE
    if exchange.timed_out:
        code = ErrorCode.REQUEST_TIMED_OUT
    elif exchange.disconnected:
        code = ErrorCode.NETWORK_EXCEPTION
    elif exchange.error is not None:
        code = ErrorCode.UNSUPPORTED_VERSION
    return PartitionProduceResponse(error_code=code, base_offset=-1)


def _errors_of_records(result: PartitionProduceResponse) -> Mapping[int, KafkaException]:
    """Return the errors by index in the batch (KIP-467)."""
    errors = result.record_errors
    code = result.error_code if len(errors) == 1 else ErrorCode.INVALID_RECORD
    return {
        each.batch_index: exception_of(code, each.batch_index_error_message or result.error_message) for each in errors
    }
