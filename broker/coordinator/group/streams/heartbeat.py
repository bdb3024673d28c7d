"""The Streams rebalance protocol: StreamsGroupHeartbeat (KIP-1071).

Follows the Streams part of Kafka's GroupMetadataManager. A heartbeat is handled at once, in these steps:

    1. Check the request, the group, its size, the member and its epoch (heartbeat_validation.py).
    2. Compare the member's topology with the group's, and configure it with the existing topics
       (configured_topology.py). The response has the problems as statuses; the caller creates missing internal topics.
    3. Update the member. If the target depends on the changes, bump the group epoch.
    4. If the assignment epoch is behind, compute a new target (sticky_assignor.py), except within
       `group.streams.initial.rebalance.delay.ms` of the first member's join and within
       `group.streams.assignment.interval.ms` of the last assignment.
    5. Move the member one step towards its target (current_assignment.py).

Steps 3 to 5 are in rebalance.py.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sluice.broker.coordinator.group.classic.group import ClassicGroup
from sluice.broker.coordinator.group.group import Group, HeartbeatError
from sluice.broker.coordinator.group.modern_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    MemberSlot,
    TimerKind,
    wrong_group,
)
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis import streams_group_heartbeat as api
from sluice.protocol.apis.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from sluice.protocol.errors import ErrorCode

from .configured_topology import ConfiguredTopology
from .group import StreamsGroup, TaskOffsets, task_ids
from .heartbeat_validation import (
    distinct_tasks,
    find_slot,
    least_record_bytes,
    offsets_by_task,
    owned_tasks,
    request_error,
    task_error,
)
from .member import AssignedTasks, Endpoint, MemberState, StreamsMember, Task, Tasks
from .rebalance import RACK_TAGS, StreamsRebalance
from .topology import InvalidTopologyError, Status, Topology, topology_of

_CLIENT_TAGS_STATUS_SINCE = 1
_TASK_BYTES = 8  # its index and epoch, in the record of its member


class HeartbeatResult(NamedTuple):
    response: StreamsGroupHeartbeatResponse
    missing_topics: Mapping[str, api.TopicInfo] = {}


class CreationError(NamedTuple):
    """Why an internal topic could not be created."""

    message: str
    until_ms: float


class _Reported(NamedTuple):
    """What a member reports of its tasks and its topology."""

    tasks: Collection[Task]  # of all roles, in the order of the request
    owned: Tasks | None
    offsets: dict[Task, int] | HeartbeatError | None
    end_offsets: dict[Task, int] | HeartbeatError | None
    topology: Topology | HeartbeatError | None
    client_tags: dict[str, str] | None


class _Accepted(NamedTuple):
    """A valid request, which can only fail if its records cannot be written."""

    owned: Tasks | None
    slot: MemberSlot[StreamsMember]
    topology: Topology
    configured: ConfiguredTopology
    metadata_hash: int
    offsets: TaskOffsets
    client_tags: dict[str, str] | None


class StreamsProtocol:
    def __init__(self, runtime: GroupRuntime) -> None:
        self._runtime = runtime
        self._rebalance = StreamsRebalance(runtime)
        self._max_size = runtime.host.config.integer("group.streams.max.size")
        self.creation_errors: dict[str, CreationError] = {}

    # -- heartbeats ----------------------------------------------------------------------------------------------------

    def heartbeat(self, ctx: RequestContext, request: StreamsGroupHeartbeatRequest) -> HeartbeatResult | HeartbeatError:
        invalid = request_error(request)
        if invalid is not None:
            return invalid
        least_bytes = least_record_bytes(request)
        error = self._runtime.error(request.group_id)
        if error:
            return HeartbeatError(error, None)
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request)
        if least_bytes > self._runtime.max_record_bytes(request.group_id):
            return HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        tags = request.client_tags
        reported = _Reported(
            distinct_tasks(ctx, request),
            owned_tasks(request),
            offsets_by_task(ctx, request.task_offsets),
            offsets_by_task(ctx, request.task_end_offsets),
            _reported_topology(request.topology),
            None if tags is None else {tag.key: tag.value for tag in tags},
        )
        error = self._runtime.error(request.group_id)  # again, as other requests were served meanwhile
        if error:
            return HeartbeatError(error, None)
        group = self._group_for(request)
        if isinstance(group, HeartbeatError):
            return group
        accepted = self._accept(group, request, reported)
        if isinstance(accepted, HeartbeatError):
            return accepted
        return self._advance(ctx, request, group, accepted)

    def _group_for(self, request: StreamsGroupHeartbeatRequest) -> StreamsGroup | HeartbeatError:
        """Return the group; a new or converted one is not added yet."""
        group_id, joins = request.group_id, request.member_epoch == JOIN_EPOCH
        group = self._runtime.groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return group
        if joins and (group is None or (isinstance(group, ClassicGroup) and group.is_empty)):
            return StreamsGroup(group_id)
        return wrong_group("streams", group_id, group)

    def _accept(
        self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, reported: _Reported
    ) -> _Accepted | HeartbeatError:
        """Check a request against the group without changing it."""
        if request.member_epoch == JOIN_EPOCH and not self._has_room_for(group, request):
            message = f"The streams group has reached its maximum capacity of {self._max_size} members."
            return HeartbeatError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
        slot = find_slot(group, request, reported.owned)
        if isinstance(slot, HeartbeatError):
            return slot
        if len(reported.client_tags or ()) < len(request.client_tags or ()):  # a repeated tag, as in Kafka
            return HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        topology = _topology(group, reported.topology)
        if isinstance(topology, HeartbeatError):
            return topology
        current_hash = self._rebalance.metadata_hash(topology)
        configured = self._rebalance.configure(group, topology, current_hash)
        if isinstance(configured, HeartbeatError):
            return configured
        if configured.problem is None:
            task_count = sum(one.task_count for one in configured.subtopologies.values())
            if task_count * _TASK_BYTES > self._runtime.max_record_bytes(request.group_id) * (len(group.members) + 1):
                # Without computing an assignment of that size.
                return HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
            invalid = task_error(reported.tasks, configured.subtopologies)
            if invalid is not None:
                return invalid
        offsets = _updated_offsets(group.offsets_of(request.member_id), reported)
        if isinstance(offsets, HeartbeatError):
            return offsets
        return _Accepted(reported.owned, slot, topology, configured, current_hash, offsets, reported.client_tags)

    def _has_room_for(self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> bool:
        is_known = request.instance_id in group.static_members or request.member_id in group.members
        return is_known or len(group.members) < self._max_size

    def _advance(
        self, ctx: RequestContext, request: StreamsGroupHeartbeatRequest, group: StreamsGroup, accepted: _Accepted
    ) -> HeartbeatResult | HeartbeatError:
        slot, member_id = accepted.slot, request.member_id
        statuses: list[api.Status] = []
        records = self._runtime.add(group)
        updated = _updated(ctx, request, slot.member, accepted.client_tags)
        if updated.topology_epoch < accepted.topology.epoch:
            detail = (
                f"The member's topology epoch {updated.topology_epoch} is behind the group's topology epoch "
                f"{accepted.topology.epoch}."
            )
            statuses.append(_status(Status.STALE_TOPOLOGY, detail))
        topology = accepted.topology, accepted.configured, accepted.metadata_hash
        by_instance = request.instance_id is not None
        self._rebalance.change(group, slot, updated, topology, records, by_instance=by_instance)
        group.task_offsets[member_id] = accepted.offsets
        delay = self._rebalance.update_target(group, records)
        if delay is not None:
            statuses.append(_status(Status.ASSIGNMENT_DELAYED, delay))
        reconciled = self._rebalance.reconcile(group, updated, accepted.owned, records)
        self._rebalance.restart_session(group, member_id)
        error = self._runtime.write_or_restore(group.group_id, records)
        if error:
            return HeartbeatError(error, None)
        if request.shutdown_application and group.shutdown_requested_by is None:
            group.shutdown_requested_by = member_id
        statuses += _group_statuses(group, reconciled, ctx.version)
        response = self._response(group, request, slot.member, reconciled)
        response.status = statuses
        return HeartbeatResult(response, accepted.configured.missing)

    def _response(
        self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, before: StreamsMember, member: StreamsMember
    ) -> StreamsGroupHeartbeatResponse:
        settings = self._runtime.group_configs(group.group_id)
        response = StreamsGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=settings.integer("streams.heartbeat.interval.ms"),
            task_offset_interval_ms=settings.integer("streams.task.offset.interval.ms"),
            acceptable_recovery_lag=settings.integer("streams.acceptable.recovery.lag"),
        )
        has_other_tasks = member.assigned != before.assigned
        if request.member_epoch == JOIN_EPOCH or has_other_tasks:
            active, standby, warmup = map(task_ids, member.assigned)
            response.active_tasks, response.standby_tasks, response.warmup_tasks = active, standby, warmup
        if member.user_endpoint != before.user_endpoint or (has_other_tasks and member.user_endpoint is not None):
            group.endpoint_epoch += 1
        response.endpoint_information_epoch = group.endpoint_epoch
        if request.endpoint_information_epoch != group.endpoint_epoch:
            response.partitions_by_user_endpoint = self._rebalance.partitions_by_endpoint(group)
        return response

    # -- leaving -------------------------------------------------------------------------------------------------------

    def _leave(self, request: StreamsGroupHeartbeatRequest) -> HeartbeatResult | HeartbeatError:
        group = self._runtime.groups.get(request.group_id)
        if not isinstance(group, StreamsGroup):
            return wrong_group("streams", request.group_id, group, joins=False)
        if request.shutdown_application and group.shutdown_requested_by is None:
            group.shutdown_requested_by = request.member_id
        member = group.find_member(request.member_id, request.instance_id)
        if isinstance(member, HeartbeatError):
            return member
        if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
            error = self._leave_temporarily(group, member)
        else:
            error = self._rebalance.remove(group, member.member_id)
        if error:
            return HeartbeatError(error, None)
        return HeartbeatResult(
            StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        )

    def _leave_temporarily(self, group: StreamsGroup, member: StreamsMember) -> ErrorCode:
        """Remove a static member for up to its session timeout; it keeps its tasks."""
        active, standby, warmup = member.assigned
        away = member._replace(
            member_epoch=STATIC_LEAVE_EPOCH,
            pending_revocation=AssignedTasks(),
            assigned=AssignedTasks(dict.fromkeys(active, 0), standby, warmup),
        )
        group.put(away)
        group.cancel_timer(TimerKind.REVOKE, member.member_id)
        return self._runtime.write_or_restore(group.group_id, [group.current_record(away)])

    # -- loading -------------------------------------------------------------------------------------------------------

    def loaded(self, group: Group) -> None:
        assert isinstance(group, StreamsGroup)
        for member in group.members.values():
            self._rebalance.restart_session(group, member.member_id)
            if member.state is MemberState.UNREVOKED_TASKS:
                self._rebalance.await_revocation(group, member)


def _status(status: Status, detail: str) -> api.Status:
    return api.Status(status_code=status, status_detail=detail)


def _reported_topology(sent: api.Topology | None) -> Topology | HeartbeatError | None:
    try:
        return None if sent is None else topology_of(sent)
    except InvalidTopologyError as error:
        return error.response


def _topology(group: StreamsGroup, topology: Topology | HeartbeatError | None) -> Topology | HeartbeatError:
    """Return the topology of the group; a member with an older one may stay."""
    if topology is None:
        return group.topology or HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    if isinstance(topology, HeartbeatError):
        return topology
    if group.topology is None:
        return topology
    if topology.epoch >= group.topology.epoch and topology != group.topology:
        return HeartbeatError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return group.topology


def _updated_offsets(before: TaskOffsets, reported: _Reported) -> TaskOffsets | HeartbeatError:
    after = before
    if reported.offsets is not None:
        if isinstance(reported.offsets, HeartbeatError):
            return reported.offsets
        after = after._replace(offsets=reported.offsets)
    if reported.end_offsets is not None:
        if isinstance(reported.end_offsets, HeartbeatError):
            return reported.end_offsets
        after = after._replace(end_offsets=reported.end_offsets)
    return after


def _group_statuses(group: StreamsGroup, member: StreamsMember, version: int) -> list[api.Status]:
    statuses = []
    if group.configured is not None and group.configured.problem is not None:
        statuses.append(_status(*group.configured.problem))
    if group.shutdown_requested_by is not None:
        detail = (
            f"Streams group member {group.shutdown_requested_by} encountered a fatal error and requested a shutdown "
            "for the entire application."
        )
        statuses.append(_status(Status.SHUTDOWN_APPLICATION, detail))
    tags = group.assignment_configs.get(RACK_TAGS, "")
    missing = [tag for tag in tags.split(",") if tag not in member.client_tags] if tags else []
    if missing and version >= _CLIENT_TAGS_STATUS_SINCE:
        detail = (
            f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. Configure them "
            "via 'client.tag.<tagKey>' in your Streams config."
        )
        statuses.append(_status(Status.MISSING_CLIENT_TAGS, detail))
    return statuses


def _updated(
    ctx: RequestContext, request: StreamsGroupHeartbeatRequest, member: StreamsMember, tags: dict[str, str] | None
) -> StreamsMember:
    """Return the member with the fields of the request that are not null."""
    topology, endpoint = request.topology, request.user_endpoint
    rebalance_ms = request.rebalance_timeout_ms
    user_endpoint = None if endpoint is None else Endpoint(endpoint.host, endpoint.port)
    keeps_endpoint = endpoint is None and request.member_epoch != JOIN_EPOCH
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if rebalance_ms == -1 else rebalance_ms,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        user_endpoint=member.user_endpoint if keeps_endpoint else user_endpoint,
        client_tags=member.client_tags if tags is None else tags,
        client_id=ctx.session.client_id,
        client_host=ctx.session.client_host,
    )
