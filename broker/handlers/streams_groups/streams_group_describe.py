"""StreamsGroupDescribe, key 89, versions 0-1 (KIP-1071).

The topology description (KIP-1331) is never stored: it needs a plug-in. Follows Kafka's StreamsGroup.asDescribedGroup
and KafkaApis.handleStreamsGroupDescribe.
"""

from collections.abc import Iterable, Mapping

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.group import STREAMS
from sluice.broker.coordinator.group.streams.group import StreamsGroup
from sluice.broker.coordinator.group.streams.member import StreamsMember
from sluice.broker.coordinator.group.streams.tasks import AssignedTasks, Task, Tasks, by_subtopology
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import streams_group_heartbeat as sent
from sluice.protocol.apis.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from sluice.protocol.errors import ErrorCode

API = served("StreamsGroupDescribe", "0-1")

_NOT_STORED = 1  # topology description status
_HIDDEN_TOPICS = "The described group uses topics that the client is not authorized to describe."


def handle(ctx: RequestContext, request: StreamsGroupDescribeRequest, broker: Broker) -> StreamsGroupDescribeResponse:
    described = ctx.array(_describe(ctx, request, broker, group_id) for group_id in request.group_ids)
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = broker.auth.authorized_operations(ctx, ResourceType.GROUP, group.group_id)
    if broker.authorizer is not None:
        described = _without_hidden_topics(ctx, broker, described)
    ctx.error_code = next((group.error_code for group in described if group.error_code), 0)
    return StreamsGroupDescribeResponse(groups=described)


def _without_hidden_topics(
    ctx: RequestContext, broker: Broker, described: list[DescribedGroup]
) -> list[DescribedGroup]:
    # A group with a topic that the client must not see is replaced by an error.
    topics = ctx.array(_topics(group) for group in described)
    hidden = broker.auth.have_hidden_topics(ctx, topics)
    return ctx.array(
        group
        if not is_hidden
        else DescribedGroup(
            group_id=group.group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=_HIDDEN_TOPICS
        )
        for group, is_hidden in zip(described, hidden, strict=True)
    )


def _topics(group: DescribedGroup) -> set[str]:
    names: set[str] = set()
    for one in () if group.topology is None else group.topology.subtopologies or ():
        names.update(one.source_topics, one.repartition_sink_topics)
        names.update(topic.name for topic in (*one.repartition_source_topics, *one.state_changelog_topics))
    return names


def _describe(
    ctx: RequestContext, request: StreamsGroupDescribeRequest, broker: Broker, group_id: str
) -> DescribedGroup:
    if not broker.serves_groups(STREAMS):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not broker.auth.authorize(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    error = broker.groups.error(group_id)
    if error:
        return DescribedGroup(group_id=group_id, error_code=error)
    group = broker.groups.groups.get(group_id)
    if not isinstance(group, StreamsGroup):
        problem = "not found" if group is None else "is not a streams group"
        message = f"Group {group_id} {problem}."
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=[_member(group, member) for member in group.members.values()],
        topology_description_status=_NOT_STORED if request.include_topology_description else 0,
        assignor_name=broker.groups.group_configs(group_id).text("streams.assignor.name"),
    )


def _topology(group: StreamsGroup) -> Topology | None:
    configured, topology = group.configured, group.topology
    if topology is None:
        return None
    if configured is not None and configured.problem is None:
        subtopologies = [one.described for one in configured.subtopologies.values()]
    else:
        subtopologies = sorted(topology.subtopologies.values(), key=lambda one: one.subtopology_id)
    return Topology(epoch=topology.epoch, subtopologies=[_subtopology(one) for one in subtopologies])


def _subtopology(one: sent.Subtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=one.subtopology_id,
        source_topics=sorted(one.source_topics),
        repartition_sink_topics=sorted(one.repartition_sink_topics),
        state_changelog_topics=_topic_infos(one.state_changelog_topics),
        repartition_source_topics=_topic_infos(one.repartition_source_topics),
    )


def _topic_infos(topics: Iterable[sent.TopicInfo]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=_pairs((config.key, config.value) for config in topic.topic_configs),
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(group: StreamsGroup, member: StreamsMember) -> Member:
    offsets, end_offsets = group.offsets_of(member.member_id)
    endpoint = member.user_endpoint
    return Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=_pairs(member.client_tags.items()),
        task_offsets=_task_offsets(offsets),
        task_end_offsets=_task_offsets(end_offsets),
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.target.get(member.member_id, Tasks())),
    )


def _assignment(tasks: Tasks | AssignedTasks) -> Assignment:
    active, standby, warmup = (
        [TaskIds(subtopology_id=name, partitions=those) for name, those in by_subtopology(role).items()]
        for role in tasks
    )
    return Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)


def _task_offsets(offsets: Mapping[Task, int]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=name, partition=partition, offset=offset)
        for (name, partition), offset in sorted(offsets.items())
    ]


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[KeyValue]:
    return [KeyValue(key=key, value=value) for key, value in pairs]
