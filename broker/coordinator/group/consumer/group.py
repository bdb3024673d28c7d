"""A consumer group (KIP-848): members, epochs and target assignment. Follows Kafka's ConsumerGroup and ModernGroup.

The epochs (modern_group.py) define the group's state:

    Empty         no members
    Assigning     assignment epoch < group epoch: a new target is due
    Reconciling   some member is not Stable in the assignment epoch
    Stable        all members are
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from msgspec import field

from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.assignors.registry import ASSIGNORS
from sluice.broker.coordinator.group.assignors.spec import Assignment
from sluice.broker.coordinator.group.consumer_protocol import PROTOCOL_TYPE
from sluice.broker.coordinator.group.group import CONSUMER
from sluice.broker.coordinator.group.modern_group import ReconcilingGroup, TimerKind, existing_names
from sluice.broker.metadata.topic import Topic

from .member import ConsumerMember, MemberState, PartitionEpochs
from .metadata_hash import metadata_hash
from .record_keys import group_tombstones
from .topic_regex import ResolvedRegex


class ConsumerState(Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup(ReconcilingGroup[ConsumerMember]):
    has_partition_metadata: bool = False  # a broker before 4.1 wrote a record of its topics
    target: dict[str, Assignment] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    resolves_regexes: bool = False
    _owners: dict[tuple[bytes, int], str] = field(default_factory=dict)

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

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in names for names in self.subscriptions())

    def tombstones(self) -> list[KeyValue]:
        return group_tombstones(self.group_id, self.members, self.regexes)

    # -- members -------------------------------------------------------------------------------------------------------

    def put(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._disown(before)
        self.members[member.member_id] = member
        for partition in _partitions(member.assigned, member.pending_revocation):
            assert partition not in self._owners, f"{partition} is owned by {self._owners[partition]}"
            self._owners[partition] = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        self.target.pop(member_id, None)
        self._disown(member)
        for kind in TimerKind:
            self.cancel_timer(kind, member_id)

    def replace_static(self, old: ConsumerMember, new: ConsumerMember) -> None:
        target = self.target.get(old.member_id, {})
        self.remove(old.member_id)
        self.put(new)
        self.target[new.member_id] = target

    def owner_of(self, topic_id: bytes, partition: int) -> str | None:
        return self._owners.get((topic_id, partition))

    def _disown(self, member: ConsumerMember) -> None:
        for partition in _partitions(member.assigned, member.pending_revocation):
            del self._owners[partition]
        if member.instance_id is not None:
            del self.static_members[member.instance_id]

    # -- subscriptions -------------------------------------------------------------------------------------------------

    def subscriptions(self) -> set[frozenset[str]]:
        """Return the distinct sets of topic names that members subscribe to, by name or regular expression."""
        return {names for member in self.members.values() for names in self._subscriptions_of(member)}

    def _subscriptions_of(self, member: ConsumerMember) -> Sequence[frozenset[str]]:
        resolved = self.regexes.get(member.subscribed_topic_regex)
        names = member.subscribed_topic_names
        return (names,) if resolved is None else (names, resolved.topics)

    def subscribed_topics(self, cluster: Cluster) -> list[Topic]:
        topics = cluster.topics
        names = set().union(*(existing_names(topics, one) for one in self.subscriptions()))
        return [topics[name] for name in sorted(names)]

    def topic_ids_of(self, member: ConsumerMember, cluster: Cluster) -> frozenset[bytes]:
        topics = cluster.topics
        return frozenset(
            topics[name].topic_id for names in self._subscriptions_of(member) for name in existing_names(topics, names)
        )

    def current_metadata_hash(self, cluster: Cluster) -> int:
        return metadata_hash(self.subscribed_topics(cluster), cluster.racks)

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


def _partitions(*assignments: PartitionEpochs) -> Iterable[tuple[bytes, int]]:
    return ((topic, partition) for one in assignments for topic, epochs in one.items() for partition in epochs)


def without_epochs(assignment: PartitionEpochs) -> Mapping[bytes, list[int]]:
    return {topic: sorted(epochs) for topic, epochs in assignment.items()}
