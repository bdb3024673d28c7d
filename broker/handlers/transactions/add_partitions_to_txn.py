"""AddPartitionsToTxn, key 24, versions 0-5 (KIP-98): from clients up to v3, from brokers since v4 (KIP-890).

Follows KafkaApis.handleAddPartitionsToTxnRequest.
"""

from collections.abc import Callable, Collection

from sluice.broker.broker import Broker
from sluice.broker.coordinator.transaction.metadata import EPOCH_RAISING_CLIENT, LEGACY_CLIENT
from sluice.broker.metadata.topic import INTERNAL_TOPICS, TopicPartition
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import add_partitions_to_txn as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("AddPartitionsToTxn", "0-5")

_FROM_BROKERS_SINCE = 4
_FENCED_SINCE = 2
_Codes = dict[TopicPartition, ErrorCode]
# The codes of partitions, or of all partitions of the request, which the response then has as they were requested.
_Result = _Codes | ErrorCode


def handle(ctx: RequestContext, request: api.AddPartitionsToTxnRequest, broker: Broker) -> Message | Outcome:
    """Return an error code for each partition; any error adds no partition of its transaction."""
    if ctx.version >= _FROM_BROKERS_SINCE and not broker.auth.authorize_cluster(ctx, AclOperation.CLUSTER_ACTION):
        ctx.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return api.AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    transactions = request.transactions if ctx.version >= _FROM_BROKERS_SINCE else [_of_client(request)]
    # As in Kafka, of a repeated transaction the last partitions are added, and the first ones are in the response.
    added_topics: dict[str, list[api.AddPartitionsToTxnTopic]] = ctx.mapping()
    named_topics: dict[str, list[api.AddPartitionsToTxnTopic]] = ctx.mapping()
    for one in transactions:
        added_topics[one.transactional_id] = one.topics
        named_topics.setdefault(one.transactional_id, one.topics)
    results: dict[int, _Result] = ctx.mapping()  # by position of the transaction in the request

    def start(done: Callable[[None], None]) -> None:
        def add(place: int, transaction: api.AddPartitionsToTxnTransaction) -> None:
            def added(result: _Result) -> None:
                results[place] = result
                if len(results) == len(transactions):
                    done(None)

            _add(ctx, broker, transaction, added_topics[transaction.transactional_id], added)

        for place, transaction in enumerate(transactions):
            add(place, transaction)
        if not transactions:
            done(None)

    def respond(_: None) -> Message:
        responses = [
            api.AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=_topic_results(ctx, named_topics[transaction.transactional_id], results.pop(place)),
            )
            for place, transaction in enumerate(transactions)
        ]
        if ctx.version >= _FROM_BROKERS_SINCE:
            return api.AddPartitionsToTxnResponse(results_by_transaction=responses)
        return api.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=responses[0].topic_results)

    return respond_when_done(ctx, start, respond)


def _of_client(request: api.AddPartitionsToTxnRequest) -> api.AddPartitionsToTxnTransaction:
    return api.AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _add(
    ctx: RequestContext,
    broker: Broker,
    transaction: api.AddPartitionsToTxnTransaction,
    topics: list[api.AddPartitionsToTxnTopic],
    done: Callable[[_Result], None],
) -> None:
    of_client = ctx.version < _FROM_BROKERS_SINCE  # brokers authorize before they forward
    transactional_id = transaction.transactional_id
    if of_client and not broker.auth.authorize(
        ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        done(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return
    codes: _Codes = ctx.mapping()
    for topic in topics:
        for index in topic.partitions:
            codes[TopicPartition(topic.name, index)] = ErrorCode.NONE
    checked = (name.topic for name in codes if of_client and name.topic not in INTERNAL_TOPICS)
    denied = broker.auth.filter_denied(ctx, AclOperation.WRITE, ResourceType.TOPIC, checked)
    fails = False
    for name in codes:
        codes[name] = code = _unwritable(ctx, broker, name, denied)
        fails = fails or bool(code)
    coordinator = broker.transactions
    producer = transactional_id, transaction.producer_id, transaction.producer_epoch
    if fails:
        for name in codes:
            codes[name] = codes[name] or ErrorCode.OPERATION_NOT_ATTEMPTED
        done(codes)
    elif transaction.verify_only:
        done(coordinator.verify_partitions(*producer, frozenset(codes)))
    else:
        client_version = LEGACY_CLIENT if of_client else EPOCH_RAISING_CLIENT
        coordinator.add_partitions(
            *producer, frozenset(codes), client_version, lambda code: done(_versioned_error(ctx, code))
        )


def _unwritable(ctx: RequestContext, broker: Broker, name: TopicPartition, denied: Collection[str]) -> ErrorCode:
    if name.topic in denied or (name.topic in INTERNAL_TOPICS and ctx.version < _FROM_BROKERS_SINCE):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = broker.metadata.partition(*name) is not None
    return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _versioned_error(ctx: RequestContext, code: ErrorCode) -> ErrorCode:
    if code == ErrorCode.PRODUCER_FENCED and ctx.version < _FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def _topic_results(
    ctx: RequestContext, topics: list[api.AddPartitionsToTxnTopic], codes: _Result
) -> list[api.AddPartitionsToTxnTopicResult]:
    if isinstance(codes, ErrorCode):
        ctx.error_code = ctx.error_code or codes
        return [
            api.AddPartitionsToTxnTopicResult(
                topic.name, [api.AddPartitionsToTxnPartitionResult(index, codes) for index in topic.partitions]
            )
            for topic in topics
        ]
    ctx.error_code = ctx.error_code or next((code for code in codes.values() if code), ErrorCode.NONE)
    results: dict[str, api.AddPartitionsToTxnTopicResult] = ctx.mapping()
    for (topic, partition), code in codes.items():
        result = results.get(topic)
        if result is None:
            result = results[topic] = api.AddPartitionsToTxnTopicResult(name=topic)
        result.results_by_partition.append(api.AddPartitionsToTxnPartitionResult(partition, code))
    return list(results.values())
