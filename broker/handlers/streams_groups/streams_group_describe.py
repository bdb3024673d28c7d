"""StreamsGroupDescribe, key 89, versions 0-1 (KIP-1071).

The topology description (KIP-1331) is never stored: it needs a plug-in. Follows Kafka's StreamsGroup.asDescribedGroup
and KafkaApis.handleStreamsGroupDescribe.
"""

from collections.abc import Iterable, Mapping

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.group import STREAMS
from sluice.broker.coordinator.group.streams.group import StreamsGroup
from sluice.broker.coordinator.group.streams.member import AssignedTasks, StreamsMember, Task, Tasks, by_subtopology
from sluice.broker.handlers.groups.described_groups import Kind, describe_groups
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.protocol.apis import streams_group_describe as api
from sluice.protocol.apis import streams_group_heartbeat as sent

API = served("StreamsGroupDescribe", "0-1")

_NOT_STORED = 1  # topology description status
_HIDDEN_TOPICS = "The described group uses topics that the client is not authorized to describe."


def handle(
    ctx: RequestContext, request: api.StreamsGroupDescribeRequest, broker: Broker
) -> api.StreamsGroupDescribeResponse:
    def describe(group: StreamsGroup) -> api.DescribedGroup:
        return api.DescribedGroup(
            group_id=group.group_id,
            group_state=group.state_name,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            topology=_topology(group),
            members=[_member(group, member) for member in group.members.values()],
            topology_description_status=_NOT_STORED if request.include_topology_description else 0,
            assignor_name=broker.groups.group_configs(group.group_id).text("streams.assignor.name"),
        )

    kind = Kind(STREAMS, broker.serves_groups(STREAMS), _HIDDEN_TOPICS)
    groups = describe_groups(ctx, broker, request, kind, StreamsGroup, api.DescribedGroup, describe, _topics)
    return api.StreamsGroupDescribeResponse(groups=groups)


def _topics(group: api.DescribedGroup) -> set[str]:
    names: set[str] = set()
    for one in () if group.topology is None else group.topology.subtopologies or ():
        names.update(one.source_topics, one.repartition_sink_topics)
        names.update(topic.name for topic in (*one.repartition_source_topics, *one.state_changelog_topics))
    return names


def _topology(group: StreamsGroup) -> api.Topology | None:
    configured, topology = group.configured, group.topology
    if topology is None:
        return None
    if configured is not None and configured.problem is None:
        subtopologies = [one.described for one in configured.subtopologies.values()]
    else:
        subtopologies = sorted(topology.subtopologies.values(), key=lambda one: one.subtopology_id)
    return api.Topology(epoch=topology.epoch, subtopologies=[_subtopology(one) for one in subtopologies])


def _subtopology(one: sent.Subtopology) -> api.Subtopology:
    return api.Subtopology(
        subtopology_id=one.subtopology_id,
        source_topics=sorted(one.source_topics),
        repartition_sink_topics=sorted(one.repartition_sink_topics),
        state_changelog_topics=_topic_infos(one.state_changelog_topics),
        repartition_source_topics=_topic_infos(one.repartition_source_topics),
    )


def _topic_infos(topics: Iterable[sent.TopicInfo]) -> list[sent.TopicInfo]:
    return [
        sent.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=_pairs((config.key, config.value) for config in topic.topic_configs),
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(group: StreamsGroup, member: StreamsMember) -> api.Member:
    offsets, end_offsets = group.offsets_of(member.member_id)
    endpoint = member.user_endpoint
    return api.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else sent.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=_pairs(member.client_tags.items()),
        task_offsets=_task_offsets(offsets),
        task_end_offsets=_task_offsets(end_offsets),
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.target.get(member.member_id, Tasks())),
    )


def _assignment(tasks: Tasks | AssignedTasks) -> api.Assignment:
    active, standby, warmup = (
        [sent.TaskIds(subtopology_id=name, partitions=those) for name, those in by_subtopology(role).items()]
        for role in tasks
    )
    return api.Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)


def _task_offsets(offsets: Mapping[Task, int]) -> list[sent.TaskOffset]:
    return [
        sent.TaskOffset(subtopology_id=name, partition=partition, offset=offset)
        for (name, partition), offset in sorted(offsets.items())
    ]


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[sent.KeyValue]:
    return [sent.KeyValue(key=key, value=value) for key, value in pairs]
