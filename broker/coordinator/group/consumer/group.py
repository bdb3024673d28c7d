"""A consumer group (KIP-848): members, epochs and target assignment. Follows Kafka's ConsumerGroup and ModernGroup.

Members communicate by heartbeats, which are answered immediately. Three epochs describe progress:

    group epoch        grows with each change of members, subscriptions, or subscribed topics
    assignment epoch   the group epoch of the target assignment
    member epoch       the assignment epoch of the target that a member has or is moving to

They define the group's state:

    Empty         no members
    Assigning     assignment epoch < group epoch: a new target is due
    Reconciling   some member is not Stable in the assignment epoch
    Stable        all members are

A partition has at most one owner, which keeps it until it confirms the revocation; `owner_of` enforces that.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum

import msgspec

from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.assignors.registry import ASSIGNORS
from sluice.broker.coordinator.group.assignors.spec import Assignment
from sluice.broker.coordinator.group.consumer_protocol import PROTOCOL_TYPE
from sluice.broker.coordinator.group.group import CONSUMER, UNKNOWN_MEMBER_ID, Commit
from sluice.broker.coordinator.group.offsets import CommittedOffset
from sluice.broker.coordinator.group.timer import GroupTimer
from sluice.broker.metadata.topic import Topic
from sluice.protocol.errors import ErrorCode

from .member import ConsumerMember, MemberState, PartitionEpochs
from .metadata_hash import metadata_hash
from .record_keys import group_tombstones
from .topic_regex import ResolvedRegex

# The first OffsetCommit version with member epochs.
_MEMBER_EPOCHS_SINCE = 9
_UNKNOWN_GENERATION_ID = -1


class ConsumerState(Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class TimerKind(Enum):
    """The deadlines of a member. JOIN and SYNC are for members with the classic protocol."""

    SESSION = "heartbeat"
    REVOKE = "revoke partitions"
    JOIN = "rejoin"
    SYNC = "sync"


class ConsumerGroup(msgspec.Struct, eq=False):
    group_id: str
    group_epoch: int = 1
    assignment_epoch: int = 1
    assignment_timestamp_ms: int = 0  # wall clock; 0: unknown
    metadata_hash: int = 0  # at the last change of the group epoch
    has_partition_metadata: bool = False  # whether a broker before 4.1 wrote a record of its topics
    members: dict[str, ConsumerMember] = {}  # in the order they joined
    static_members: dict[str, str] = {}  # instance id -> member id
    target: dict[str, Assignment] = {}  # by member id
    regexes: dict[str, ResolvedRegex] = {}
    timers: dict[tuple[TimerKind, str], GroupTimer] = {}  # by kind and member id
    _owners: dict[tuple[bytes, int], str] = {}

    type = CONSUMER
    listed_protocol_type = PROTOCOL_TYPE

    # -- the interface Group -------------------------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerState:
        if not self.members:
            return ConsumerState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerState.STABLE
        return ConsumerState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def generation(self) -> int:
        return self.group_epoch

    @property
    def is_empty(self) -> bool:
        return not self.members

    def commit_error(self, commit: Commit) -> ErrorCode:
        """Return the error for a commit; NONE for members in their current epoch.

        An earlier epoch is valid if the member has owned the partitions since then: it may not have received the new
        epoch.
        """
        if commit.generation_id < 0 and self.is_empty:
            return ErrorCode.NONE
        is_anonymous = commit.generation_id == _UNKNOWN_GENERATION_ID and commit.member_id == UNKNOWN_MEMBER_ID
        if commit.transactional and is_anonymous and commit.group_instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(commit.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not commit.transactional and member.classic is None and commit.version < _MEMBER_EPOCHS_SINCE:
            return ErrorCode.UNSUPPORTED_VERSION
        if commit.generation_id == member.member_epoch:
            return ErrorCode.NONE
        if commit.generation_id < member.member_epoch:
            epochs = [member.epoch_of(new.topic.topic_id, new.partition) for new in commit.offsets]
            if all(epoch is not None and epoch <= commit.generation_id for epoch in epochs):
                return ErrorCode.NONE
        return _stale(member)

    def offset_fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or UNKNOWN_MEMBER_ID)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_epoch == member.member_epoch else _stale(member)

    def offset_delete_error(self) -> ErrorCode:
        return ErrorCode.NONE

    def delete_error(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topic_names()

    def retention_start_ms(self, committed: CommittedOffset) -> int | None:
        return committed.commit_timestamp_ms

    def tombstones(self) -> list[KeyValue]:
        return group_tombstones(self.group_id, self.members, self.regexes)

    def cancel_timers(self) -> None:
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()

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

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def owner_of(self, topic_id: bytes, partition: int) -> str | None:
        return self._owners.get((topic_id, partition))

    def cancel_timer(self, kind: TimerKind, member_id: str) -> None:
        timer = self.timers.pop((kind, member_id), None)
        if timer is not None:
            timer.cancel()

    def _disown(self, member: ConsumerMember) -> None:
        for partition in _partitions(member.assigned, member.pending_revocation):
            del self._owners[partition]
        if member.instance_id is not None:
            del self.static_members[member.instance_id]

    # -- subscriptions -------------------------------------------------------------------------------------------------

    def subscribed_topic_names(self) -> set[str]:
        return {name for member in self.members.values() for name in self.topic_names_of(member)}

    def topic_names_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return subscribed topics and those that matched its regular expression."""
        resolved = self.regexes.get(member.subscribed_topic_regex)
        names = member.subscribed_topic_names
        return names if resolved is None else names | resolved.topics

    def subscribed_topics(self, cluster: Cluster) -> list[Topic]:
        names = sorted(self.subscribed_topic_names())
        return [topic for name in names if (topic := cluster.topics.get(name)) is not None]

    def topic_ids_of(self, member: ConsumerMember, cluster: Cluster) -> frozenset[bytes]:
        known = (cluster.topics.get(name) for name in self.topic_names_of(member))
        return frozenset(topic.topic_id for topic in known if topic is not None)

    def current_metadata_hash(self, cluster: Cluster) -> int:
        return metadata_hash(self.subscribed_topics(cluster), cluster.racks)

    def regex_subscribers(self) -> Counter[str]:
        return Counter(
            member.subscribed_topic_regex for member in self.members.values() if member.subscribed_topic_regex
        )

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members have the same subscription, without comparing matches of expressions."""
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
        """Return whether a member in UnreleasedPartitions can get all missing partitions now."""
        return member.state is MemberState.UNRELEASED_PARTITIONS and all(
            self.owner_of(topic, partition) in (None, member.member_id)
            for topic, partitions in self.target.get(member.member_id, {}).items()
            for partition in partitions
        )


def _stale(member: ConsumerMember) -> ErrorCode:
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def _partitions(*assignments: PartitionEpochs) -> Iterable[tuple[bytes, int]]:
    return ((topic, partition) for one in assignments for topic, epochs in one.items() for partition in epochs)


def without_epochs(assignment: PartitionEpochs) -> Mapping[bytes, list[int]]:
    return {topic: sorted(epochs) for topic, epochs in assignment.items()}
