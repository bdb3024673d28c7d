"""The creation of internal topics of Streams groups by StreamsGroupHeartbeat.

Follows KafkaApis.handleStreamsGroupHeartbeat and DefaultAutoTopicCreationManager: with the permissions and the quota of
the member, and not again within two heartbeat intervals of a failure, which the next heartbeats report.
"""

from collections.abc import Mapping

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.streams.heartbeat import CreationError
from sluice.broker.coordinator.group.streams.topology import Status
from sluice.broker.metadata.new_topic import EXCESSIVE_PARTITIONS, MAX_PARTITIONS, NewTopic, TopicError
from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import RequestContext
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.streams_group_heartbeat import StreamsGroupHeartbeatResponse, TopicInfo
from sluice.protocol.errors import ErrorCode

_REPORTED_ERRORS = 3


def create_internal_topics(
    ctx: RequestContext, broker: Broker, missing: Mapping[str, TopicInfo], response: StreamsGroupHeartbeatResponse
) -> None:
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
