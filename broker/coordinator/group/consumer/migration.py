"""The conversion of groups with members between the protocols (KIP-848).

Follows Kafka's GroupMetadataManager (convertToConsumerGroup, convertToClassicGroup), ConsumerGroup.fromClassicGroup and
ClassicGroup.fromConsumerGroup. `group.consumer.migration.policy` restricts these conversions:

    upgrade    A classic group of consumers becomes a consumer group when the first member with the consumer protocol
               joins. Members keep their assignments and later rejoin for changes (classic_members.py).
    downgrade  A consumer group becomes a classic one when the last member with the consumer protocol leaves, and
               rebalances.

Groups without members change their type under any policy.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.classic.group import PREPARING_REBALANCE, STABLE, ClassicGroup
from sluice.broker.coordinator.group.classic.member import ClassicMember
from sluice.broker.coordinator.group.classic.protocol import ClassicProtocol
from sluice.broker.coordinator.group.consumer_protocol import by_topic_id, write_assignment
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.protocol.apis.join_group import JoinGroupRequestProtocol
from sluice.protocol.consumer_protocol import PROTOCOL_TYPE, Assignment, Subscription, read_embedded
from sluice.protocol.errors import ErrorCode

from .group import ConsumerGroup
from .member import ClassicMetadata, ConsumerMember

# Policy -> whether upgrades and downgrades are allowed.
_POLICIES = {
    "bidirectional": (True, True),
    "upgrade": (True, False),
    "downgrade": (False, True),
    "disabled": (False, False),
}


class Migration:
    def __init__(self, runtime: GroupRuntime, classic: ClassicProtocol) -> None:
        config = runtime.host.config
        self._runtime = runtime
        self._classic = classic
        self._cluster = runtime.host.cluster
        self._may_upgrade, self._may_downgrade = _POLICIES[config.text("group.consumer.migration.policy")]
        self._max_consumer_size = config.integer("group.consumer.max.size")
        self._max_classic_size = config.integer("group.max.size")

    @property
    def is_disabled(self) -> bool:
        """Whether members of both protocols can never share a group."""
        return not self._may_upgrade and not self._may_downgrade

    # -- to a consumer group -------------------------------------------------------------------------------------------

    def build_upgraded(self, classic: ClassicGroup) -> ConsumerGroup | str:
        problem = self._upgrade_problem(classic)
        if problem is not None:
            return f"Cannot upgrade classic group {classic.group_id} to consumer group because {problem}."
        group = ConsumerGroup(classic.group_id)
        group.group_epoch = group.assignment_epoch = classic.generation_id
        for member in classic.members.values():
            upgraded = self._upgraded_member(classic, member)
            if isinstance(upgraded, str):
                return f"Cannot upgrade classic group {classic.group_id} to consumer group because {upgraded}."
            group.put(upgraded)
            group.target[member.member_id] = {topic: frozenset(those) for topic, those in upgraded.assigned.items()}
        group.metadata_hash = group.current_metadata_hash(self._cluster)
        return group

    def _upgrade_problem(self, classic: ClassicGroup) -> str | None:
        if not self._may_upgrade:
            return "online upgrade is disabled"
        if classic.protocol_type != PROTOCOL_TYPE:
            return "the group does not use the consumer embedded protocol"
        if len(classic.members) > self._max_consumer_size:
            return "the group size exceeds the consumer group maximum size"
        assignments = [
            read_embedded(Assignment, member.assignment) for member in classic.members.values() if member.assignment
        ]
        if any(assignment is None for assignment in assignments):
            return _MALFORMED
        partitions = Counter(
            (one.topic, partition)
            for assignment in assignments
            if assignment is not None
            for one in assignment.assigned_partitions
            for partition in one.partitions
        )
        return "members share partitions" if any(count > 1 for count in partitions.values()) else None

    def _upgraded_member(self, classic: ClassicGroup, member: ClassicMember) -> ConsumerMember | str:
        generation = classic.generation_id
        assignment = read_embedded(Assignment, member.assignment) if member.assignment else None
        if assignment is not None and assignment.user_data:
            return (
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
                "assignor before re-attempting the upgrade"
            )
        subscription = read_embedded(Subscription, member.metadata(classic.protocol_name or classic.select_protocol()))
        if subscription is None:
            return _MALFORMED
        has = {} if assignment is None else by_topic_id(assignment.assigned_partitions, self._cluster)
        return ConsumerMember(
            member.member_id,
            member_epoch=generation,
            previous_member_epoch=generation,
            instance_id=member.group_instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=frozenset(subscription.topics),
            assigned={topic: dict.fromkeys(sorted(those), generation) for topic, those in has.items() if those},
            classic=ClassicMetadata(
                member.session_timeout_ms, tuple((one.name, one.metadata) for one in member.protocols)
            ),
        )

    def upgrade(self, classic: ClassicGroup, group: ConsumerGroup) -> list[KeyValue]:
        self._classic.stop(classic, ErrorCode.REBALANCE_IN_PROGRESS)
        self._runtime.groups[group.group_id] = group
        members = group.members.values()
        return [
            *classic.tombstones(),
            *map(group.member_record, members),
            group.group_record(),
            *(group.target_record(*target) for target in group.target.items()),
            group.set_assignment_epoch(0),
            *map(group.current_record, members),
        ]

    # -- to a classic group --------------------------------------------------------------------------------------------

    def can_downgrade(self, members: Iterable[ConsumerMember], size: int) -> bool:
        """Return whether these members all use the classic protocol, and a classic group may have this size."""
        all_classic = all(member.classic is not None for member in members)
        return all_classic and self._may_downgrade and size <= self._max_classic_size

    def can_downgrade_on_return(self, group: ConsumerGroup, static: ConsumerMember) -> bool:
        others = [member for member in group.members.values() if member.member_id != static.member_id]
        return static.classic is None and self.can_downgrade(others, len(group.members))

    def downgrade(
        self,
        group: ConsumerGroup,
        members: Sequence[ConsumerMember],
        records: list[KeyValue],
        generation_id: int,
        *,
        rebalance: bool = True,
    ) -> ErrorCode:
        """Convert to a classic group of these members; write `records`, of earlier changes, first.

        `generation_id` is the group epoch before those changes, as in Kafka.
        """
        now_ms = self._runtime.now_ms()
        classic = ClassicGroup(group.group_id, now_ms)
        for member in members:
            classic.add(_downgraded_member(member))
        classic.generation_id = generation_id - 1  # as before a rebalance
        classic.transition_to(PREPARING_REBALANCE, now_ms)
        if not classic.begin_generation(now_ms):
            self._runtime.restore(group.group_id)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        classic.transition_to(STABLE, now_ms)
        for one in classic.members.values():
            target = group.target.get(one.member_id, {})
            one.assignment = write_assignment(target, self._cluster, one.metadata(classic.protocol_name))
        group.cancel_timers()
        assignments = {one.member_id: one.assignment for one in classic.members.values()}
        records += [*group.tombstones(), classic.record(assignments)]
        self._runtime.groups[group.group_id] = classic
        error = self._runtime.write_or_restore(group.group_id, records)
        if not error:
            self._classic.start(classic, rebalance=rebalance)
        return error


_MALFORMED = "the embedded consumer protocol is malformed"


def _downgraded_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        PROTOCOL_TYPE,
        [JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in member.classic.protocols],
    )
