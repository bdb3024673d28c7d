"""What members of consumer groups say: ConsumerGroupHeartbeat (KIP-848). Follows the consumer part of Kafka's
GroupMetadataManager and what its GroupCoordinatorService checks before.

A heartbeat is worked on in this order, and answered at once:

    1. is the request valid, is there such a group (or may there be one), has it room, is this its member, is its epoch
       one that the member can have: else it is refused, and nothing has changed
    2. the member is what it says now; if that concerns its topics, or these have changed, the group epoch grows
    3. if the assignment epoch is behind, and the last assignment is `group.consumer.assignment.interval.ms` ago, a new
       target is made
    4. the member goes one step towards its target
    5. regular expressions are looked at again, if that is due

Steps 2 to 5 are those of rebalance.py. Two timers: every member has to send heartbeats within the session
timeout, and to give partitions up within its rebalance timeout; else it is out.

A heartbeat whose records cannot be written has changed nothing: the group is made anew of what is written.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.classic.group import ClassicGroup
from sluice.broker.coordinator.group.classic.protocol import ClassicProtocol
from sluice.broker.coordinator.group.group import Group
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from sluice.protocol.errors import ErrorCode

from .classic_members import ClassicMembers
from .current_assignment import Owned
from .group import ConsumerGroup, TimerKind, without_epochs
from .member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, ConsumerMember, MemberState
from .migration import Migration
from .rebalance import ConsumerRebalance, MemberSlot
from .records import current_assignment
from .topic_regex import InvalidRegexError, compile_regex

_CLIENTS_MAKE_MEMBER_IDS_SINCE = 1


class HeartbeatError(NamedTuple):
    """The error of a heartbeat that changes nothing."""

    error: ErrorCode
    message: str | None  # None: what the error says


class ConsumerProtocol:
    """The consumer rebalance protocol, for all groups of one coordinator."""

    def __init__(self, runtime: GroupRuntime, classic: ClassicProtocol) -> None:
        self._runtime = runtime
        self._migration = Migration(runtime, classic)
        self.rebalance = ConsumerRebalance(runtime, self._migration)
        self.classic_members = ClassicMembers(runtime, self.rebalance, self._migration)

    # -- heartbeats ----------------------------------------------------------------------------------------------------

    def heartbeat(
        self, ctx: RequestContext, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse | HeartbeatError:
        """Add, update or remove a member; the response has its assignment."""
        invalid = _request_error(request, ctx.version, self.rebalance.assignors)
        if invalid is not None:
            return invalid
        error = self._runtime.error(request.group_id)
        if error:
            return HeartbeatError(error, None)
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request)
        return self._join_or_stay(ctx, request)

    def _join_or_stay(
        self, ctx: RequestContext, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse | HeartbeatError:
        group = self._group_for(request)
        if isinstance(group, HeartbeatError):
            return group
        member_id = request.member_id or self.rebalance.new_member_id()
        if not self.rebalance.has_room_for(group, member_id, request.instance_id):
            return HeartbeatError(ErrorCode.GROUP_MAX_SIZE_REACHED, self.rebalance.size_error)
        owned = _owned(request)
        slot = _find_slot(group, request, member_id, owned)
        if isinstance(slot, HeartbeatError):
            return slot
        member = slot.member
        updated = _updated(ctx, request, member)
        invalid = _regex_error(member, updated)
        if invalid is not None:
            return invalid
        records = self._add_group(group)
        updated = self.rebalance.advance(group, slot, updated, owned, records)
        settings = self._runtime.group_configs(group.group_id)
        self.rebalance.restart_session(group, member_id, settings.integer("consumer.session.timeout.ms"))
        error = self._runtime.write_or_restore(group.group_id, records)
        if error:
            return _write_error(error)
        self.rebalance.refresh_regexes(ctx, group)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=settings.integer("consumer.heartbeat.interval.ms"),
        )
        if request.member_epoch == JOIN_EPOCH or _is_full(request) or updated.assigned != member.assigned:
            response.assignment = Assignment(
                topic_partitions=[
                    TopicPartitions(topic_id=topic, partitions=partitions)
                    for topic, partitions in without_epochs(updated.assigned).items()
                ]
            )
        return response

    def _group_for(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroup | HeartbeatError:
        """Return the group, or a new one, not added yet, for a member that joins one that does not exist."""
        group = self._runtime.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return group
        joins = request.member_epoch == JOIN_EPOCH
        if group is None:
            if joins:
                return ConsumerGroup(request.group_id)
            return HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
        if joins and group.is_empty:
            return ConsumerGroup(request.group_id)
        if joins and isinstance(group, ClassicGroup):
            build_upgraded = self._migration.build_upgraded(group)
            if isinstance(build_upgraded, ConsumerGroup):
                return build_upgraded
            return HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, build_upgraded)
        return HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a consumer group.")

    def _add_group(self, group: ConsumerGroup) -> list[KeyValue]:
        """Add a new group, which may replace one of another type; return the records about the replaced one."""
        before = self._runtime.groups.get(group.group_id)
        if before is group:
            return []
        if isinstance(before, ClassicGroup) and not before.is_empty:
            records = self._migration.upgrade(before, group)
            self.classic_members.start_sessions(group)
            return records
        self._runtime.groups[group.group_id] = group
        if before is None:
            return []
        before.cancel_timers()
        return before.tombstones()

    # -- leaving -------------------------------------------------------------------------------------------------------

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse | HeartbeatError:
        group = self._runtime.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            problem = "not found" if group is None else "is not a consumer group"
            return HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {problem}.")
        member = _find_member(group, request.member_id, request.instance_id)
        if isinstance(member, HeartbeatError):
            return member
        if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
            error = self._leave_temporarily(group, member)
        else:
            error = self.rebalance.remove(group, [member])
        if error:
            return _write_error(error)
        return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    def _leave_temporarily(self, group: ConsumerGroup, member: ConsumerMember) -> ErrorCode:
        """Remove a static member that will be back before its session ends: it keeps its partitions, and its successor
        has them since epoch 0.
        """
        away = member._replace(
            member_epoch=STATIC_LEAVE_EPOCH,
            pending_revocation={},
            assigned={topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()},
        )
        group.put(away)
        group.cancel_timer(TimerKind.REVOKE, member.member_id)
        return self._runtime.write_or_restore(group.group_id, [current_assignment(group.group_id, away)])

    # -- groups that come with their partitions ------------------------------------------------------------------------

    def loaded(self, group: Group) -> None:
        """Start the timers of a group that was read from the log."""
        assert isinstance(group, ConsumerGroup)
        created = self._runtime.host.cluster.topics_created
        for regex, resolved in group.regexes.items():  # an earlier process may have counted more topics than this one
            group.regexes[regex] = resolved._replace(version=min(resolved.version, created))
        settings = self._runtime.group_configs(group.group_id)
        for member in group.members.values():
            self.rebalance.restart_session(group, member.member_id, settings.integer("consumer.session.timeout.ms"))
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self.rebalance.await_within_rebalance(TimerKind.REVOKE, group, member)


def _write_error(error: ErrorCode) -> HeartbeatError:
    return HeartbeatError(error, "The group's records could not be written.")


def _request_error(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]
) -> HeartbeatError | None:
    """What no group would accept (Kafka's GroupCoordinatorService)."""
    epoch = request.member_epoch
    must_name_itself = version >= _CLIENTS_MAKE_MEMBER_IDS_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    joins, leaves_for_a_while = epoch == JOIN_EPOCH, epoch == STATIC_LEAVE_EPOCH
    no_topics = request.subscribed_topic_names is None and request.subscribed_topic_regex is None
    problems = (
        (must_name_itself and _is_blank(request.member_id), "MemberId can't be empty."),
        (_is_blank(request.group_id), "GroupId can't be empty."),
        (_is_blank(request.instance_id), "InstanceId can't be empty."),
        (_is_blank(request.rack_id), "RackId can't be empty."),
        (joins and request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request."),
        (joins and request.topic_partitions != [], "TopicPartitions must be empty when (re-)joining."),
        (
            joins and no_topics,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (leaves_for_a_while and request.instance_id is None, "InstanceId can't be null."),
        (epoch < STATIC_LEAVE_EPOCH, "MemberEpoch is invalid."),
    )
    problem = next((message for is_wrong, message in problems if is_wrong), None)
    if problem is not None:
        return HeartbeatError(ErrorCode.INVALID_REQUEST, problem)
    if request.server_assignor is not None and request.server_assignor not in assignors:
        known = ", ".join(assignors)
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {known}."
        return HeartbeatError(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    return None


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def _regex_error(member: ConsumerMember, updated: ConsumerMember) -> HeartbeatError | None:
    regex = updated.subscribed_topic_regex
    if not regex or regex == member.subscribed_topic_regex:
        return None
    try:
        compile_regex(regex)
    except InvalidRegexError as error:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        return HeartbeatError(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
    return None


def _find_slot(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str, owned: Owned
) -> MemberSlot | HeartbeatError:
    """The member that sends this heartbeat, which may be a new one."""
    instance_id = request.instance_id
    if request.member_epoch == JOIN_EPOCH:
        static = None if instance_id is None else group.static_member(instance_id)
        if static is None:
            return MemberSlot(group.members.get(member_id) or ConsumerMember(member_id))
        if static.classic is None and static.member_epoch != STATIC_LEAVE_EPOCH:
            message = (
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {static.member_id} member."
            )
            return HeartbeatError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
        return MemberSlot.of_returning(static, member_id)
    member = _find_member(group, member_id, instance_id)
    if isinstance(member, HeartbeatError):
        return member
    return _epoch_error(member, request.member_epoch, owned) or MemberSlot(member)


def _find_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember | HeartbeatError:
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {group.group_id}."
            return HeartbeatError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return member
    member = group.static_member(instance_id)
    if member is None:
        return HeartbeatError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}."
        return HeartbeatError(ErrorCode.FENCED_INSTANCE_ID, message)
    return member


def _epoch_error(member: ConsumerMember, epoch: int, owned: Owned) -> HeartbeatError | None:
    """The answer with the current epoch may have been lost: the previous one will do, from a member that has nothing
    but what it was given.
    """
    lost_answer = epoch == member.previous_member_epoch and owned is not None and _was_assigned(member, owned)
    if epoch == member.member_epoch or (epoch < member.member_epoch and lost_answer):
        return None
    compared = "greater" if epoch > member.member_epoch else "smaller"
    message = (
        f"The consumer group member has a {compared} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin."
    )
    return HeartbeatError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _was_assigned(member: ConsumerMember, owned: Iterable[tuple[bytes, Sequence[int]]]) -> bool:
    return all(partition in member.assigned.get(topic, ()) for topic, partitions in owned for partition in partitions)


def _updated(ctx: RequestContext, request: ConsumerGroupHeartbeatRequest, member: ConsumerMember) -> ConsumerMember:
    """The member as it says that it is now; what it leaves out is as before."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    rebalance_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if rebalance_ms == -1 else rebalance_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=ctx.session.client_id,
        client_host=ctx.session.client_host,
        classic=None,
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    return [(one.topic_id, one.partitions) for one in request.topic_partitions]


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member says all of itself, as it does when it joins and when it did not get an answer."""
    names_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and names_topics and request.topic_partitions is not None
