"""DescribeProducers, key 61, version 0 (KIP-664); any replica answers."""

from collections.abc import Collection

from sluice.broker.broker import Broker
from sluice.broker.handlers.java_hash_map import in_hash_map_order, long_hash
from sluice.broker.metadata.topic import invalid_topic_name
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import describe_producers as api
from sluice.protocol.errors import ErrorCode

API = served("DescribeProducers", "0")


def handle(ctx: RequestContext, request: api.DescribeProducersRequest, broker: Broker) -> api.DescribeProducersResponse:
    valid = [topic.name for topic in request.topics if invalid_topic_name(topic.name) is None]
    denied = broker.auth.filter_denied(ctx, AclOperation.READ, ResourceType.TOPIC, valid)
    return api.DescribeProducersResponse(
        topics=[
            api.TopicResponse(
                name=topic.name,
                partitions=[_describe(ctx, broker, topic.name, index, denied) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _describe(
    ctx: RequestContext, broker: Broker, topic: str, index: int, denied: Collection[str]
) -> api.PartitionResponse:
    if (problem := invalid_topic_name(topic)) is not None:
        return _error_result(ctx, index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if topic in denied:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return _error_result(ctx, index, code, code.message)
    partition = broker.metadata.partition(topic, index)
    if partition is None:
        # Kafka sets a message only if the topic is unknown.
        known = topic in broker.metadata.topics
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _error_result(ctx, index, code, None if known else code.message)
    if broker.node_id not in partition.replicas:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _error_result(ctx, index, code, None)
    return api.PartitionResponse(
        partition_index=index,
        active_producers=[
            api.ProducerState(
                producer_id=producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.batches[-1].last_sequence if entry.batches else -1,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.current_txn_first_offset,
            )
            for producer_id, entry in in_hash_map_order(partition.log.producers, lambda item: long_hash(item[0]))
        ],
    )


def _error_result(ctx: RequestContext, index: int, code: ErrorCode, message: str | None) -> api.PartitionResponse:
    ctx.error_code = ctx.error_code or code
    return api.PartitionResponse(partition_index=index, error_code=code, error_message=message)
