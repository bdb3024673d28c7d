"""The records of Streams groups in __consumer_offsets. Follows Kafka's StreamsCoordinatorRecordHelpers."""

from collections.abc import Collection, Iterable, Mapping

from sluice.broker.coordinator.common.coordinator_log import KeyValue, encode_record
from sluice.protocol.message import Message

from . import record_values as values
from .group import StreamsGroup
from .member import StreamsMember
from .record_keys import (
    CURRENT_ASSIGNMENT,
    GROUP_METADATA,
    MEMBER_METADATA,
    TARGET_MEMBER,
    TARGET_METADATA,
    TOPOLOGY,
    group_key,
    member_key,
)
from .tasks import Task, Tasks, by_subtopology
from .topology import TopicInfo, Topology


def group_metadata(group: StreamsGroup) -> KeyValue:
    value = values.StreamsGroupMetadataValue(
        epoch=group.group_epoch,
        metadata_hash=group.metadata_hash,
        validated_topology_epoch=group.validated_topology_epoch,
        last_assignment_configs=[
            values.LastAssignmentConfig(key=key, value=value) for key, value in sorted(group.assignment_configs.items())
        ],
        stored_description_topology_epoch=group.stored_description_epoch,
        failed_description_topology_epoch=group.failed_description_epoch,
    )
    return group_key(GROUP_METADATA, group.group_id), _value(value)


def member_metadata(group_id: str, member: StreamsMember) -> KeyValue:
    endpoint = member.user_endpoint
    value = values.StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else values.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[values.KeyValue(key=key, value=value) for key, value in sorted(member.client_tags.items())],
    )
    return member_key(MEMBER_METADATA, group_id, member.member_id), _value(value)


def target_epoch(group: StreamsGroup) -> KeyValue:
    value = values.StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=group.assignment_epoch, assignment_timestamp=group.assignment_timestamp_ms
    )
    return group_key(TARGET_METADATA, group.group_id), _value(value)


def target_assignment(group_id: str, member_id: str, target: Tasks) -> KeyValue:
    active, standby, warmup = (
        [values.TaskIds(subtopology_id=name, partitions=those) for name, those in by_subtopology(tasks).items()]
        for tasks in target
    )
    value = values.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=active, standby_tasks=standby, warmup_tasks=warmup
    )
    return member_key(TARGET_MEMBER, group_id, member_id), _value(value)


def current_assignment(group_id: str, member: StreamsMember) -> KeyValue:
    assigned, pending = member.assigned, member.pending_revocation
    value = values.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        active_tasks=_with_epochs(assigned.active),
        standby_tasks=_without_epochs(assigned.standby),
        warmup_tasks=_without_epochs(assigned.warmup),
        active_tasks_pending_revocation=_with_epochs(pending.active),
        standby_tasks_pending_revocation=_without_epochs(pending.standby),
        warmup_tasks_pending_revocation=_without_epochs(pending.warmup),
    )
    return member_key(CURRENT_ASSIGNMENT, group_id, member.member_id), _value(value)


def topology_record(group_id: str, topology: Topology) -> KeyValue:
    value = values.StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            values.Subtopology(
                subtopology_id=one.subtopology_id,
                source_topics=list(one.source_topics),
                source_topic_regex=list(one.source_topic_regex),
                state_changelog_topics=_topics(one.state_changelog_topics),
                repartition_sink_topics=list(one.repartition_sink_topics),
                repartition_source_topics=_topics(one.repartition_source_topics),
                copartition_groups=[
                    values.CopartitionGroup(
                        source_topics=list(group.source_topics),
                        source_topic_regex=list(group.source_topic_regex),
                        repartition_source_topics=list(group.repartition_source_topics),
                    )
                    for group in one.copartition_groups
                ],
            )
            for one in topology.subtopologies.values()
        ],
    )
    return group_key(TOPOLOGY, group_id), _value(value)


def _topics(topics: Iterable[TopicInfo]) -> list[values.TopicInfo]:
    return [
        values.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[values.TopicConfig(key=key, value=value) for key, value in topic.configs],
        )
        for topic in topics
    ]


def _with_epochs(active: Mapping[Task, int]) -> list[values.TaskIdsWithEpochs]:
    return [
        values.TaskIdsWithEpochs(
            subtopology_id=name, partitions=those, assignment_epochs=[active[name, index] for index in those]
        )
        for name, those in by_subtopology(active).items()
    ]


def _without_epochs(tasks: Collection[Task]) -> list[values.TaskIdsWithEpochs]:
    return [
        values.TaskIdsWithEpochs(subtopology_id=name, partitions=those) for name, those in by_subtopology(tasks).items()
    ]


def _value(message: Message) -> bytes:
    return encode_record(0, message, 0)
