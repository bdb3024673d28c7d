"""The rebalance of a consumer group: bump the epoch, compute a target, reconcile members, remove members.

Follows the consumer part of Kafka's GroupMetadataManager (updateSubscriptionMetadata, maybeUpdateTargetAssignment,
maybeReconcile, consumerGroupFenceMembers) and TargetAssignmentBuilder, for members of both protocols.

Different on purpose, in all groups with member epochs: topic changes are detected by a member's request; in Kafka the
controller reports them.
"""

from collections.abc import Sequence
from functools import partial

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.assignors.registry import ASSIGNORS
from sluice.broker.coordinator.group.assignors.spec import Assignment, GroupSpec, MemberSpec
from sluice.broker.coordinator.group.modern_group import MemberSlot, TimerKind
from sluice.broker.coordinator.group.modern_records import of_group
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.broker.requests.context import RequestContext
from sluice.protocol.errors import ErrorCode
from sluice.protocol.uuids import printed_uuid, random_uuid

from .current_assignment import Goal, Owned, reconcile
from .group import ConsumerGroup, regex_record
from .member import ConsumerMember, MemberState
from .migration import Migration
from .record_values import PARTITION_METADATA
from .regexes import Matches, RegexSubscriptions

_Slot = MemberSlot[ConsumerMember]


class ConsumerRebalance:
    def __init__(self, runtime: GroupRuntime, migration: Migration) -> None:
        config = runtime.host.config
        self._runtime = runtime
        self._cluster = runtime.host.cluster
        self.max_size = config.integer("group.consumer.max.size")
        refresh_interval_ms = config.integer("group.consumer.regex.refresh.interval.ms")
        self._regexes = RegexSubscriptions(self._cluster, runtime.host.auth, refresh_interval_ms)
        self.assignors = config.names("group.consumer.assignors")
        self._migration = migration

    @property
    def default_assignor(self) -> str:
        return self.assignors[0]

    def new_member_id(self) -> str:
        return printed_uuid(random_uuid(self._runtime.host.random.randbytes))

    def has_room_for(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> bool:
        return instance_id in group.static_members or member_id in group.members or len(group.members) < self.max_size

    # -- from a request to an assignment -------------------------------------------------------------------------------

    def advance(
        self, group: ConsumerGroup, slot: _Slot, updated: ConsumerMember, owned: Owned, records: list[KeyValue]
    ) -> ConsumerMember:
        subscription_changed = self.change(group, slot, updated, records)
        now_ms = self._runtime.now_ms()
        if group.assignment_epoch < group.group_epoch and self._is_assignment_due(group, now_ms):
            records += group.set_target(self._assigned(group), {}, now_ms)
        return self.reconcile(group, updated, owned, subscription_changed, records)

    def change(self, group: ConsumerGroup, slot: _Slot, updated: ConsumerMember, records: list[KeyValue]) -> bool:
        """Return whether the member's subscription changed."""
        member, replaced = slot
        if replaced is not None:
            records += group.replace_static(replaced, member, {})
        assignor = group.preferred_assignor(self.default_assignor)
        if updated != member:
            records.append(group.member_record(updated))
        regex = self._regexes.change(group, member, updated)
        if regex.unused is not None:
            records.append(regex_record(group.group_id, regex.unused))
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
            records.append(group.group_record())
        if group.has_partition_metadata:
            group.has_partition_metadata = False
            records.append(of_group(PARTITION_METADATA, group.group_id))

    def _assigned(self, group: ConsumerGroup) -> dict[str, Assignment]:
        spec = GroupSpec(
            members={
                member_id: MemberSpec(
                    group.topic_ids_of(member, self._cluster), group.target.get(member_id, {}), member.instance_id
                )
                for member_id, member in group.members.items()
            },
            partition_counts={
                topic.topic_id: len(topic.partitions) for topic in group.subscribed_topics(self._cluster)
            },
            homogeneous=group.is_homogeneous,
        )
        assigned = ASSIGNORS[group.preferred_assignor(self.default_assignor)](spec)
        return {one: {topic: those for topic, those in target.items() if those} for one, target in assigned.items()}

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
        records.append(group.current_record(reconciled))
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
        leaving = {member.member_id for member in members}
        remaining = [member for member in group.members.values() if member.member_id not in leaving]
        if remaining and self._migration.can_downgrade(remaining, len(remaining)):
            return self._migration.downgrade(group, remaining, [], group.group_epoch)
        records: list[KeyValue] = []
        for member in members:
            records += group.member_tombstones(member.member_id)
            group.remove(member.member_id)
        records += self._regexes.remove_unused(group)
        self._bump_epoch(group, records, required=True)
        if not group.members:  # as a new group, so that the next assignment is due at once
            records.append(group.set_assignment_epoch(0))
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
