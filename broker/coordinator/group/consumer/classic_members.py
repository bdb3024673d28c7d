"""Members of consumer groups that use the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup (KIP-848).

Follows Kafka's GroupMetadataManager (classicGroupJoinToConsumerGroup and similar methods). The generation of such a
member is its member epoch, and it is never the leader. JoinGroup moves the member one step; SyncGroup returns its
assignment. When a further step is possible or it must revoke partitions, Heartbeat returns REBALANCE_IN_PROGRESS, and
the member rejoins.

Besides the session timeout, the rebalance timeout limits the time from REBALANCE_IN_PROGRESS to JoinGroup, and from
JoinGroup to SyncGroup.
"""

from collections.abc import Iterable, Mapping

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.classic.protocol import join_error
from sluice.broker.coordinator.group.consumer_protocol import by_topic_id, write_assignment
from sluice.broker.coordinator.group.group import UNKNOWN_MEMBER_ID
from sluice.broker.coordinator.group.modern_group import MemberSlot, TimerKind
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.join_group import JoinGroupRequest, JoinGroupResponse
from sluice.protocol.apis.leave_group import MemberIdentity, MemberResponse
from sluice.protocol.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from sluice.protocol.consumer_protocol import PROTOCOL_TYPE, Subscription, read_embedded
from sluice.protocol.errors import ErrorCode

from .group import ConsumerGroup
from .member import ClassicMetadata, ConsumerMember, MemberState
from .migration import Migration
from .rebalance import ConsumerRebalance

_KNOWN_MEMBER_ID_SINCE = 4


class ClassicMembers:
    def __init__(self, runtime: GroupRuntime, rebalance: ConsumerRebalance, migration: Migration) -> None:
        self._runtime = runtime
        self._cluster = runtime.host.cluster
        self._rebalance = rebalance
        self._migration = migration

    # -- JoinGroup -----------------------------------------------------------------------------------------------------

    def join(self, ctx: RequestContext, request: JoinGroupRequest, _names: Mapping[str, int]) -> JoinGroupResponse:
        group = self._group(request.group_id)
        is_new = request.member_id == UNKNOWN_MEMBER_ID
        member_id = self._rebalance.new_member_id() if is_new else request.member_id
        error = self._join_error(request, group, member_id)
        if error:
            return join_error(ctx.version, UNKNOWN_MEMBER_ID, error)
        if is_new and request.group_instance_id is None and ctx.version >= _KNOWN_MEMBER_ID_SINCE:
            return join_error(ctx.version, member_id, ErrorCode.MEMBER_ID_REQUIRED)
        slot = _find_slot(group, member_id, request.group_instance_id, is_new=is_new)
        if isinstance(slot, ErrorCode):
            return join_error(ctx.version, UNKNOWN_MEMBER_ID, slot)
        subscription = read_embedded(Subscription, request.protocols[0].metadata)
        if subscription is None:
            return join_error(ctx.version, UNKNOWN_MEMBER_ID, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        updated = _updated(ctx, request, slot.member, subscription)
        owned = list(by_topic_id(subscription.owned_partitions, self._cluster).items())
        records: list[KeyValue] = []
        static = group.static_member(request.group_instance_id)
        if static is not None and self._migration.can_downgrade_on_return(group, static):
            epoch = group.group_epoch
            changed = self._rebalance.change(group, slot, updated, records)
            must_rebalance = group.assignment_epoch < group.group_epoch
            if not must_rebalance:
                updated = self._rebalance.reconcile(group, updated, owned, changed, records)
            members = list(group.members.values())
            error = self._migration.downgrade(group, members, records, epoch, rebalance=must_rebalance)
        else:
            updated = self._rebalance.advance(group, slot, updated, owned, records)
            error = self._runtime.write_or_restore(group.group_id, records)
            if not error:
                self._joined(group, updated, request)
        if error:
            return join_error(ctx.version, UNKNOWN_MEMBER_ID, error)
        return JoinGroupResponse(
            member_id=member_id,
            generation_id=updated.member_epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
        )

    def _join_error(self, request: JoinGroupRequest, group: ConsumerGroup, member_id: str) -> ErrorCode:
        if self._migration.is_disabled:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if not self._rebalance.has_room_for(group, member_id, request.group_instance_id):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        others = [member.classic for member in group.classic_members]
        fits = any(
            all(other is not None and one.name in dict(other.protocols) for other in others)
            for one in request.protocols
        )
        if request.protocol_type != PROTOCOL_TYPE or not fits:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _joined(self, group: ConsumerGroup, member: ConsumerMember, request: JoinGroupRequest) -> None:
        group.cancel_timer(TimerKind.JOIN, member.member_id)
        self._rebalance.restart_session(group, member.member_id, request.session_timeout_ms)
        self._rebalance.await_within_rebalance(TimerKind.SYNC, group, member)

    # -- SyncGroup and Heartbeat ---------------------------------------------------------------------------------------

    def sync(self, ctx: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
        group = self._group(request.group_id)
        member = _find_member(group, request.member_id, request.group_instance_id)
        if isinstance(member, ErrorCode):
            return SyncGroupResponse(error_code=member)
        error = _sync_error(member, request)
        if not error and group.assignment_epoch > member.member_epoch and not _has_to_revoke(member):
            self._must_join(group, member)
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error:
            return SyncGroupResponse(error_code=error)
        group.cancel_timer(TimerKind.SYNC, member.member_id)
        self._restart_session(group, member)
        assert member.classic is not None
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(member.assigned, self._cluster, member.classic.protocols[0][1]),
        )

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        group = self._group(request.group_id)
        member = _find_member(group, request.member_id, request.group_instance_id)
        if isinstance(member, ErrorCode):
            return member
        if request.generation_id != member.member_epoch:
            return ErrorCode.ILLEGAL_GENERATION
        self._restart_session(group, member)
        is_behind = member.member_epoch < group.assignment_epoch
        if is_behind or _has_to_revoke(member) or group.can_complete_assignment(member):
            self._must_join(group, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _must_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        if (TimerKind.JOIN, member.member_id) not in group.timers:
            self._rebalance.await_within_rebalance(TimerKind.JOIN, group, member)

    def start_sessions(self, group: ConsumerGroup) -> None:
        for member in group.classic_members:
            self._restart_session(group, member)

    def _restart_session(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        assert member.classic is not None
        self._rebalance.restart_session(group, member.member_id, member.classic.session_timeout_ms)

    # -- LeaveGroup ----------------------------------------------------------------------------------------------------

    def leave(self, group_id: str, leaving: Iterable[MemberIdentity]) -> list[MemberResponse] | ErrorCode:
        group = self._group(group_id)
        responses = []
        removed: dict[str, ConsumerMember] = {}
        for identity in leaving:
            member = _leaving_member(group, identity)
            response = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
            if isinstance(member, ErrorCode):
                response.error_code = member
            else:
                removed[member.member_id] = member
            responses.append(response)
        return self._rebalance.remove(group, list(removed.values())) or responses

    def _group(self, group_id: str) -> ConsumerGroup:
        group = self._runtime.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember | ErrorCode:
    """Allow an instance id alone, as from an admin client."""
    if identity.group_instance_id is None:
        return group.members.get(identity.member_id) or ErrorCode.UNKNOWN_MEMBER_ID
    member = group.static_member(identity.group_instance_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return member if identity.member_id in (UNKNOWN_MEMBER_ID, member.member_id) else ErrorCode.FENCED_INSTANCE_ID


def _find_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember | ErrorCode:
    member = group.members.get(member_id) if instance_id is None else group.static_member(instance_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.member_id != member_id:
        return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.UNKNOWN_MEMBER_ID if member.classic is None else member


def _find_slot(
    group: ConsumerGroup, member_id: str, instance_id: str | None, *, is_new: bool
) -> MemberSlot[ConsumerMember] | ErrorCode:
    """Accept any member id from a new dynamic member."""
    static = group.static_member(instance_id)
    if instance_id is None or (is_new and static is None):
        return MemberSlot(group.members.get(member_id) or ConsumerMember(member_id))
    if static is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if is_new:
        return MemberSlot(static.returning_as(member_id), static)
    return MemberSlot(static) if static.member_id == member_id else ErrorCode.FENCED_INSTANCE_ID


def _updated(
    ctx: RequestContext, request: JoinGroupRequest, member: ConsumerMember, subscription: Subscription
) -> ConsumerMember:
    return member._replace(
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=ctx.session.client_id,
        client_host=ctx.session.client_host,
        classic=ClassicMetadata(
            request.session_timeout_ms, tuple((one.name, one.metadata) for one in request.protocols)
        ),
    )


def _sync_error(member: ConsumerMember, request: SyncGroupRequest) -> ErrorCode:
    if request.generation_id != member.member_epoch:
        return ErrorCode.ILLEGAL_GENERATION
    assert member.classic is not None
    other_type = request.protocol_type not in (None, PROTOCOL_TYPE)
    other_name = request.protocol_name not in (None, member.classic.protocols[0][0])
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL if other_type or other_name else ErrorCode.NONE


def _has_to_revoke(member: ConsumerMember) -> bool:
    return member.state is MemberState.UNREVOKED_PARTITIONS
