"""CreatePartitions, key 37, versions 0-3 (KIP-195).

Follows ControllerApis.createPartitions and ReplicationControlManager. As in Kafka, also assignments that turn out to be
invalid are charged to a quota.
"""

from collections.abc import Collection, Sequence

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.metadata.new_topic import MAX_PARTITIONS, TopicError
from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import expired, failed
from sluice.broker.requests.served_api import Charge, served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import create_partitions as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.quotas.mutation_quota import ControllerMutationQuota

API = served("CreatePartitions", "0-3", charge=Charge.MUTATIONS, forwarded=True)

_DUPLICATE = TopicError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
_UNKNOWN = TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
_OVER_QUOTA = TopicError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)
_DENIED = TopicError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
_EXCESSIVE = "Excessively large number of additional partitions per request."


def handle(ctx: RequestContext, request: api.CreatePartitionsRequest, broker: Broker) -> Message:
    times = ctx.counts(requested.name for requested in request.topics)
    once = ctx.array(requested for requested in request.topics if times[requested.name] == 1)
    results = [_failed(ctx, name, _DUPLICATE) for name, n in times.items() if n > 1]
    response = api.CreatePartitionsResponse(results=results)
    denied = broker.auth.filter_denied(
        ctx, AclOperation.ALTER, ResourceType.TOPIC, [requested.name for requested in once]
    )
    if denied:
        results += [_failed(ctx, requested.name, _DENIED) for requested in once if requested.name in denied]
        once = ctx.array(requested for requested in once if requested.name not in denied)
    if once and request.timeout_ms <= 0:
        return expired(ctx, request)
    if _additional(broker, once) > MAX_PARTITIONS:
        return failed(ctx, request, ErrorCode.POLICY_VIOLATION, _EXCESSIVE)
    quota = broker.throttler.mutation_quota(ctx)
    results += [_create(ctx, broker, requested, request.validate_only, quota) for requested in once]
    response.throttle_time_ms = 0 if quota is None else quota.throttle_time_ms()
    return response


def _additional(broker: Broker, once: Collection[api.CreatePartitionsTopic]) -> int:
    topics = broker.metadata.topics
    return sum(
        max(0, requested.count - len(topics[requested.name].partitions))
        for requested in once
        if requested.name in topics
    )


def _create(
    ctx: RequestContext,
    broker: Broker,
    requested: api.CreatePartitionsTopic,
    validate_only: bool,
    quota: ControllerMutationQuota | None,
) -> api.CreatePartitionsTopicResult:
    cluster = broker.cluster
    assignments = requested.assignments
    brokers = None if assignments is None else [[*assignment.broker_ids] for assignment in assignments]
    topic = broker.metadata.topics.get(requested.name)
    if topic is None:
        return _failed(ctx, requested.name, _UNKNOWN)
    error = _count_error(requested, topic)
    if error is None and quota is not None and not quota.record(requested.count - len(topic.partitions)):
        error = _OVER_QUOTA
    error = error or _placement_error(brokers, topic, cluster)
    if error is None and not validate_only:
        error = cluster.add_partitions(topic, requested.count, brokers)
    return (
        api.CreatePartitionsTopicResult(name=requested.name) if error is None else _failed(ctx, requested.name, error)
    )


def _count_error(requested: api.CreatePartitionsTopic, topic: Topic) -> TopicError | None:
    now = len(topic.partitions)
    if requested.count == now:
        return TopicError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
    if requested.count < now:
        would = f"{requested.count} would not be an increase."
        message = f"The topic {topic.name} currently has {now} partition(s); {would}"
        return TopicError(ErrorCode.INVALID_PARTITIONS, message)
    additional = requested.count - now
    if requested.assignments is not None and len(requested.assignments) != additional:
        message = (
            f"Attempted to add {additional} additional partition(s), but only {len(requested.assignments)} "
            "assignment(s) were specified."
        )
        return TopicError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return None


def _placement_error(brokers: Sequence[Sequence[int]] | None, topic: Topic, cluster: Cluster) -> TopicError | None:
    replication_factor = len(topic.partitions[0].replicas)
    if brokers is None:
        code, problem = ErrorCode.INVALID_REPLICATION_FACTOR, cluster.rules.placement_problem(replication_factor)
    else:
        assigned = enumerate(brokers, len(topic.partitions))
        code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        problem = cluster.rules.assignments_problem(assigned, replication_factor)
    return None if problem is None else TopicError(code, problem)


def _failed(ctx: RequestContext, name: str, error: TopicError) -> api.CreatePartitionsTopicResult:
    ctx.error_code = ctx.error_code or error.code
    return api.CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.message)
