"""CreateTopics, key 19, versions 0-7. Follows Kafka's ReplicationControlManager.createTopics."""

from collections.abc import Collection

from sluice.broker.broker import Broker
from sluice.broker.controller.configs.resource import CONFIG_SOURCES
from sluice.broker.metadata.new_topic import EXCESSIVE_PARTITIONS, MAX_PARTITIONS, NewTopic, TopicError
from sluice.broker.metadata.topic import METADATA_TOPIC, Topic
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import expired, failed
from sluice.broker.requests.served_api import Charge, served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import create_topics as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.quotas.mutation_quota import ControllerMutationQuota

API = served("CreateTopics", "0-7", charge=Charge.MUTATIONS, forwarded=True)

_CONFIGS_SINCE = 5
_DENIED = TopicError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


def handle(ctx: RequestContext, request: api.CreateTopicsRequest, broker: Broker) -> Message:
    times = ctx.counts(topic.name for topic in request.topics)
    names = ctx.array(name for name, n in times.items() if n == 1 and name != METADATA_TOPIC)
    may_create_all = broker.auth.authorize_cluster(ctx, AclOperation.CREATE, log_denied=False)
    denied = () if may_create_all else broker.auth.filter_denied(ctx, AclOperation.CREATE, ResourceType.TOPIC, names)
    hidden = broker.auth.filter_denied(ctx, AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, names, log_denied=False)
    if request.timeout_ms <= 0 and any(name not in denied for name in names):
        return expired(ctx, request)
    once: dict[str, api.CreatableTopic] = ctx.mapping()
    for topic in request.topics:
        once[topic.name] = topic
    requested = ctx.array((topic, _new_topic(ctx, topic)) for topic in once.values())
    once_only = (new for _, new in requested if times[new.name] == 1 and new.name != METADATA_TOPIC)
    valid = (new for new in once_only if new.name not in denied)
    if sum(max(0, broker.cluster.rules.partition_count(new)) for new in valid) > MAX_PARTITIONS:
        return failed(ctx, request, EXCESSIVE_PARTITIONS.code, EXCESSIVE_PARTITIONS.message)
    quota = broker.throttler.mutation_quota(ctx)
    created: set[str] = set()
    return api.CreateTopicsResponse(
        topics=[
            _failed(ctx, topic, _DENIED)
            if topic.name in denied
            else _without_configs(
                _create(ctx, broker, topic, new, times[topic.name], request.validate_only, quota, created), hidden
            )
            for topic, new in requested
        ],
        throttle_time_ms=0 if quota is None else quota.throttle_time_ms(),
    )


def _without_configs(result: api.CreatableTopicResult, hidden: Collection[str]) -> api.CreatableTopicResult:
    if result.error_code or result.name not in hidden:
        return result
    denied_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return api.CreatableTopicResult(
        name=result.name, topic_id=result.topic_id, error_message=None, topic_config_error_code=denied_code
    )


def _new_topic(ctx: RequestContext, requested: api.CreatableTopic) -> NewTopic:
    assignments = ctx.array((one.partition_index, [*one.broker_ids]) for one in requested.assignments)
    return NewTopic(
        requested.name,
        requested.num_partitions,
        requested.replication_factor,
        assignments.copy(),
        {config.name: config.value for config in requested.configs},
    )


def _create(
    ctx: RequestContext,
    broker: Broker,
    requested: api.CreatableTopic,
    new: NewTopic,
    times: int,
    validate_only: bool,
    quota: ControllerMutationQuota | None,
    beside: set[str],
) -> api.CreatableTopicResult:
    if times > 1:
        return _failed(ctx, requested, TopicError(ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
    cluster = broker.cluster
    # Validated before the quota is charged: invalid topics are free; validate_only is charged.
    created = cluster.create(new, validate_only=validate_only or quota is not None, beside=beside)
    if quota is not None and isinstance(created, Topic):
        if not quota.record(len(created.partitions)):
            created = TopicError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)
        elif not validate_only:
            created = cluster.create(new, beside=beside)
    if isinstance(created, TopicError):
        return _failed(ctx, requested, created)
    if not validate_only:
        beside.add(created.name)
    return _created(created, with_configs=ctx.version >= _CONFIGS_SINCE)


def _created(topic: Topic, *, with_configs: bool) -> api.CreatableTopicResult:
    entries = topic.config.entries() if with_configs else ()
    return api.CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=[
            api.CreatableTopicConfigs(
                name=setting.property.name,
                value=topic.config.own.get(setting.property.name, setting.value),  # as in the request
                config_source=CONFIG_SOURCES[setting.source],
            )
            for setting in sorted(entries, key=lambda setting: setting.property.name)
        ],
    )


def _failed(ctx: RequestContext, requested: api.CreatableTopic, error: TopicError) -> api.CreatableTopicResult:
    ctx.error_code = ctx.error_code or error.code
    return api.CreatableTopicResult(
        name=requested.name, error_code=error.code, error_message=error.message, topic_config_error_code=0
    )
