"""ShareGroupHeartbeat (KIP-932). Follows the share part of Kafka's GroupMetadataManager and GroupCoordinatorService.

A heartbeat is handled at once, in these steps:

    1. Check the request, the group, its size, the member and its epoch.
    2. Update the member. Bump the group epoch if its subscription or the topics have changed, or if initialized
       partitions are not assigned yet.
    3. If the assignment epoch is behind and `group.share.assignment.interval.ms` has passed since the last assignment,
       compute a new target from the initialized partitions.
    4. Move the member to its target.
    5. Initialize new partitions of subscribed topics at the share coordinator, after the response.

A member that joins a new group gets no partitions; a later heartbeat assigns them.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.assignors.spec import MemberSpec
from sluice.broker.coordinator.group.group import Group, HeartbeatError
from sluice.broker.coordinator.group.modern_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    TimerKind,
    blank_field,
    existing_names,
    fenced_epoch,
    shared_names,
    unknown_member,
    wrong_group,
)
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis import share_group_heartbeat as api
from sluice.protocol.apis.consumer_group_heartbeat import Assignment, TopicPartitions
from sluice.protocol.errors import ErrorCode

from . import simple_assignor
from .group import ShareGroup, ShareMember
from .initialization import StateInitialization


class ShareProtocol:
    def __init__(self, runtime: GroupRuntime) -> None:
        self._runtime = runtime
        self._cluster = runtime.host.cluster
        self._max_size = runtime.host.config.integer("group.share.max.size")
        self.initialization = StateInitialization(runtime)

    # -- heartbeats ----------------------------------------------------------------------------------------------------

    def heartbeat(
        self, ctx: RequestContext, request: api.ShareGroupHeartbeatRequest
    ) -> api.ShareGroupHeartbeatResponse | HeartbeatError:
        problem = _problem(request)
        if problem is not None:
            return HeartbeatError(ErrorCode.INVALID_REQUEST, problem)
        # First, because other requests are served meanwhile.
        names: dict[str, None] = ctx.kept_mapping()
        names.update((name, None) for name in request.subscribed_topic_names or ())
        characters = sum(map(len, ctx.sliced(names)))
        return self._change_member(ctx, request, names, characters)

    def _change_member(
        self, ctx: RequestContext, request: api.ShareGroupHeartbeatRequest, names: Collection[str], characters: int
    ) -> api.ShareGroupHeartbeatResponse | HeartbeatError:
        error = self._runtime.error(request.group_id)
        if error:
            return HeartbeatError(error, None)
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(request)
        joins = request.member_epoch == JOIN_EPOCH
        group = self.group_for(request.group_id, creates=joins)
        if isinstance(group, HeartbeatError):
            return group
        member_id = request.member_id
        known = group.members.get(member_id)
        if known is None and len(group.members) >= self._max_size:
            message = f"The share group has reached its maximum capacity of {self._max_size} members."
            return HeartbeatError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
        if known is None and not joins:
            return unknown_member(group.group_id, member_id)
        member = ShareMember(member_id) if known is None else known
        epoch_error = _epoch_error(member, request.member_epoch)
        if epoch_error is not None:
            return epoch_error
        if characters > self._runtime.max_record_bytes(group.group_id):
            return HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        return self._advance(group, member, _updated(ctx, request, names, group, member), request)

    def _advance(
        self, group: ShareGroup, member: ShareMember, updated: ShareMember, request: api.ShareGroupHeartbeatRequest
    ) -> api.ShareGroupHeartbeatResponse | HeartbeatError:
        self._runtime.groups[group.group_id] = group
        written: list[KeyValue] = []
        bumped = self._change(group, member, updated, written)
        self._update_target(group, written)
        updated = self._reconcile(group, updated, bumped, written)
        settings = self._runtime.group_configs(group.group_id)
        self._restart_session(group, member.member_id, settings.integer("share.session.timeout.ms"))
        initialize = self.initialization.start(group, written)
        error = self._runtime.write_or_restore(group.group_id, written)
        if error:
            return HeartbeatError(error, None)
        if initialize is not None:
            initialize()
        response = api.ShareGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=settings.integer("share.heartbeat.interval.ms"),
        )
        is_full = request.subscribed_topic_names is not None
        if request.member_epoch == JOIN_EPOCH or is_full or updated.assigned != member.assigned:
            response.assignment = Assignment(
                topic_partitions=[
                    TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                    for topic_id, partitions in updated.assigned.items()
                ]
            )
        return response

    def group_for(self, group_id: str, *, creates: bool) -> ShareGroup | HeartbeatError:
        group = self._runtime.groups.get(group_id)
        if isinstance(group, ShareGroup):
            return group
        return ShareGroup(group_id) if creates and group is None else wrong_group("share", group_id, group)

    # -- from a request to an assignment -------------------------------------------------------------------------------

    def _change(self, group: ShareGroup, member: ShareMember, updated: ShareMember, written: list[KeyValue]) -> bool:
        if updated != member:
            written.append(group.member_record(updated))
        bump = updated.subscribed_topic_names != member.subscribed_topic_names
        if group.assignment_epoch >= group.group_epoch:
            bump |= not group.is_empty and group.has_unassigned_partitions()
        group.members[member.member_id] = updated
        current = group.current_metadata_hash(self._cluster)
        if bump or current != group.metadata_hash:
            self._bump_epoch(group, current, written)
            return True
        return False

    def _bump_epoch(self, group: ShareGroup, metadata_hash: int, written: list[KeyValue]) -> None:
        group.group_epoch += 1
        group.metadata_hash = metadata_hash
        written.append(group.group_record())

    def _update_target(self, group: ShareGroup, written: list[KeyValue]) -> None:
        now_ms = self._runtime.now_ms()
        interval_ms = self._runtime.group_configs(group.group_id).integer("share.assignment.interval.ms")
        if group.assignment_epoch >= group.group_epoch or not group.is_assignment_due(now_ms, interval_ms):
            return
        members = {
            member_id: MemberSpec(self._topic_ids(member), group.target.get(member_id, {}))
            for member_id, member in group.members.items()
        }
        assignable = {topic.topic_id: _assignable(group, topic) for topic in group.subscribed_topics(self._cluster)}
        target = simple_assignor.assign(members, assignable, homogeneous=group.is_homogeneous)
        written += group.set_target(target, {}, now_ms)

    def _reconcile(
        self, group: ShareGroup, member: ShareMember, group_changed: bool, written: list[KeyValue]
    ) -> ShareMember:
        at_target = member.member_epoch == group.assignment_epoch
        if at_target and not group_changed:
            return member
        subscribed = self._topic_ids(member)
        target = group.target.get(member.member_id, {})
        reconciled = member._replace(assigned={one: those for one, those in target.items() if one in subscribed})
        if not at_target:
            reconciled = reconciled._replace(
                member_epoch=group.assignment_epoch, previous_member_epoch=member.member_epoch
            )
        if reconciled != member:
            group.members[member.member_id] = reconciled
            written.append(group.current_record(reconciled))
        return reconciled

    def _topic_ids(self, member: ShareMember) -> frozenset[bytes]:
        names = existing_names(self._cluster.topics, member.subscribed_topic_names)
        return frozenset(self._cluster.topics[name].topic_id for name in names)

    # -- removal -------------------------------------------------------------------------------------------------------

    def _leave(self, request: api.ShareGroupHeartbeatRequest) -> api.ShareGroupHeartbeatResponse | HeartbeatError:
        group = self._runtime.groups.get(request.group_id)
        if not isinstance(group, ShareGroup):
            return wrong_group("share", request.group_id, group, joins=False)
        if request.member_id not in group.members:
            return unknown_member(group.group_id, request.member_id)
        error = self._remove(group, request.member_id)
        if error:
            return HeartbeatError(error, None)
        return api.ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    def _remove(self, group: ShareGroup, member_id: str) -> ErrorCode:
        written = group.member_tombstones(member_id)
        group.remove(member_id)
        self._bump_epoch(group, group.current_metadata_hash(self._cluster), written)
        if group.is_empty:
            written.append(group.set_assignment_epoch(0))
        return self._runtime.write_or_restore(group.group_id, written)

    # -- sessions ------------------------------------------------------------------------------------------------------

    def loaded(self, group: Group) -> None:
        assert isinstance(group, ShareGroup)
        self.initialization.loaded(group)
        timeout_ms = self._runtime.group_configs(group.group_id).integer("share.session.timeout.ms")
        for member_id in group.members:
            self._restart_session(group, member_id, timeout_ms)

    def _restart_session(self, group: ShareGroup, member_id: str, timeout_ms: int) -> None:
        expire = partial(self._remove, group, member_id)
        group.set_timer(TimerKind.SESSION, member_id, self._runtime.await_heartbeat(timeout_ms, expire))


def _problem(request: api.ShareGroupHeartbeatRequest) -> str | None:
    blank = blank_field(MemberId=request.member_id, GroupId=request.group_id, RackId=request.rack_id)
    if blank is not None:
        return f"{blank} can't be empty."
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        return "SubscribedTopicNames must be set in first request."
    return "MemberEpoch is invalid." if request.member_epoch < LEAVE_EPOCH else None


def _epoch_error(member: ShareMember, epoch: int) -> HeartbeatError | None:
    """Accept the current epoch, the previous one after a lost response, or 0 to rejoin."""
    current, previous = member.member_epoch, member.previous_member_epoch
    if epoch in (JOIN_EPOCH, current) or (epoch < current and epoch == previous):
        return None
    unknown = f", and it does not match the previous member epoch ({previous})" if epoch < current else ""
    return fenced_epoch("share", member, epoch, unknown)


def _updated(
    ctx: RequestContext,
    request: api.ShareGroupHeartbeatRequest,
    names: Iterable[str],
    group: ShareGroup,
    member: ShareMember,
) -> ShareMember:
    return member._replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        subscribed_topic_names=member.subscribed_topic_names
        if request.subscribed_topic_names is None
        else shared_names(frozenset(names), group.subscriptions()),
        client_id=ctx.session.client_id,
        client_host=ctx.session.client_host,
    )


def _assignable(group: ShareGroup, topic: Topic) -> Sequence[int]:
    state = None if group.partitions is None else group.partitions.initialized.get(topic.topic_id)
    return [] if state is None else [one for one in range(len(topic.partitions)) if one in state.partitions]
