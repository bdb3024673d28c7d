"""The classic rebalance protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and their timeouts.

Follows the classic part of Kafka's GroupMetadataManager; group.py explains the states. Timers:

    join     One for each join round. The first round of an empty group lasts `group.initial.rebalance.delay.ms`, and as
             long again while new members join, up to the rebalance timeout. Any other round ends when all known members
             have joined, or after the rebalance timeout, which removes dynamic members that have not joined.
    sync     One for each sync round, of the rebalance timeout; removes members that have not sent SyncGroup.
    session  One for each member, restarted by its requests. Its expiry removes a member without a parked request.
    pending  One for each id from MEMBER_ID_REQUIRED, of the session timeout in the request.

A disconnect does not remove a parked request: like Kafka, the broker does not read from the connection.

Different on purpose: removing a member with a parked SyncGroup sends an error; Kafka never responds. A JoinGroup that
fails because the members have no common protocol is not parked, so the member's session may expire; in Kafka it never
does.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from functools import partial
from uuid import UUID

from sluice.broker.coordinator.group.group import SHARE, UNKNOWN_MEMBER_ID
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from sluice.protocol.apis.leave_group import MemberIdentity, MemberResponse
from sluice.protocol.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from sluice.protocol.errors import ErrorCode

from .group import (
    COMPLETING_REBALANCE,
    EMPTY,
    HEARTBEAT_ERRORS,
    PREPARING_REBALANCE,
    RETURNS_CURRENT_GENERATION,
    STABLE,
    ClassicGroup,
)
from .member import ClassicMember

_KNOWN_MEMBER_ID_SINCE = 4
_SKIP_ASSIGNMENT_SINCE = 9
_NULL_PROTOCOL_SINCE = 7
# The session timeout while a first JoinGroup is parked (Kafka's group.new.member.join.timeout.ms).
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000


class ClassicProtocol:
    def __init__(self, runtime: GroupRuntime) -> None:
        config = runtime.host.config
        self._runtime = runtime
        self._responses = ParkedResponses(runtime)
        self._initial_delay_ms = config.integer("group.initial.rebalance.delay.ms")
        self._max_size = config.integer("group.max.size")

    # -- JoinGroup -----------------------------------------------------------------------------------------------------

    def join(
        self, ctx: RequestContext, request: JoinGroupRequest, names: Mapping[str, int]
    ) -> JoinGroupResponse | Outcome:
        """Join a group; `names` are those of the request's protocols, with their numbers."""
        member_id = request.member_id
        group = self._find_or_create_group(request.group_id, member_id)
        if isinstance(group, ErrorCode):
            # As in Kafka, other errors than that of a missing group have no member id.
            named = member_id if group is ErrorCode.UNKNOWN_MEMBER_ID else UNKNOWN_MEMBER_ID
            return join_error(ctx.version, named, group)
        if not self._has_room_for(group, member_id):
            group.remove(member_id)
            return join_error(ctx.version, UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.supports(request.protocol_type, names):
            return join_error(ctx.version, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if member_id == UNKNOWN_MEMBER_ID:
            return self._join_new(ctx, request, names, group)
        return self._rejoin(ctx, request, names, group)

    def _find_or_create_group(self, group_id: str, member_id: str) -> ClassicGroup | ErrorCode:
        """Replace an empty group of another type; its offsets stay."""
        error = self._runtime.error(group_id)
        if error:
            return error
        before = self._runtime.groups.get(group_id)
        if isinstance(before, ClassicGroup):
            return before
        if before is not None and (before.type == SHARE or not before.is_empty):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if member_id != UNKNOWN_MEMBER_ID:
            return ErrorCode.UNKNOWN_MEMBER_ID
        group = ClassicGroup(group_id, self._runtime.now_ms())
        tombstones = [] if before is None else before.tombstones()
        error = self._runtime.write(group_id, [*tombstones, group.record({})])
        if error:
            return error
        if before is not None:
            before.cancel_timers()
        self._runtime.groups[group_id] = group
        return group

    def _has_room_for(self, group: ClassicGroup, member_id: str) -> bool:
        """In a join round, count only joined members, so that a lowered limit removes the late ones."""
        if group.state is EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is PREPARING_REBALANCE:
            is_in, size = member is not None and member.awaiting_join is not None, len(group.awaiting_join)
        else:
            is_in, size = member is not None, len(group.members)
        return is_in or size < self._max_size

    def _join_new(
        self, ctx: RequestContext, request: JoinGroupRequest, names: Mapping[str, int], group: ClassicGroup
    ) -> JoinGroupResponse | Outcome:
        instance_id = request.group_instance_id
        prefix = ctx.session.client_id if instance_id is None else instance_id
        member_id = f"{prefix}-{UUID(bytes=self._runtime.host.random.randbytes(16), version=4)}"
        if instance_id is not None:
            known_id = group.static_members.get(instance_id)
            if known_id is not None:
                return self._replace_static(ctx, request, names, group, group.members[known_id], member_id)
        elif ctx.version >= _KNOWN_MEMBER_ID_SINCE:
            expire = partial(self._pending_member_expired, group, member_id)
            group.pending_members[member_id] = self._runtime.await_heartbeat(request.session_timeout_ms, expire)
            return join_error(ctx.version, member_id, ErrorCode.MEMBER_ID_REQUIRED)
        return self._add(ctx, request, names, group, member_id)

    def _rejoin(
        self, ctx: RequestContext, request: JoinGroupRequest, names: Mapping[str, int], group: ClassicGroup
    ) -> JoinGroupResponse | Outcome:
        member_id = request.member_id
        if member_id in group.pending_members:
            if request.group_instance_id is not None:  # only dynamic members have pending ids
                return join_error(ctx.version, "", ErrorCode.UNKNOWN_SERVER_ERROR)
            return self._add(ctx, request, names, group, member_id)
        error = group.member_error(member_id, request.group_instance_id)
        if error:
            return join_error(ctx.version, member_id, error)
        member = group.members[member_id]
        leads = group.leader_id == member_id
        if (group.state, leads) in RETURNS_CURRENT_GENERATION and member.protocols == request.protocols:
            return _join_response(group, member, with_members=leads)
        group.update(member, request.protocols, names, request.rebalance_timeout_ms, request.session_timeout_ms)
        member.awaiting_join = ctx
        return self._parked_join(ctx, member, self._rebalance_or_complete_join(group))

    def _add(
        self,
        ctx: RequestContext,
        request: JoinGroupRequest,
        names: Mapping[str, int],
        group: ClassicGroup,
        member_id: str,
    ) -> JoinGroupResponse | Outcome:
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            ctx.session.client_id,
            ctx.session.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            request.protocols,
            names=names,
        )
        member.is_new = True
        member.awaiting_join = ctx
        if group.is_in_initial_rebalance:
            group.new_member_added = True
        group.add(member)
        self._restart_session(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        return self._parked_join(ctx, member, self._rebalance_or_complete_join(group))

    def _parked_join(self, ctx: RequestContext, member: ClassicMember, error: ErrorCode) -> JoinGroupResponse | Outcome:
        if not error:
            return ctx.park_until_resumed()
        member.awaiting_join = None
        return join_error(ctx.version, UNKNOWN_MEMBER_ID, error)

    def _replace_static(
        self,
        ctx: RequestContext,
        request: JoinGroupRequest,
        names: Mapping[str, int],
        group: ClassicGroup,
        old: ClassicMember,
        member_id: str,
    ) -> JoinGroupResponse | Outcome:
        leader_before = group.leader_id
        self._end_join(old, ErrorCode.FENCED_INSTANCE_ID, old.member_id)
        self._end_sync(old, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        member = group.replace_static(old, member_id)
        # With the old session timeout, as in Kafka.
        self.restart_session(group, member)
        group.update(member, request.protocols, names, request.rebalance_timeout_ms, request.session_timeout_ms)
        selected = group.select_protocol()
        if group.state is STABLE and selected is None:
            return join_error(ctx.version, UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_SERVER_ERROR)
        if group.state is STABLE and selected == group.protocol_name:
            # Nothing changes for the other members, so no rebalance.
            assignments = {one.member_id: one.assignment for one in group.members.values()}
            error = self._runtime.write(group.group_id, [group.record(assignments)])
            if error:
                self._undo_replacement(group, member, old)
                return JoinGroupResponse(
                    error_code=error,
                    generation_id=group.generation_id,
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol_name,
                    leader=leader_before or "",
                )
            skips = ctx.version >= _SKIP_ASSIGNMENT_SINCE
            leads = skips and group.leader_id == member_id
            response = _join_response(group, member, with_members=leads)
            response.skip_assignment = leads
            if not skips:
                # Otherwise the leader would compute an unneeded assignment.
                response.leader = leader_before or ""
            return response
        member.awaiting_join = ctx
        return self._parked_join(ctx, member, self._rebalance_or_complete_join(group))

    def _undo_replacement(self, group: ClassicGroup, member: ClassicMember, old: ClassicMember) -> None:
        restored = group.replace_static(member, old.member_id)
        group.update(restored, old.protocols, old.names, old.rebalance_timeout_ms, old.session_timeout_ms)
        self.restart_session(group, restored)

    # -- SyncGroup -----------------------------------------------------------------------------------------------------

    def sync(self, ctx: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse | Outcome:
        """Return a member's assignment; until the leader sends it, park the request."""
        group = self._runtime.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            error = self._runtime.error(request.group_id) or ErrorCode.UNKNOWN_MEMBER_ID
            return SyncGroupResponse(error_code=error)
        error = _sync_error(group, request)
        if error:
            return SyncGroupResponse(error_code=error)
        member = group.members[request.member_id]
        group.pending_sync.discard(member.member_id)
        if not group.pending_sync and group.sync_timer is not None:
            group.sync_timer.cancel()
        if group.state is STABLE:
            return _sync_response(group, member)
        member.awaiting_sync = ctx
        if group.leader_id == member.member_id:
            self._assign(group, {one.member_id: one.assignment for one in request.assignments})
        return ctx.park_until_resumed()

    def _assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        error = self._runtime.write(group.group_id, [group.record(assignments)])
        if error:
            self._end_sync_round(group, error)
            self._prepare_rebalance(group)
            return
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            ctx, member.awaiting_sync = member.awaiting_sync, None
            if ctx is not None:
                self._responses.add_when_replicated(ctx, group.group_id, _sync_response(group, member))
                # The session may have expired while the request was parked.
                self.restart_session(group, member)
        group.transition_to(STABLE, self._runtime.now_ms())
        self._runtime.state_journal.record_change(group)

    def _end_sync_round(self, group: ClassicGroup, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
            if member.awaiting_sync is not None:
                self._end_sync(member, SyncGroupResponse(error_code=error))
                self.restart_session(group, member)

    # -- Heartbeat and LeaveGroup --------------------------------------------------------------------------------------

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        group = self._runtime.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            error = self._runtime.error(request.group_id) or ErrorCode.UNKNOWN_MEMBER_ID
            # As in Kafka, a heartbeat succeeds while the group is loading.
            return ErrorCode.NONE if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error
        error = group.member_error(request.member_id, request.group_instance_id)
        if error:
            return error
        if request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        self.restart_session(group, group.members[request.member_id])
        return HEARTBEAT_ERRORS[group.state]

    def leave(self, group_id: str, leaving: Iterable[MemberIdentity]) -> list[MemberResponse] | ErrorCode:
        error = self._runtime.error(group_id)
        if error:
            return error
        group = self._runtime.groups.get(group_id)
        responses = [
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=self._remove_leaving(group, identity)
                if isinstance(group, ClassicGroup)
                else ErrorCode.UNKNOWN_MEMBER_ID,
            )
            for identity in leaving
        ]
        any_left = not all(response.error_code for response in responses)
        if isinstance(group, ClassicGroup) and any_left and group.state is not EMPTY:
            error = self._rebalance_or_complete_join(group)
        return error or responses

    def _remove_leaving(self, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        member_id = identity.member_id
        if member_id == UNKNOWN_MEMBER_ID:  # an admin client removes a static member by its instance id
            instance_id = identity.group_instance_id
            if instance_id is None or instance_id not in group.static_members:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = group.static_members[instance_id]
        elif member_id in group.pending_members:
            group.remove(member_id)
            return ErrorCode.NONE
        else:
            error = group.member_error(member_id, identity.group_instance_id)
            if error:
                return error
        self._remove(group, group.members[member_id])
        return ErrorCode.NONE

    # -- groups that are loaded, unloaded or converted -----------------------------------------------------------------

    def loaded(self, group: ClassicGroup) -> None:
        self.start(group, rebalance=len(group.members) > self._max_size)

    def start(self, group: ClassicGroup, *, rebalance: bool) -> None:
        for member in group.members.values():
            self.restart_session(group, member)
        if rebalance:
            self._prepare_rebalance(group)

    def stop(self, group: ClassicGroup, error: ErrorCode) -> None:
        for member in group.members.values():
            self._end_join(member, error, member.member_id)
            self._end_sync(member, SyncGroupResponse(error_code=error))
        group.cancel_timers()

    # -- rounds --------------------------------------------------------------------------------------------------------

    # An error is that of `_complete_join`. It is the response to the request that ends the round. As in Kafka, a timer
    # that ends the round ignores it: the members get no response until their sessions expire.

    def _rebalance_or_complete_join(self, group: ClassicGroup) -> ErrorCode:
        if group.state is not PREPARING_REBALANCE:
            return self._prepare_rebalance(group)
        if not group.is_in_initial_rebalance and group.has_all_joined:
            return self._complete_join(group)
        return ErrorCode.NONE

    def _prepare_rebalance(self, group: ClassicGroup) -> ErrorCode:
        if group.state is COMPLETING_REBALANCE:
            self._end_sync_round(group, ErrorCode.REBALANCE_IN_PROGRESS)
        if group.sync_timer is not None:
            group.sync_timer.cancel()
        group.transition_to(PREPARING_REBALANCE, self._runtime.now_ms())
        self._runtime.state_journal.record_change(group)
        if group.is_in_initial_rebalance and self._initial_delay_ms:  # 0 needs no timer, which ends a millisecond later
            remaining_ms = max(group.rebalance_timeout_ms - self._initial_delay_ms, 0)
            self._wait_for_more(group, self._initial_delay_ms, remaining_ms)
        elif group.is_in_initial_rebalance or group.has_all_joined:
            return self._complete_join(group)
        else:
            self._end_join_round_in(group, group.rebalance_timeout_ms)
        return ErrorCode.NONE

    def _wait_for_more(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        def end_delay() -> None:
            if group.new_member_added and remaining_ms:
                group.new_member_added = False
                again_ms = min(self._initial_delay_ms, remaining_ms)
                self._wait_for_more(group, again_ms, max(remaining_ms - delay_ms, 0))
            else:
                self._complete_join(group)

        group.join_timer = self._runtime.await_rebalance(delay_ms, end_delay)

    def _end_join_round_in(self, group: ClassicGroup, delay_ms: int) -> None:
        group.join_timer = self._runtime.await_rebalance(delay_ms, partial(self._complete_join, group))

    def _complete_join(self, group: ClassicGroup) -> ErrorCode:
        if group.join_timer is not None:
            group.join_timer.cancel()
        for member in list(group.members.values()):
            if member.awaiting_join is None and not member.is_static:
                group.remove(member.member_id)
        if group.members and not group.elect_joined_leader():
            # Only static members are left, and none joined: they stay until their sessions expire.
            self._end_join_round_in(group, group.rebalance_timeout_ms)
            return ErrorCode.NONE
        if not group.begin_generation(self._runtime.now_ms()):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        self._runtime.state_journal.record_change(group)
        if group.state is EMPTY:
            self._runtime.write(group.group_id, [group.record({})])
            return ErrorCode.NONE
        for member in group.members.values():
            self._respond_to_join(
                member, _join_response(group, member, with_members=group.leader_id == member.member_id)
            )
            self.restart_session(group, member)
            member.is_new = False
            group.pending_sync.add(member.member_id)
        expire = partial(self._sync_round_expired, group)
        group.sync_timer = self._runtime.await_rebalance(group.rebalance_timeout_ms, expire)
        return ErrorCode.NONE

    def _sync_round_expired(self, group: ClassicGroup) -> None:
        for member_id in list(group.pending_sync):
            group.remove(member_id)
        self._prepare_rebalance(group)

    # -- sessions ------------------------------------------------------------------------------------------------------

    def restart_session(self, group: ClassicGroup, member: ClassicMember) -> None:
        self._restart_session(group, member, member.session_timeout_ms)

    def _restart_session(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int) -> None:
        member.end_session()
        member.session = self._runtime.await_heartbeat(timeout_ms, partial(self._session_expired, group, member))

    def _session_expired(self, group: ClassicGroup, member: ClassicMember) -> None:
        if member.must_heartbeat:
            self._remove(group, member)
            self._continue_without_member(group)

    def _pending_member_expired(self, group: ClassicGroup, member_id: str) -> None:
        group.remove(member_id)
        if group.state is PREPARING_REBALANCE:
            self._continue_without_member(group)

    def _continue_without_member(self, group: ClassicGroup) -> None:
        if group.state is not PREPARING_REBALANCE:
            self._prepare_rebalance(group)
        elif group.has_all_joined:  # this ends an initial rebalance, too
            self._complete_join(group)

    def _remove(self, group: ClassicGroup, member: ClassicMember) -> None:
        # The client may retry as a new member.
        self._end_join(member, ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID)
        self._end_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)

    # -- responses to parked requests ----------------------------------------------------------------------------------

    def _end_join(self, member: ClassicMember, error: ErrorCode, member_id: str) -> None:
        if member.awaiting_join is not None:
            self._respond_to_join(member, join_error(member.awaiting_join.version, member_id, error))

    def _respond_to_join(self, member: ClassicMember, response: JoinGroupResponse) -> None:
        ctx, member.awaiting_join = member.awaiting_join, None
        if ctx is not None:
            self._responses.add(ctx, response)

    def _end_sync(self, member: ClassicMember, response: SyncGroupResponse) -> None:
        ctx, member.awaiting_sync = member.awaiting_sync, None
        if ctx is not None:
            self._responses.add(ctx, response)


class ParkedResponses:
    """Responses that are sent at the end of the event-loop iteration.

    A response lets its connection continue at once; the next request could find a half-changed group.
    """

    def __init__(self, runtime: GroupRuntime) -> None:
        self._runtime = runtime
        self._actions = runtime.host.actions
        self._ready: list[tuple[RequestContext, JoinGroupResponse | SyncGroupResponse]] = []

    def add(self, ctx: RequestContext, response: JoinGroupResponse | SyncGroupResponse) -> None:
        self._ready.append((ctx, response))
        self._actions.defer(self, self)

    def add_when_replicated(self, ctx: RequestContext, group_id: str, response: SyncGroupResponse) -> None:
        log = self._runtime.log.partition_of(group_id).log
        if log.high_watermark >= log.log_end_offset:
            self.add(ctx, response)
        else:
            self._runtime.await_replication(group_id, partial(self._replicated, ctx, group_id, response))

    def _replicated(
        self, ctx: RequestContext, group_id: str, response: SyncGroupResponse, lost: Collection[Partition]
    ) -> None:
        self.add(ctx, SyncGroupResponse(error_code=self._runtime.lost_error(group_id)) if lost else response)
        self._actions.complete()

    def check_and_complete(self, key: Hashable) -> int:
        ready, self._ready = self._ready, []
        for ctx, response in ready:
            self._send(ctx, response)
        return len(ready)

    def _send(self, ctx: RequestContext, response: JoinGroupResponse | SyncGroupResponse) -> None:
        def finish() -> JoinGroupResponse | SyncGroupResponse:
            ctx.error_code = response.error_code
            return response

        ctx.resume(finish)


def join_error(version: int, member_id: str, error: ErrorCode) -> JoinGroupResponse:
    protocol_name = None if version >= _NULL_PROTOCOL_SINCE else ""
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=protocol_name)


def _join_response(group: ClassicGroup, member: ClassicMember, *, with_members: bool) -> JoinGroupResponse:
    everyone = group.members.values() if with_members else ()
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                metadata=one.metadata(group.protocol_name),
            )
            for one in everyone
        ],
    )


def _sync_response(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def _sync_error(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    error = group.member_error(request.member_id, request.group_instance_id)
    if error:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else ErrorCode.NONE


def _differs(requested: str | None, current: str | None) -> bool:
    return requested is not None and current is not None and requested != current
