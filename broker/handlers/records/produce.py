"""Produce, key 0, versions 0-13.

Follows Kafka's KafkaApis.handleProduceRequest, ReplicaManager.appendRecords and DelayedProduce.
"""

from sluice.broker.broker import Broker
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import Charge, served
from sluice.protocol.apis.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from sluice.protocol.message import Message
from sluice.protocol.records.batch import ATTRIBUTES_AT, CODEC_MASK, HEADER_BYTES, TRANSACTIONAL_FLAG
from sluice.protocol.records.compression import ZSTD
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.validate import ANY_CODEC_VERSION, check_first_batch

from .append import ALL, NO_RECORDS, PartitionErrors, append, append_response, error_response
from .authorization import unwritable_topics
from .transactional_produce import produce_when_verified

API = served("Produce", "0-13", charge=Charge.PRODUCE_BYTES)

_NOT_DELAYED = (1, ALL)  # values of acks that need no wait if the leader is the only replica
_FLAGS_AT = ATTRIBUTES_AT + 1
_NO_ERRORS: PartitionErrors = {}


def handle(ctx: RequestContext, request: ProduceRequest, broker: Broker) -> Message | Outcome:
    """Append the records; with acks=all, respond after replication."""
    try:
        (data,) = request.topic_data
        (item,) = data.partition_data
    except ValueError:
        return _check_and_append(ctx, broker, request)
    partition = _usual_partition(ctx, broker, request.acks, data, item)
    if partition is not None:
        records: memoryview = item.records or NO_RECORDS  # type: ignore[assignment]  # the decoder gives no other bytes
        result = partition.log.append_plain(records, ctx.now_ms, partition.leader_epoch)
        if result is not None:
            response = append_response(ctx, broker, partition, item.index, len(records), result)
            return ProduceResponse([TopicProduceResponse(data.name, data.topic_id, [response])])
    return _check_and_append(ctx, broker, request)


def _usual_partition(
    ctx: RequestContext, broker: Broker, acks: int, data: TopicProduceData, item: PartitionProduceData
) -> Partition | None:
    """Return the only partition of a request if its append needs no check but of the records; else None.

    It is not internal, led by this broker, and has no followers, as most are.
    """
    index, metadata = item.index, broker.metadata
    topic = metadata.topics.get(data.name) or metadata.topics_by_id.get(data.topic_id)
    if (
        topic is None
        or broker.authorizer is not None
        or not 0 <= index < len(topic.partitions)
        or topic.is_internal
        or topic.min_insync_replicas > 1
        or acks not in _NOT_DELAYED
        or (ctx.version < ANY_CODEC_VERSION and _may_be_zstd(item))
    ):
        return None
    partition = topic.partitions[index]
    return None if partition.leader != broker.node_id or partition.log.has_followers else partition


def _may_be_zstd(item: PartitionProduceData) -> bool:
    records: memoryview = item.records or NO_RECORDS  # type: ignore[assignment]  # as above
    return len(records) <= _FLAGS_AT or records[_FLAGS_AT] & CODEC_MASK == ZSTD


def _check_and_append(ctx: RequestContext, broker: Broker, request: ProduceRequest) -> Message | Outcome:
    for topic in request.topic_data:
        for item in topic.partition_data:
            records: memoryview | None = item.records  # type: ignore[assignment]  # as above
            if not records:
                continue
            try:
                check_first_batch(records)
            except InvalidRecords as invalid:
                return error_response(ctx, request, invalid.code, invalid.message)
            if len(records) > HEADER_BYTES and records[_FLAGS_AT] & TRANSACTIONAL_FLAG:
                return produce_when_verified(ctx, broker, request)
    return append(ctx, broker, request, _NO_ERRORS, unwritable_topics(ctx, broker, request))
