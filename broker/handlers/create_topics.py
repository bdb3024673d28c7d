"""CreateTopics, key 19, versions 0-7. v1 can only validate and says why not, v4 takes the broker's defaults for -1
(KIP-464), v5 answers the new topic's configs (KIP-525), v7 its id (KIP-516). Follows Kafka's
ReplicationControlManager.createTopics.
"""

from collections import Counter

from sluice.broker.cluster import NewTopic, Topic, TopicError
from sluice.broker.context import RequestContext
from sluice.broker.handlers.describe_configs import CONFIG_SOURCES
from sluice.protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sluice.protocol.errors import ErrorCode


def handle(ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """One answer a topic, each created or not on its own; a name that comes twice is created neither time."""
    times = Counter(topic.name for topic in request.topics)
    answered: dict[str, CreatableTopicResult] = {}
    for wanted in request.topics:
        if wanted.name not in answered:
            answered[wanted.name] = _create(ctx, wanted, times[wanted.name], request.validate_only)
    return CreateTopicsResponse(topics=list(answered.values()))


def _create(ctx: RequestContext, wanted: CreatableTopic, times: int, validate_only: bool) -> CreatableTopicResult:
    if times > 1:
        return _failed(ctx, wanted, TopicError(ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
    repeated = [index for index, n in Counter(a.partition_index for a in wanted.assignments).items() if n > 1]
    if repeated:
        message = f"Found multiple manual partition assignments for partition {repeated[0]}"
        return _failed(ctx, wanted, TopicError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message))
    new = NewTopic(
        wanted.name,
        wanted.num_partitions,
        wanted.replication_factor,
        {assignment.partition_index: assignment.broker_ids for assignment in wanted.assignments},
        {config.name: config.value for config in wanted.configs},
    )
    created = ctx.broker.cluster.create(new, validate_only=validate_only)
    if isinstance(created, TopicError):
        return _failed(ctx, wanted, created)
    return _created(created)


def _created(topic: Topic) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=1,
        configs=[
            CreatableTopicConfigs(
                name=setting.property.name,
                value=setting.value,
                config_source=CONFIG_SOURCES[setting.source],
            )
            for setting in topic.config.entries()
        ],
    )


def _failed(ctx: RequestContext, wanted: CreatableTopic, error: TopicError) -> CreatableTopicResult:
    ctx.error_code = ctx.error_code or error.code
    return CreatableTopicResult(
        name=wanted.name, error_code=error.code, error_message=error.message, topic_config_error_code=0
    )
