"""A consumer group (KIP-848): members, epochs and target assignment. Follows Kafka's ConsumerGroup and ModernGroup.

The epochs (modern_group.py) define the group's state:

    Empty         no members
    Assigning     assignment epoch < group epoch: a new target is due
    Reconciling   some member is not Stable in the assignment epoch
    Stable        all members are

Its records are read as by the `replay` methods of Kafka's GroupMetadataManager. Different on purpose: a partition that
the records assign to two members, which no coordinator writes, belongs to the first; Kafka fails to load such a log.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from msgspec import field

from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.assignors.registry import ASSIGNORS
from sluice.broker.coordinator.group.assignors.spec import Assignment
from sluice.broker.coordinator.group.group import CONSUMER
from sluice.broker.coordinator.group.modern_group import ReconcilingGroup, existing_names
from sluice.broker.coordinator.group.modern_records import assigned_partitions, of_group, of_part, target_partitions
from sluice.broker.metadata.topic import Topic
from sluice.protocol.consumer_protocol import PROTOCOL_TYPE
from sluice.protocol.message import Message

from . import record_values as values
from .member import ClassicMetadata, ConsumerMember, MemberState, PartitionEpochs, ResolvedRegex


class ConsumerState(Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup(ReconcilingGroup[ConsumerMember, Assignment]):
    has_partition_metadata: bool = False  # a broker before 4.1 wrote a record of its topics
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    resolves_regexes: bool = False
    _owners: dict[tuple[bytes, int], str] = field(default_factory=dict)

    RECORDS = values.RECORDS
    type = CONSUMER
    listed_protocol_type = PROTOCOL_TYPE

    # -- the interface Group -------------------------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerState:
        if not self.members:
            return ConsumerState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        return ConsumerState.STABLE if self.is_reconciled() else ConsumerState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    def is_classic(self, member: ConsumerMember) -> bool:
        return member.classic is not None

    def epoch_of(self, member: ConsumerMember, topic: Topic, partition: int) -> int | None:
        return member.epoch_of(topic.topic_id, partition)

    def tombstones(self) -> list[KeyValue]:
        regexes = (regex_record(self.group_id, regex) for regex in self.regexes)
        return self._tombstones(*regexes, of_group(values.PARTITION_METADATA, self.group_id))

    # -- members -------------------------------------------------------------------------------------------------------

    def _own(self, member: ConsumerMember) -> None:
        for partition in _partitions(member):
            assert partition not in self._owners, f"{partition} is owned by {self._owners[partition]}"
            self._owners[partition] = member.member_id

    def _disown(self, member: ConsumerMember) -> None:
        super()._disown(member)
        for partition in _partitions(member):
            del self._owners[partition]

    def owner_of(self, topic_id: bytes, partition: int) -> str | None:
        return self._owners.get((topic_id, partition))

    # -- subscriptions -------------------------------------------------------------------------------------------------

    def subscriptions(self) -> set[frozenset[str]]:
        """Return the distinct sets of topic names that members subscribe to, by name or regular expression."""
        return {names for member in self.members.values() for names in self._subscriptions_of(member)}

    def _subscriptions_of(self, member: ConsumerMember) -> Sequence[frozenset[str]]:
        resolved = self.regexes.get(member.subscribed_topic_regex)
        names = member.subscribed_topic_names
        return (names,) if resolved is None else (names, resolved.topics)

    def topic_ids_of(self, member: ConsumerMember, cluster: Cluster) -> frozenset[bytes]:
        topics = cluster.topics
        return frozenset(
            topics[name].topic_id for names in self._subscriptions_of(member) for name in existing_names(topics, names)
        )

    def regex_subscribers(self) -> Counter[str]:
        return Counter(
            member.subscribed_topic_regex for member in self.members.values() if member.subscribed_topic_regex
        )

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members have the same subscription: the same names, or the same regular expression."""
        subscriptions = {(one.subscribed_topic_names, one.subscribed_topic_regex) for one in self.members.values()}
        return len(subscriptions) <= 1 and not any(names and regex for names, regex in subscriptions)

    def preferred_assignor(self, default: str) -> str:
        votes = Counter(member.server_assignor for member in self.members.values())
        return max((name for name in ASSIGNORS if votes[name]), key=lambda name: votes[name], default=default)

    # -- members with the classic protocol -----------------------------------------------------------------------------

    @property
    def classic_members(self) -> list[ConsumerMember]:
        return [member for member in self.members.values() if member.classic is not None]

    def can_complete_assignment(self, member: ConsumerMember) -> bool:
        return member.state is MemberState.UNRELEASED_PARTITIONS and all(
            self.owner_of(topic, partition) in (None, member.member_id)
            for topic, partitions in self.target.get(member.member_id, {}).items()
            for partition in partitions
        )

    # -- records -------------------------------------------------------------------------------------------------------

    def group_value(self) -> Message:
        return values.ConsumerGroupMetadataValue(epoch=self.group_epoch, metadata_hash=self.metadata_hash)

    def member_value(self, member: ConsumerMember) -> Message:
        classic = member.classic
        return values.ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
            subscribed_topic_regex=member.subscribed_topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=None
            if classic is None
            else values.ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=[
                    values.ClassicProtocol(name=name, metadata=data) for name, data in classic.protocols
                ],
            ),
        )

    def target_value(self, target: Assignment) -> Message:
        return target_partitions(target)

    def current_value(self, member: ConsumerMember) -> Message:
        return values.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            assigned_partitions=_with_epochs(member.assigned),
            partitions_pending_revocation=_with_epochs(member.pending_revocation),
        )

    # -- loading -------------------------------------------------------------------------------------------------------

    def replay(self, number: int, part: str, value: Message) -> None:
        if isinstance(value, values.ConsumerGroupMetadataValue):
            self.group_epoch, self.metadata_hash = value.epoch, value.metadata_hash
        elif isinstance(value, values.ConsumerGroupRegularExpressionValue):
            self.regexes[part] = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
        elif isinstance(value, values.ConsumerGroupPartitionMetadataValue):
            self.has_partition_metadata = True
        else:
            super().replay(number, part, value)

    def target_of(self, value: Message) -> Assignment:
        return assigned_partitions(value)

    def replay_member(self, member_id: str, stored: Message, current: Message | None) -> None:
        assert isinstance(stored, values.ConsumerGroupMemberMetadataValue)
        classic = stored.classic_member_metadata
        member = ConsumerMember(
            member_id,
            instance_id=stored.instance_id,
            rack_id=stored.rack_id,
            rebalance_timeout_ms=stored.rebalance_timeout_ms,
            client_id=stored.client_id,
            client_host=stored.client_host,
            subscribed_topic_names=frozenset(stored.subscribed_topic_names),
            subscribed_topic_regex=stored.subscribed_topic_regex or "",
            server_assignor=stored.server_assignor,
            classic=None
            if classic is None
            else ClassicMetadata(
                classic.session_timeout_ms, tuple((one.name, one.metadata) for one in classic.supported_protocols)
            ),
        )
        if current is not None:
            assert isinstance(current, values.ConsumerGroupCurrentMemberAssignmentValue)
            taken: set[tuple[bytes, int]] = set()
            # Epochs of partitions are written since 4.1. The epoch is -2 while a static member is away.
            epoch = max(current.member_epoch, 0)
            member = member._replace(
                member_epoch=current.member_epoch,
                previous_member_epoch=current.previous_member_epoch,
                state=MemberState(current.state),
                assigned=self._replayed(current.assigned_partitions, epoch, taken),
                pending_revocation=self._replayed(current.partitions_pending_revocation, epoch, taken),
            )
        self.put(member)

    def _replayed(
        self, topics: Iterable[values.EpochPartitions], epoch: int, taken: set[tuple[bytes, int]]
    ) -> dict[bytes, dict[int, int]]:
        assigned: dict[bytes, dict[int, int]] = {}
        for one in topics:
            epochs = one.assignment_epochs
            if epochs is None or len(epochs) != len(one.partitions):
                epochs = [epoch] * len(one.partitions)
            for partition, since in zip(one.partitions, epochs, strict=True):
                where = one.topic_id, partition
                if where not in taken and self.owner_of(*where) is None:
                    taken.add(where)
                    assigned.setdefault(one.topic_id, {})[partition] = since
        return assigned


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex | None = None) -> KeyValue:
    """Return the record of a regular expression; if it is not resolved, its tombstone."""
    value = None
    if resolved is not None:
        value = values.ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
        )
    return of_part(values.REGULAR_EXPRESSION, group_id, regex, value)


def _partitions(member: ConsumerMember) -> Iterable[tuple[bytes, int]]:
    assignments = member.assigned, member.pending_revocation
    return ((topic, partition) for one in assignments for topic, epochs in one.items() for partition in epochs)


def without_epochs(assignment: PartitionEpochs) -> Mapping[bytes, list[int]]:
    return {topic: sorted(epochs) for topic, epochs in assignment.items()}


def _with_epochs(partitions: PartitionEpochs) -> list[values.EpochPartitions]:
    return [
        values.EpochPartitions(topic_id=topic, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic, epochs in partitions.items()
    ]
