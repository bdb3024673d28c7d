"""DescribeTopicPartitions, key 75, version 0 (KIP-966): topics in order of name, in pages.

Follows DescribeTopicPartitionsRequestHandler and KRaftMetadataCache.describeTopicResponse. As in Kafka, an empty name
without a cursor makes the whole request fail with UNKNOWN_SERVER_ERROR.
"""

from sluice.broker.broker import Broker
from sluice.broker.metadata.topic import COORDINATOR_TOPICS, Topic, invalid_topic_name
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import describe_topic_partitions as api
from sluice.protocol.errors import ErrorCode

API = served("DescribeTopicPartitions", "0")


def handle(
    ctx: RequestContext, request: api.DescribeTopicPartitionsRequest, broker: Broker
) -> api.DescribeTopicPartitionsResponse:
    """Return the page at the cursor, of the requested topics or of all."""
    topics, cursor = broker.metadata.topics, request.cursor
    begin, first = (cursor.topic_name, cursor.partition_index) if cursor is not None else ("", 0)
    requested = {topic.name for topic in request.topics}
    if first < 0 or (cursor is not None and requested and begin not in requested):
        return _error_response(ctx, request, ErrorCode.INVALID_REQUEST)
    most = broker.cluster.config.integer("max.request.partition.size.limit")
    remaining = max(1, min(request.response_partition_limit, most))
    response = api.DescribeTopicPartitionsResponse()
    names = ctx.array(sorted(name for name in requested or topics if name >= begin))
    hidden = broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    if cursor is None and "" in requested and "" not in hidden:
        return _error_response(ctx, request, ErrorCode.UNKNOWN_SERVER_ERROR)
    for name in (name for name in names if name not in hidden):
        if remaining == 0:
            response.next_cursor = api.Cursor(topic_name=name)
            break
        topic = topics.get(name)
        if topic is None:
            response.topics.append(_unknown(ctx, broker, name))
            continue
        start = first if name == begin else 0
        end = min(len(topic.partitions), start + remaining)
        response.topics.append(_describe(ctx, broker, topic, start, end))
        if end < len(topic.partitions):
            response.next_cursor = api.Cursor(topic_name=name, partition_index=end)
            break
        remaining -= max(0, end - start)
    # Each page ends with the denied topics that were requested by name, beyond its limit.
    response.topics += [_hidden(ctx, name) for name in names if name in hidden and requested]
    return response


def _describe(
    ctx: RequestContext, broker: Broker, topic: Topic, start: int, end: int
) -> api.DescribeTopicPartitionsResponseTopic:
    fenced = broker.metadata.fenced
    known = [(partition.index, broker.metadata.leadership(partition)) for partition in topic.partitions[start:end]]
    return api.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in COORDINATOR_TOPICS,  # not the journal: Spark reads no internal topic
        topic_authorized_operations=broker.auth.authorized_operations(ctx, ResourceType.TOPIC, topic.name),
        partitions=[
            api.DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=[node_id for node_id in partition.replicas if node_id in fenced],
            )
            for index, partition in known
            if partition is not None
        ],
    )


def _unknown(ctx: RequestContext, broker: Broker, name: str) -> api.DescribeTopicPartitionsResponseTopic:
    invalid = invalid_topic_name(name) is not None
    code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ctx.error_code = ctx.error_code or code
    return api.DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        is_internal=name in COORDINATOR_TOPICS,
        topic_authorized_operations=broker.auth.authorized_operations(ctx, ResourceType.TOPIC, name),
    )


def _hidden(ctx: RequestContext, name: str) -> api.DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    ctx.error_code = ctx.error_code or code
    return api.DescribeTopicPartitionsResponseTopic(error_code=code, name=name)


def _error_response(
    ctx: RequestContext, request: api.DescribeTopicPartitionsRequest, code: ErrorCode
) -> api.DescribeTopicPartitionsResponse:
    # As in Kafka, a request without topics gets no error.
    ctx.error_code = code
    return api.DescribeTopicPartitionsResponse(
        topics=[api.DescribeTopicPartitionsResponseTopic(error_code=code, name=topic.name) for topic in request.topics]
    )
