"""The rebalance of a consumer group: bump the epoch, compute a target, reconcile members, remove members.

Follows the consumer part of Kafka's GroupMetadataManager (updateSubscriptionMetadata, maybeUpdateTargetAssignment,
maybeReconcile, consumerGroupFenceMembers), for members of both protocols.

Different on purpose, in all groups with member epochs: topic changes are detected by a member's request; in Kafka the
controller reports them.
"""

from collections.abc import Sequence
from functools import partial

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.assignors.registry import ASSIGNORS
from sluice.broker.coordinator.group.modern_group import MemberSlot, TimerKind
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.broker.requests.context import RequestContext
from sluice.protocol.errors import ErrorCode
from sluice.protocol.uuids import printed_uuid, random_uuid

from .current_assignment import Goal, Owned, reconcile
from .group import ConsumerGroup
from .member import ConsumerMember, MemberState
from .migration import Migration
from .record_keys import member_tombstones, partition_metadata_tombstone, regular_expression_tombstone
from .records import current_assignment, group_epoch, member_metadata, target_assignment, target_epoch
from .regexes import Matches, RegexSubscriptions
from .target_assignment import update_target

_Slot = MemberSlot[ConsumerMember]


class ConsumerRebalance:
    def __init__(self, runtime: GroupRuntime, migration: Migration) -> None:
        config = runtime.host.config
        self._runtime = runtime
        self._cluster = runtime.host.cluster
        self._max_size = config.integer("group.consumer.max.size")
        auth = runtime.host.auth
        self._regexes = RegexSubscriptions(
            self._cluster, auth, config.integer("group.consumer.regex.refresh.interval.ms")
        )
        self.assignors = config.names("group.consumer.assignors")
        self._migration = migration

    @property
    def default_assignor(self) -> str:
        return self.assignors[0]

    def new_member_id(self) -> str:
        return printed_uuid(random_uuid(self._runtime.host.random.randbytes))

    def has_room_for(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> bool:
        return instance_id in group.static_members or member_id in group.members or len(group.members) < self._max_size

    @property
    def size_error(self) -> str:
        return f"The consumer group has reached its maximum capacity of {self._max_size} members."

    # -- from a request to an assignment -------------------------------------------------------------------------------

    def advance(
        self,
        group: ConsumerGroup,
        slot: _Slot,
        updated: ConsumerMember,
        owned: Owned,
        records: list[KeyValue],
    ) -> ConsumerMember:
        subscription_changed = self.change(group, slot, updated, records)
        now_ms = self._runtime.now_ms()
        if group.assignment_epoch < group.group_epoch and self._is_assignment_due(group, now_ms):
            assign = ASSIGNORS[group.preferred_assignor(self.default_assignor)]
            records += update_target(group, assign, self._cluster, now_ms)
        return self.reconcile(group, updated, owned, subscription_changed, records)

    def change(self, group: ConsumerGroup, slot: _Slot, updated: ConsumerMember, records: list[KeyValue]) -> bool:
        """Return whether the member's subscription changed."""
        member, replaced = slot
        if replaced is not None:
            records += _replacement(group, replaced, member)
            group.replace_static(replaced, member)
        assignor = group.preferred_assignor(self.default_assignor)
        if updated != member:
            records.append(member_metadata(group.group_id, updated))
        regex = self._regexes.change(group, member, updated)
        if regex.unused is not None:
            records.append(regular_expression_tombstone(group.group_id, regex.unused))
        if updated != group.members.get(updated.member_id):
            group.put(updated)
        names_changed = updated.subscribed_topic_names != member.subscribed_topic_names
        assignor_changed = assignor != group.preferred_assignor(self.default_assignor)
        self._bump_epoch(group, records, required=names_changed or regex.affects_target or assignor_changed)
        return names_changed or regex.changed

    def _bump_epoch(self, group: ConsumerGroup, records: list[KeyValue], *, required: bool) -> None:
        current = group.current_metadata_hash(self._cluster)
        if required or current != group.metadata_hash:
            group.group_epoch += 1
            group.metadata_hash = current
            records.append(group_epoch(group))
        if group.has_partition_metadata:
            group.has_partition_metadata = False
            records.append(partition_metadata_tombstone(group.group_id))

    def _is_assignment_due(self, group: ConsumerGroup, now_ms: int) -> bool:
        interval_ms = self._runtime.group_configs(group.group_id).integer("consumer.assignment.interval.ms")
        return group.is_assignment_due(now_ms, interval_ms)

    def reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        owned: Owned,
        subscription_changed: bool,
        records: list[KeyValue],
    ) -> ConsumerMember:
        goal = Goal(
            group.assignment_epoch,
            group.target.get(member.member_id, {}),
            group.topic_ids_of(member, self._cluster),
            group.owner_of,
            subscription_changed,
        )
        reconciled = reconcile(member, goal, owned)
        if reconciled == member:
            return member
        group.put(reconciled)
        records.append(current_assignment(group.group_id, reconciled))
        if reconciled.classic is None:
            if reconciled.state is MemberState.UNREVOKED_PARTITIONS:
                self.await_within_rebalance(TimerKind.REVOKE, group, reconciled)
            else:
                group.cancel_timer(TimerKind.REVOKE, reconciled.member_id)
        return reconciled

    def refresh_regexes(self, ctx: RequestContext, group: ConsumerGroup) -> None:
        """Resolve regular expressions, if due; as in Kafka, a separate thread resolves them."""

        def apply(matches: Matches) -> None:
            if self._runtime.groups.get(group.group_id) is not group:
                return
            records, changed = self._regexes.update(ctx, group, matches)
            self._bump_epoch(group, records, required=changed)
            self._runtime.write_or_restore(group.group_id, records)

        self._regexes.refresh(group, self._runtime.now_ms(), apply)

    # -- removal -------------------------------------------------------------------------------------------------------

    def remove(self, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> ErrorCode:
        if not members:
            return ErrorCode.NONE
        if self._migration.can_downgrade_without(group, members):
            return self._migration.downgrade_without(group, members)
        records: list[KeyValue] = []
        for member in members:
            records += member_tombstones(group.group_id, member.member_id)
            group.remove(member.member_id)
        records += self._regexes.remove_unused(group)
        self._bump_epoch(group, records, required=True)
        if not group.members:  # as a new group, so that the next assignment is due at once
            group.assignment_epoch, group.assignment_timestamp_ms = group.group_epoch, 0
            records.append(target_epoch(group))
        return self._runtime.write_or_restore(group.group_id, records)

    # -- timers --------------------------------------------------------------------------------------------------------

    def restart_session(self, group: ConsumerGroup, member_id: str, timeout_ms: int) -> None:
        expire = partial(self.expired, group, member_id)
        group.set_timer(TimerKind.SESSION, member_id, self._runtime.await_heartbeat(timeout_ms, expire))

    def await_within_rebalance(self, kind: TimerKind, group: ConsumerGroup, member: ConsumerMember) -> None:
        expire = partial(self.expired, group, member.member_id)
        timer = self._runtime.await_rebalance(member.rebalance_timeout_ms, expire)
        group.set_timer(kind, member.member_id, timer)

    def expired(self, group: ConsumerGroup, member_id: str) -> None:
        self.remove(group, [group.members[member_id]])


def _replacement(group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> list[KeyValue]:
    return [
        *member_tombstones(group.group_id, old.member_id),
        member_metadata(group.group_id, new),
        target_assignment(group.group_id, new.member_id, group.target.get(old.member_id, {})),
        current_assignment(group.group_id, new),
    ]
