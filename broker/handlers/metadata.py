"""Metadata, key 3, versions 0-13: brokers, topics and who leads their partitions.

v0 names all topics with an empty list, from v1 on with null. v4 lets the client forbid auto-creation (KIP-204), v8
asks for permissions (KIP-430), v10 has topic ids, v12 asks by them (KIP-516). Follows
KafkaApis.handleTopicMetadataRequest. Different on purpose: a topic that is created on the way is in the answer at
once, where Kafka answers UNKNOWN_TOPIC_OR_PARTITION first and lets the client ask again.
"""

from sluice.broker.authorized import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from sluice.broker.cluster import Topic, invalid_topic_name
from sluice.broker.context import RequestContext
from sluice.protocol.apis.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID

_BY_ID_SINCE = 12  # 10 and 11 have the field and must not use it


def handle(ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """The topics asked for, created where that is wanted and allowed; all topics for null (v0: for none)."""
    cluster = ctx.broker.cluster
    if request.topics is None or (ctx.version == 0 and not request.topics):
        topics = [_describe(topic, cluster.node_id) for topic in cluster.topics.values()]
    elif ctx.version < _BY_ID_SINCE and any(item.topic_id != ZERO_UUID or item.name is None for item in request.topics):
        return MetadataResponse(
            topics=[_failed(ctx, ErrorCode.INVALID_REQUEST, item.name or "", item.topic_id) for item in request.topics]
        )
    else:
        once = {(wanted.name, wanted.topic_id): wanted for wanted in request.topics}
        topics = [_answer(ctx, request, wanted) for wanted in once.values()]
    if request.include_topic_authorized_operations:
        for topic in topics:
            if not topic.error_code:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    response = MetadataResponse(
        brokers=[broker_of(ctx)], cluster_id=cluster.cluster_id, controller_id=cluster.node_id, topics=topics
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def broker_of(ctx: RequestContext) -> MetadataResponseBroker:
    """This broker, at the address that the client's listener advertises."""
    advertised = ctx.connection.advertised
    return MetadataResponseBroker(node_id=ctx.broker.cluster.node_id, host=advertised.host, port=advertised.port)


def _answer(ctx: RequestContext, request: MetadataRequest, wanted: MetadataRequestTopic) -> MetadataResponseTopic:
    cluster = ctx.broker.cluster
    if wanted.topic_id != ZERO_UUID:
        topic = cluster.topics_by_id.get(wanted.topic_id)
        if topic is not None:
            return _describe(topic, cluster.node_id)
        return _failed(ctx, ErrorCode.UNKNOWN_TOPIC_ID, None, wanted.topic_id)
    name = wanted.name or ""
    topic = cluster.topics.get(name)
    if topic is not None:
        return _describe(topic, cluster.node_id)
    if invalid_topic_name(name) is not None:
        return _failed(ctx, ErrorCode.INVALID_TOPIC_EXCEPTION, name)
    if not (request.allow_auto_topic_creation and ctx.broker.auto_creates_topics):
        return _failed(ctx, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
    created = cluster.auto_create(name)
    if isinstance(created, Topic):
        return _describe(created, cluster.node_id)
    return _failed(ctx, created.code, name)


def _describe(topic: Topic, node_id: int) -> MetadataResponseTopic:
    replicas, none = [node_id], list[int]()  # the same for all: a topic may have a thousand partitions
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                partition_index=partition.index,
                leader_id=node_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=replicas,
                isr_nodes=replicas,
                offline_replicas=none,
            )
            for partition in topic.partitions
        ],
    )


def _failed(ctx: RequestContext, code: int, name: str | None, topic_id: bytes = ZERO_UUID) -> MetadataResponseTopic:
    ctx.error_code = ctx.error_code or code
    return MetadataResponseTopic(error_code=code, name=name, topic_id=topic_id)
