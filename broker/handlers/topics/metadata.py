"""Metadata, key 3, versions 0-13.

Follows KafkaApis.handleTopicMetadataRequest. Equal requests often get a cached response (exchange/response_cache.py).
"""

from sluice.broker.broker import Broker
from sluice.broker.metadata.cache import Node
from sluice.broker.metadata.topic import COORDINATOR_TOPICS, NO_LEADER, Topic, invalid_topic_name
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import metadata as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID

API = served("Metadata", "0-13", cached=True)

# Other topics get them even if they do not exist.
_WITHOUT_OPERATIONS = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
_IDS_SINCE, _BY_ID_SINCE = 10, 12  # requests of v10 and v11 must not use the field


def handle(ctx: RequestContext, request: api.MetadataRequest, broker: Broker) -> api.MetadataResponse:
    metadata = broker.metadata
    if request.topics is None or (ctx.version == 0 and not request.topics):
        known = ctx.array(metadata.topics.values())
        hidden = broker.auth.filter_denied(
            ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, [topic.name for topic in known], log_denied=False
        )
        topics = ctx.array(_describe(ctx, broker, topic) for topic in known if topic.name not in hidden)
    elif _IDS_SINCE <= ctx.version < _BY_ID_SINCE and any(
        item.topic_id != ZERO_UUID or item.name is None for item in request.topics
    ):
        return api.MetadataResponse(
            topics=[_failed(ctx, ErrorCode.INVALID_REQUEST, item.name or "", item.topic_id) for item in request.topics]
        )
    elif len(request.topics) == 1 and broker.authorizer is None:
        topics = [_topic_response(ctx, broker, request, request.topics[0])]
    else:
        by_id = ctx.array(item for item in request.topics if item.topic_id != ZERO_UUID)
        once = {  # one id hides all names
            requested.name if requested.topic_id == ZERO_UUID else requested.topic_id: (
                _name(ctx, broker, requested),
                requested,
            )
            for requested in by_id or request.topics
        }
        unique = ctx.array(once.values())
        names = [name for name, _ in unique if name is not None]
        hidden = broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
        topics = ctx.array(
            _hidden(ctx, requested) if name in hidden else _topic_response(ctx, broker, request, requested)
            for name, requested in unique
        )
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.error_code not in _WITHOUT_OPERATIONS:
                topic.topic_authorized_operations = broker.auth.authorized_operations(
                    ctx, ResourceType.TOPIC, topic.name or ""
                )
    response = api.MetadataResponse(
        brokers=[_describe_node(ctx, node) for node in broker.metadata.live_brokers],
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.controller_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = broker.auth.authorized_cluster_operations(ctx)
    return response


def _describe_node(ctx: RequestContext, node: Node) -> api.MetadataResponseBroker:
    endpoint = ctx.session.endpoint_of(node)
    return api.MetadataResponseBroker(node.node_id, endpoint.host, endpoint.port, node.rack)


def _name(ctx: RequestContext, broker: Broker, requested: api.MetadataRequestTopic) -> str | None:
    if requested.topic_id == ZERO_UUID:
        return requested.name or ""
    topic = broker.metadata.topics_by_id.get(requested.topic_id)
    return None if topic is None else topic.name


def _hidden(ctx: RequestContext, requested: api.MetadataRequestTopic) -> api.MetadataResponseTopic:
    name = requested.name if requested.topic_id == ZERO_UUID else None
    response = _failed(ctx, ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, requested.topic_id)
    response.is_internal = False  # even if it is
    return response


def _topic_response(
    ctx: RequestContext, broker: Broker, request: api.MetadataRequest, requested: api.MetadataRequestTopic
) -> api.MetadataResponseTopic:
    metadata = broker.metadata
    if requested.topic_id != ZERO_UUID:
        topic = metadata.topics_by_id.get(requested.topic_id)
        if topic is not None:
            return _describe(ctx, broker, topic)
        return _failed(ctx, ErrorCode.UNKNOWN_TOPIC_ID, None, requested.topic_id)
    name = requested.name or ""
    topic = metadata.topics.get(name)
    if topic is not None:
        return _describe(ctx, broker, topic)
    creates = request.allow_auto_topic_creation and broker.auto_creates_topics
    if creates and not _may_create(ctx, broker, name):
        return _failed(ctx, ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
    if invalid_topic_name(name) is not None:
        return _failed(ctx, ErrorCode.INVALID_TOPIC_EXCEPTION, name)
    if not creates:
        return _failed(ctx, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
    if broker.throttler.refuses_auto_creation(ctx, broker.cluster.config.integer("num.partitions")):
        return _failed(ctx, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)  # the client retries, as with Kafka
    return _failed(ctx, broker.auto_create_topic(name), name)


def _may_create(ctx: RequestContext, broker: Broker, name: str) -> bool:
    return broker.auth.authorize_cluster(ctx, AclOperation.CREATE, log_denied=False) or broker.auth.authorize(
        ctx, AclOperation.CREATE, ResourceType.TOPIC, name
    )


def _describe(ctx: RequestContext, broker: Broker, topic: Topic) -> api.MetadataResponseTopic:
    fenced, image = broker.metadata.fenced, broker.metadata.image
    partitions = []
    none = list[int]()  # shared: a topic may have a thousand partitions
    for partition in topic.partitions:
        known = partition if image is None else image.partitions.get(partition)
        if known is None:
            if not partition.index:  # this broker has not received the topic yet
                return _failed(ctx, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic.name)
            continue
        code = ErrorCode.NONE
        if known.leader == NO_LEADER:
            code = ErrorCode.LEADER_NOT_AVAILABLE
            ctx.error_code = ctx.error_code or code
        offline = [node_id for node_id in known.replicas if node_id in fenced] if fenced else none
        # Positional: error code, index, leader id, leader epoch, replicas, ISR, offline replicas.
        partitions.append(
            api.MetadataResponsePartition(
                code, partition.index, known.leader, known.leader_epoch, list(known.replicas), list(known.isr), offline
            )
        )
    return api.MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in COORDINATOR_TOPICS,  # not the journal: Spark reads no internal topic
        partitions=partitions,
    )


def _failed(ctx: RequestContext, code: int, name: str | None, topic_id: bytes = ZERO_UUID) -> api.MetadataResponseTopic:
    ctx.error_code = ctx.error_code or code
    is_internal = name in COORDINATOR_TOPICS
    return api.MetadataResponseTopic(error_code=code, name=name, topic_id=topic_id, is_internal=is_internal)
