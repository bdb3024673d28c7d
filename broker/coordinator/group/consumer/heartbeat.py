"""The consumer rebalance protocol: ConsumerGroupHeartbeat (KIP-848).

Follows the consumer part of Kafka's GroupMetadataManager. A heartbeat is handled at once, in these steps:

    1. Check the request, the group, its size, the member and its epoch (heartbeat_validation.py).
    2. Update the member. If its subscription or the topics have changed, bump the group epoch.
    3. If the assignment epoch is behind and `group.consumer.assignment.interval.ms` has passed since the last
       assignment, compute a new target.
    4. Move the member one step towards its target.
    5. Resolve regular expressions, if due.

Steps 2 to 5 are in rebalance.py.
"""

from collections.abc import Collection

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.classic.group import ClassicGroup
from sluice.broker.coordinator.group.classic.protocol import ClassicProtocol
from sluice.broker.coordinator.group.group import Group, HeartbeatError
from sluice.broker.coordinator.group.modern_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    TimerKind,
    shared_names,
    wrong_group,
)
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis import consumer_group_heartbeat as api
from sluice.protocol.errors import ErrorCode

from .classic_members import ClassicMembers
from .current_assignment import Owned
from .group import ConsumerGroup, without_epochs
from .heartbeat_validation import find_slot, regex_error, request_error
from .member import ConsumerMember, MemberState
from .migration import Migration
from .rebalance import ConsumerRebalance


class ConsumerProtocol:
    def __init__(self, runtime: GroupRuntime, classic: ClassicProtocol) -> None:
        self._runtime = runtime
        self._migration = Migration(runtime, classic)
        self.rebalance = ConsumerRebalance(runtime, self._migration)
        self.classic_members = ClassicMembers(runtime, self.rebalance, self._migration)

    # -- heartbeats ----------------------------------------------------------------------------------------------------

    def heartbeat(
        self, ctx: RequestContext, request: api.ConsumerGroupHeartbeatRequest
    ) -> api.ConsumerGroupHeartbeatResponse | HeartbeatError:
        invalid = request_error(request, ctx.version, self.rebalance.assignors)
        if invalid is not None:
            return invalid
        # First, because other requests are served meanwhile.
        owned = request.topic_partitions
        names: dict[str, None] = ctx.kept_mapping()
        names.update((name, None) for name in request.subscribed_topic_names or ())
        characters = sum(map(len, ctx.sliced(names)))
        copied = None if owned is None else [(one.topic_id, list(one.partitions)) for one in owned]
        return self._change_member(ctx, request, names, characters, copied)

    def _change_member(
        self,
        ctx: RequestContext,
        request: api.ConsumerGroupHeartbeatRequest,
        names: Collection[str],
        characters: int,
        owned: Owned,
    ) -> api.ConsumerGroupHeartbeatResponse | HeartbeatError:
        error = self._runtime.error(request.group_id)
        if error:
            return HeartbeatError(error, None)
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request)
        group = self._group_for(request)
        if isinstance(group, HeartbeatError):
            return group
        member_id = request.member_id or self.rebalance.new_member_id()
        if not self.rebalance.has_room_for(group, member_id, request.instance_id):
            message = f"The consumer group has reached its maximum capacity of {self.rebalance.max_size} members."
            return HeartbeatError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
        slot = find_slot(group, request, member_id, owned)
        if isinstance(slot, HeartbeatError):
            return slot
        if characters > self._runtime.max_record_bytes(group.group_id):
            return HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        member = slot.member
        updated = _updated(ctx, request, group, member, names)
        invalid = regex_error(member, updated)
        if invalid is not None:
            return invalid
        records = self._add_group(group)
        updated = self.rebalance.advance(group, slot, updated, owned, records)
        settings = self._runtime.group_configs(group.group_id)
        self.rebalance.restart_session(group, member_id, settings.integer("consumer.session.timeout.ms"))
        error = self._runtime.write_or_restore(group.group_id, records)
        if error:
            return HeartbeatError(error, None)
        self.rebalance.refresh_regexes(ctx, group)
        response = api.ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=settings.integer("consumer.heartbeat.interval.ms"),
        )
        if request.member_epoch == JOIN_EPOCH or _is_full(request) or updated.assigned != member.assigned:
            response.assignment = api.Assignment(
                topic_partitions=[
                    api.TopicPartitions(topic_id=topic, partitions=partitions)
                    for topic, partitions in without_epochs(updated.assigned).items()
                ]
            )
        return response

    def _group_for(self, request: api.ConsumerGroupHeartbeatRequest) -> ConsumerGroup | HeartbeatError:
        group = self._runtime.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return group
        joins = request.member_epoch == JOIN_EPOCH
        if joins and group is None:
            return ConsumerGroup(request.group_id)
        if joins and isinstance(group, ClassicGroup):
            if group.is_empty:
                return ConsumerGroup(request.group_id)
            build_upgraded = self._migration.build_upgraded(group)
            if isinstance(build_upgraded, ConsumerGroup):
                return build_upgraded
            return HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, build_upgraded)
        return wrong_group("consumer", request.group_id, group)

    def _add_group(self, group: ConsumerGroup) -> list[KeyValue]:
        before = self._runtime.groups.get(group.group_id)
        if isinstance(before, ClassicGroup) and not before.is_empty:
            records = self._migration.upgrade(before, group)
            self.classic_members.start_sessions(group)
            return records
        return self._runtime.add(group)

    # -- leaving -------------------------------------------------------------------------------------------------------

    def _leave(self, request: api.ConsumerGroupHeartbeatRequest) -> api.ConsumerGroupHeartbeatResponse | HeartbeatError:
        group = self._runtime.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            return wrong_group("consumer", request.group_id, group, joins=False)
        member = group.find_member(request.member_id, request.instance_id)
        if isinstance(member, HeartbeatError):
            return member
        if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
            error = self._leave_temporarily(group, member)
        else:
            error = self.rebalance.remove(group, [member])
        if error:
            return HeartbeatError(error, None)
        return api.ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    def _leave_temporarily(self, group: ConsumerGroup, member: ConsumerMember) -> ErrorCode:
        """Remove a static member for up to its session timeout; it keeps its partitions."""
        away = member._replace(
            member_epoch=STATIC_LEAVE_EPOCH,
            pending_revocation={},
            assigned={topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()},
        )
        group.put(away)
        group.cancel_timer(TimerKind.REVOKE, member.member_id)
        return self._runtime.write_or_restore(group.group_id, [group.current_record(away)])

    # -- loading -------------------------------------------------------------------------------------------------------

    def loaded(self, group: Group) -> None:
        assert isinstance(group, ConsumerGroup)
        created = self._runtime.host.cluster.topics_created
        for regex, resolved in group.regexes.items():  # a previous process may have counted more topics
            group.regexes[regex] = resolved._replace(version=min(resolved.version, created))
        settings = self._runtime.group_configs(group.group_id)
        for member in group.members.values():
            self.rebalance.restart_session(group, member.member_id, settings.integer("consumer.session.timeout.ms"))
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self.rebalance.await_within_rebalance(TimerKind.REVOKE, group, member)


def _updated(
    ctx: RequestContext,
    request: api.ConsumerGroupHeartbeatRequest,
    group: ConsumerGroup,
    member: ConsumerMember,
    names: Collection[str],
) -> ConsumerMember:
    regex = request.subscribed_topic_regex
    rebalance_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if rebalance_ms == -1 else rebalance_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names
        if request.subscribed_topic_names is None
        else shared_names(frozenset(names), group.subscriptions()),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=ctx.session.client_id,
        client_host=ctx.session.client_host,
        classic=None,
    )


def _is_full(request: api.ConsumerGroupHeartbeatRequest) -> bool:
    # Members send all fields when they join, and after a lost response.
    names_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and names_topics and request.topic_partitions is not None
