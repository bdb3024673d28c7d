"""The validation of StreamsGroupHeartbeat requests (KIP-1071).

Follows Kafka's GroupCoordinatorService and the Streams part of its GroupMetadataManager.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from sluice.broker.coordinator.group.group import HeartbeatError
from sluice.broker.coordinator.group.modern_group import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    MemberSlot,
    blank_field,
    fenced_epoch,
    first_problem,
    unreleased_instance,
)
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis import streams_group_heartbeat as api
from sluice.protocol.errors import ErrorCode

from .configured_topology import ConfiguredSubtopology
from .group import StreamsGroup
from .member import MemberState, StreamsMember, Task, Tasks

# Without the contents of their strings and arrays.
_SUBTOPOLOGY_BYTES, _TOPIC_BYTES, _COPARTITION_GROUP_BYTES = 8, 9, 4


def request_error(request: api.StreamsGroupHeartbeatRequest) -> HeartbeatError | None:
    """Return the error of a request that is invalid for any group."""
    epoch, topology = request.member_epoch, request.topology
    joins, leaves_temporarily = epoch == JOIN_EPOCH, epoch == STATIC_LEAVE_EPOCH
    by_role = {"Active": request.active_tasks, "Standby": request.standby_tasks, "Warmup": request.warmup_tasks}
    some, all_ = any(tasks is not None for tasks in by_role.values()), None not in by_role.values()
    blank = blank_field(
        MemberId=request.member_id, GroupId=request.group_id, InstanceId=request.instance_id, RackId=request.rack_id
    )
    problems = (
        (_has_regex(topology), "Regular expressions for source topics are not supported yet."),
        (blank is not None, f"{blank} can't be empty."),
        (joins and request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request."),
        *((joins and tasks != [], f"{role}Tasks must be empty when (re-)joining.") for role, tasks in by_role.items()),
        (joins and topology is None, "Topology must be non-null when (re-)joining."),
        (leaves_temporarily and request.instance_id is None, "InstanceId can't be null."),
        (epoch < STATIC_LEAVE_EPOCH, f"MemberEpoch is {epoch}, but must be greater than or equal to -2."),
        (some and not all_, "If one task-type is non-null, all must be non-null."),
        (not joins and topology is not None, "Topology can only be provided when (re-)joining."),
    )
    return first_problem(problems) or _changelog_error(topology)


def _has_regex(topology: api.Topology | None) -> bool:
    return topology is not None and any(one.source_topic_regex for one in topology.subtopologies)


def _changelog_error(topology: api.Topology | None) -> HeartbeatError | None:
    for subtopology in () if topology is None else topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                message = (
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )
                return HeartbeatError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    return None


def least_record_bytes(request: api.StreamsGroupHeartbeatRequest) -> int:
    """Return fewer bytes than the record of the topology, or of the member's tags, has."""
    subtopologies = () if request.topology is None else request.topology.subtopologies
    tags = sum(2 + len(tag.key) + len(tag.value) for tag in request.client_tags or ())
    return max(tags, sum(_least_bytes(one) for one in subtopologies))


def _least_bytes(one: api.Subtopology) -> int:
    topics = chain(one.repartition_source_topics, one.state_changelog_topics)
    return (
        _SUBTOPOLOGY_BYTES
        + sum(1 + len(name) for name in chain(one.source_topics, one.repartition_sink_topics))
        + sum(_TOPIC_BYTES + len(topic.name) + 2 * len(topic.topic_configs) for topic in topics)
        + sum(_least_indexes_bytes(group) for group in one.copartition_groups)
    )


def _least_indexes_bytes(group: api.CopartitionGroup) -> int:
    count = len(group.source_topics) + len(group.source_topic_regex) + len(group.repartition_source_topics)
    return _COPARTITION_GROUP_BYTES + 2 * count


def owned_tasks(request: api.StreamsGroupHeartbeatRequest) -> Tasks | None:
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return Tasks(*(_tasks(role) for role in (request.active_tasks, request.standby_tasks, request.warmup_tasks)))


def _tasks(reported: Iterable[api.TaskIds]) -> frozenset[Task]:
    return frozenset((one.subtopology_id, partition) for one in reported for partition in one.partitions)


def distinct_tasks(ctx: RequestContext, request: api.StreamsGroupHeartbeatRequest) -> Collection[Task]:
    roles = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    reported = (one for role in roles for one in role or ())
    tasks: dict[Task, None] = ctx.kept_mapping()
    tasks.update(((one.subtopology_id, partition), None) for one in reported for partition in one.partitions)
    return tasks


def task_error(reported: Collection[Task], subtopologies: Mapping[str, ConfiguredSubtopology]) -> HeartbeatError | None:
    for subtopology_id, partition in reported:
        subtopology = subtopologies.get(subtopology_id)
        if subtopology is None:
            message = f"Subtopology {subtopology_id} does not exist in the topology."
            return HeartbeatError(ErrorCode.INVALID_REQUEST, message)
        if not 0 <= partition < subtopology.task_count:
            message = (
                f"Task {partition} for subtopology {subtopology_id} is invalid. Number of tasks for this subtopology: "
                f"{subtopology.task_count}"
            )
            return HeartbeatError(ErrorCode.INVALID_REQUEST, message)
    return None


def offsets_by_task(
    ctx: RequestContext, reported: Iterable[api.TaskOffset] | None
) -> dict[Task, int] | HeartbeatError | None:
    if reported is None:
        return None
    offsets: dict[Task, int] = ctx.kept_mapping()
    for one in reported:
        task = one.subtopology_id, one.partition
        if task in offsets:
            message = (
                f"Task offsets contain a duplicate entry for subtopology {one.subtopology_id} and partition "
                f"{one.partition}."
            )
            return HeartbeatError(ErrorCode.INVALID_REQUEST, message)
        offsets[task] = one.offset
    return offsets


def find_slot(
    group: StreamsGroup, request: api.StreamsGroupHeartbeatRequest, owned: Tasks | None
) -> MemberSlot[StreamsMember] | HeartbeatError:
    member_id, instance_id = request.member_id, request.instance_id
    if request.member_epoch != JOIN_EPOCH:
        member = group.find_member(member_id, instance_id)
        if isinstance(member, HeartbeatError):
            return member
        return _epoch_error(member, request.member_epoch, owned) or MemberSlot(member)
    static = group.static_member(instance_id)
    if static is None:
        member = group.members.get(member_id) or StreamsMember(member_id)
        return _state_error(member, owned) or MemberSlot(member)
    if static.member_epoch != STATIC_LEAVE_EPOCH:
        return unreleased_instance(member_id, instance_id, static.member_id)
    return MemberSlot(static._replace(member_id=member_id, member_epoch=0, previous_member_epoch=0), static)


def _epoch_error(member: StreamsMember, epoch: int, owned: Tasks | None) -> HeartbeatError | None:
    """Accept the current epoch, or the previous one if all owned tasks are assigned (a lost response)."""
    lost_response = epoch == member.previous_member_epoch and owned is not None and member.assigned.contains_all(owned)
    if epoch == member.member_epoch or (epoch < member.member_epoch and lost_response):
        return _state_error(member, owned)
    return fenced_epoch("streams", member, epoch)


def _state_error(member: StreamsMember, owned: Tasks | None) -> HeartbeatError | None:
    # A newer broker wrote this state.
    if member.state is not MemberState.UNKNOWN or owned == Tasks():
        return None
    message = "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
    return HeartbeatError(ErrorCode.FENCED_MEMBER_EPOCH, message)
