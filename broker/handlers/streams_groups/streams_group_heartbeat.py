"""StreamsGroupHeartbeat, key 88, versions 0-1 (KIP-1071).

Only v1 returns the status MISSING_CLIENT_TAGS. Follows Kafka's KafkaApis.handleStreamsGroupHeartbeat; see
broker/coordinator/group/streams/heartbeat.py.
"""

from collections.abc import Collection
from itertools import chain

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.group import STREAMS, HeartbeatError
from sluice.broker.handlers.replicated_response import ReplicationErrors, respond_when_replicated
from sluice.broker.metadata.topic import COORDINATOR_TOPICS, invalid_topic_name
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Topology
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .internal_topics import create_internal_topics

API = served("StreamsGroupHeartbeat", "0-1")


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
            create_internal_topics(ctx, broker, result.missing_topics, result.response)
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
