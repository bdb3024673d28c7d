"""StreamsGroupHeartbeat, key 88, versions 0-1 (KIP-1071).

Only v1 returns the status MISSING_CLIENT_TAGS. Follows Kafka's KafkaApis.handleStreamsGroupHeartbeat; see
broker/coordinator/group/streams/heartbeat.py.
"""

from collections.abc import Collection, Mapping
from itertools import chain

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.group import STREAMS, HeartbeatError
from sluice.broker.coordinator.group.streams.heartbeat import CreationError
from sluice.broker.coordinator.group.streams.topology import Status
from sluice.broker.handlers.replicated_response import ReplicationErrors, respond_when_replicated
from sluice.broker.metadata.new_topic import EXCESSIVE_PARTITIONS, MAX_PARTITIONS, NewTopic, TopicError
from sluice.broker.metadata.topic import COORDINATOR_TOPICS, Topic, invalid_topic_name
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TopicInfo,
    Topology,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("StreamsGroupHeartbeat", "0-1")

_REPORTED_ERRORS = 3


def handle(ctx: RequestContext, request: StreamsGroupHeartbeatRequest, broker: Broker) -> Message | Outcome:
    error = _access_error(ctx, request, broker)
    if error is not None:
        return failed(ctx, request, *error)
    result = broker.groups.streams.heartbeat(ctx, request)
    if isinstance(result, HeartbeatError):
        return failed(ctx, request, *result)

    def respond(errors: ReplicationErrors) -> Message:
        if errors:
            return failed(ctx, request, errors[request.group_id])
        if result.missing_topics:
            _create_internal_topics(ctx, broker, result.missing_topics, result.response)
        return result.response

    return respond_when_replicated(ctx, broker, [request.group_id], respond)


def _access_error(ctx: RequestContext, request: StreamsGroupHeartbeatRequest, broker: Broker) -> HeartbeatError | None:
    if not broker.serves_groups(STREAMS):
        return HeartbeatError(ErrorCode.UNSUPPORTED_VERSION, None)
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return HeartbeatError(ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    if request.topology is None:
        return None
    topics = ctx.array(_required_topics(ctx, request.topology))
    prohibited = [name for name in topics if name in COORDINATOR_TOPICS]
    if prohibited:
        message = f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited."
        return HeartbeatError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    invalid = [name for name in topics if invalid_topic_name(name) is not None]
    if invalid:
        message = f"Topic names {','.join(invalid)} are not valid topic names."
        return HeartbeatError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    if broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, topics):
        return HeartbeatError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
    return None


def _required_topics(ctx: RequestContext, topology: Topology) -> Collection[str]:
    names: dict[str, None] = ctx.mapping()
    for one in topology.subtopologies:
        for name in chain(one.source_topics, one.repartition_sink_topics):
            names[name] = None
        for topic in chain(one.repartition_source_topics, one.state_changelog_topics):
            names[topic.name] = None
    return names


def _create_internal_topics(
    ctx: RequestContext, broker: Broker, missing: Mapping[str, TopicInfo], response: StreamsGroupHeartbeatResponse
) -> None:
    """Create topics with the permissions and the quota of the member.

    After a failure, not again within two heartbeat intervals, in which heartbeats report it. Follows
    DefaultAutoTopicCreationManager.
    """
    denied = _denied(ctx, broker, missing)
    if denied:
        _add_detail(response, f"; Unauthorized to CREATE on topics {', '.join(denied)}.")
        return
    errors = broker.groups.streams.creation_errors
    now_ms = broker.clock.monotonic_ms()
    for name in [name for name, error in errors.items() if error.until_ms <= now_ms]:
        del errors[name]
    failed = [f"{name} ({errors[name].message})" for name in missing if name in errors]
    retry_ms = now_ms + 2 * response.heartbeat_interval_ms
    due = [one for name, one in missing.items() if name not in errors and name not in broker.metadata.topics]
    is_excessive = sum(topic.partitions for topic in due) > MAX_PARTITIONS
    for topic in due:
        created = EXCESSIVE_PARTITIONS if is_excessive else _create(ctx, broker, topic)
        if isinstance(created, TopicError):
            errors[topic.name] = CreationError(created.message or created.code.message, retry_ms)
    if failed:
        more = len(failed) - _REPORTED_ERRORS
        summary = ", ".join(failed[:_REPORTED_ERRORS]) + (f" and {more} more" if more > 0 else "")
        _add_detail(response, f"; Creation failed: {summary}.")


def _denied(ctx: RequestContext, broker: Broker, missing: Mapping[str, TopicInfo]) -> list[str]:
    if broker.auth.authorize_cluster(ctx, AclOperation.CREATE, log_denied=False):
        return []
    denied = broker.auth.filter_denied(ctx, AclOperation.CREATE, ResourceType.TOPIC, missing)
    return [name for name in missing if name in denied]


def _create(ctx: RequestContext, broker: Broker, topic: TopicInfo) -> Topic | TopicError:
    if broker.throttler.refuses_auto_creation(ctx, topic.partitions):
        return TopicError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)
    replicas = topic.replication_factor or -1
    configs = {config.key: config.value for config in topic.topic_configs}
    return broker.create_topic(NewTopic(topic.name, topic.partitions, replicas, configs=configs))


def _add_detail(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    for status in response.status or ():
        if status.status_code == Status.MISSING_INTERNAL_TOPICS:
            status.status_detail += detail
