"""Groups with member epochs: consumer (KIP-848), share (KIP-932) and Streams groups (KIP-1071).

Follows Kafka's ModernGroup. Members communicate by heartbeats, which are answered immediately. The group epoch grows
with each change that affects the assignment; the assignment epoch is the group epoch of the target; the member epoch is
that of the target that a member has or is moving to. If the records of a heartbeat cannot be written, the group is
restored from the log.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.metadata.topic import Topic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .group import UNKNOWN_MEMBER_ID, Commit, HeartbeatError
from .metadata_hash import metadata_hash
from .modern_records import RecordNumbers, TargetMetadataValue, of_group, of_part
from .offsets import CommittedOffset
from .timer import GroupTimer

JOIN_EPOCH = 0  # in a heartbeat: join or rejoin
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2  # leave temporarily, keeping a static member's assignment

# The first OffsetCommit version with member epochs.
_MEMBER_EPOCHS_SINCE = 9
_UNKNOWN_GENERATION_ID = -1
_BLANK = "".join(map(chr, range(0x21)))  # what Java's `String.trim` removes


class TimerKind(Enum):
    """The deadlines of a member. JOIN and SYNC are for members with the classic protocol."""

    SESSION = "heartbeat"
    REVOKE = "revoke partitions or tasks"
    JOIN = "rejoin"
    SYNC = "sync"


class _Member(Protocol):
    @property
    def member_id(self) -> str: ...
    @property
    def member_epoch(self) -> int: ...


class _ReconcilingMember(_Member, Protocol):
    @property
    def instance_id(self) -> str | None: ...
    def is_reconciled_to(self, target_epoch: int) -> bool: ...


M = TypeVar("M", bound=_Member)
R = TypeVar("R", bound=_ReconcilingMember)
T = TypeVar("T")  # the target of a member


class MemberSlot(NamedTuple, Generic[M]):
    member: M
    replaced: M | None = None  # the previous instance of a static member


class ModernGroup(msgspec.Struct, Generic[M, T], eq=False):
    group_id: str
    group_epoch: int = 1
    assignment_epoch: int = 1
    assignment_timestamp_ms: int = 0  # wall clock; 0: the next assignment may be computed at once
    metadata_hash: int = 0  # at the last change of the group epoch
    members: dict[str, M] = {}  # in the order they joined
    target: dict[str, T] = {}
    timers: dict[tuple[TimerKind, str], GroupTimer] = {}

    RECORDS: ClassVar[RecordNumbers]

    @property
    def generation(self) -> int:
        return self.group_epoch

    @property
    def is_empty(self) -> bool:
        return not self.members

    def delete_error(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    def is_assignment_due(self, now_ms: int, interval_ms: int) -> bool:
        return not self.assignment_timestamp_ms or now_ms >= self.assignment_timestamp_ms + interval_ms

    def remove(self, member_id: str) -> None:
        self._disown(self.members.pop(member_id))
        self.target.pop(member_id, None)
        for kind in TimerKind:
            self.cancel_timer(kind, member_id)

    def _disown(self, member: M) -> None:
        """Forget what a member owns; members of share groups own nothing alone."""

    def set_timer(self, kind: TimerKind, member_id: str, timer: GroupTimer) -> None:
        self.cancel_timer(kind, member_id)
        self.timers[kind, member_id] = timer

    def cancel_timer(self, kind: TimerKind, member_id: str) -> None:
        timer = self.timers.pop((kind, member_id), None)
        if timer is not None:
            timer.cancel()

    def cancel_timers(self) -> None:
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()

    # -- subscriptions -------------------------------------------------------------------------------------------------

    def subscriptions(self) -> set[frozenset[str]]:
        """Return the distinct sets of topic names that members subscribe to."""
        raise NotImplementedError

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in names for names in self.subscriptions())

    def subscribed_topics(self, cluster: Cluster) -> list[Topic]:
        names = set().union(*(existing_names(cluster.topics, one) for one in self.subscriptions()))
        return [cluster.topics[name] for name in sorted(names)]

    def current_metadata_hash(self, cluster: Cluster) -> int:
        return metadata_hash(self.subscribed_topics(cluster), cluster.racks)

    # -- target --------------------------------------------------------------------------------------------------------

    def set_target(self, assigned: Mapping[str, T], nothing: T, now_ms: int) -> list[KeyValue]:
        """Set the targets of all members, `nothing` if missing; return the records of those that changed."""
        records = []
        for member_id in self.members:
            target = assigned.get(member_id, nothing)
            if target != self.target.get(member_id):
                records.append(self.target_record(member_id, target))
            self.target[member_id] = target
        return [*records, self.set_assignment_epoch(now_ms)]

    def set_assignment_epoch(self, now_ms: int) -> KeyValue:
        """Make the target that of the group epoch; with time 0, the next assignment is due at once."""
        self.assignment_epoch, self.assignment_timestamp_ms = self.group_epoch, now_ms
        value = TargetMetadataValue(assignment_epoch=self.assignment_epoch, assignment_timestamp=now_ms)
        return of_group(self.RECORDS.target_epoch, self.group_id, value)

    # -- records -------------------------------------------------------------------------------------------------------

    def group_value(self) -> Message:
        raise NotImplementedError

    def member_value(self, member: M) -> Message:
        raise NotImplementedError

    def target_value(self, target: T) -> Message:
        raise NotImplementedError

    def current_value(self, member: M) -> Message:
        """Return the current assignment of a member."""
        raise NotImplementedError

    def group_record(self) -> KeyValue:
        return of_group(self.RECORDS.group, self.group_id, self.group_value())

    def member_record(self, member: M) -> KeyValue:
        return of_part(self.RECORDS.member, self.group_id, member.member_id, self.member_value(member))

    def target_record(self, member_id: str, target: T) -> KeyValue:
        return of_part(self.RECORDS.target, self.group_id, member_id, self.target_value(target))

    def current_record(self, member: M) -> KeyValue:
        return of_part(self.RECORDS.current, self.group_id, member.member_id, self.current_value(member))

    def member_tombstones(self, member_id: str) -> list[KeyValue]:
        numbers = self.RECORDS.current, self.RECORDS.target, self.RECORDS.member
        return [of_part(number, self.group_id, member_id) for number in numbers]

    def _tombstones(self, *others: KeyValue) -> list[KeyValue]:
        """Return the tombstones of a group, with `others` in front of the last one."""
        numbers = self.RECORDS
        return [
            *(
                of_part(number, self.group_id, one)
                for number in (numbers.current, numbers.target)
                for one in self.members
            ),
            of_group(numbers.target_epoch, self.group_id),
            *(of_part(numbers.member, self.group_id, one) for one in self.members),
            *others,
            of_group(numbers.group, self.group_id),
        ]

    # -- loading -------------------------------------------------------------------------------------------------------

    def replay(self, number: int, part: str, value: Message) -> None:
        """Apply a record, except of a member: its metadata and its current assignment follow when all are read."""
        if isinstance(value, TargetMetadataValue):
            self.assignment_epoch, self.assignment_timestamp_ms = value.assignment_epoch, value.assignment_timestamp
        else:
            assert number == self.RECORDS.target, number
            self.target[part] = self.target_of(value)

    def target_of(self, value: Message) -> T:
        raise NotImplementedError


class ReconcilingGroup(ModernGroup[R, T]):
    """A group whose members give up partitions or tasks before others get them, and commit offsets."""

    static_members: dict[str, str] = msgspec.field(default_factory=dict)

    def epoch_of(self, member: R, topic: Topic, partition: int) -> int | None:
        raise NotImplementedError

    def is_classic(self, member: R) -> bool:
        return False

    def is_reconciled(self) -> bool:
        return all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())

    def put(self, member: R) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._disown(before)
        self.members[member.member_id] = member
        self._own(member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def _own(self, member: R) -> None:
        raise NotImplementedError

    def _disown(self, member: R) -> None:
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)

    def replace_static(self, old: R, new: R, nothing: T) -> list[KeyValue]:
        target = self.target.get(old.member_id, nothing)
        self.remove(old.member_id)
        self.put(new)
        self.target[new.member_id] = target
        return [
            *self.member_tombstones(old.member_id),
            self.member_record(new),
            self.target_record(new.member_id, target),
            self.current_record(new),
        ]

    def commit_error(self, commit: Commit) -> ErrorCode:
        """Return NONE for members in their current epoch, and for an earlier one if they own the partitions since then.

        Such a member may not have received the new epoch. Without a member, commits are valid in an empty group and in
        transactions.
        """
        if commit.generation_id < 0 and self.is_empty:
            return ErrorCode.NONE
        is_anonymous = commit.generation_id == _UNKNOWN_GENERATION_ID and commit.member_id == UNKNOWN_MEMBER_ID
        if commit.transactional and is_anonymous and commit.group_instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(commit.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not commit.transactional and commit.version < _MEMBER_EPOCHS_SINCE and not self.is_classic(member):
            return ErrorCode.UNSUPPORTED_VERSION
        if commit.generation_id == member.member_epoch:
            return ErrorCode.NONE
        if commit.generation_id < member.member_epoch:
            epochs = [self.epoch_of(member, new.topic, new.partition) for new in commit.offsets]
            if all(epoch is not None and epoch <= commit.generation_id for epoch in epochs):
                return ErrorCode.NONE
        return self._stale_error(member)

    def offset_fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or UNKNOWN_MEMBER_ID)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_epoch == member.member_epoch else self._stale_error(member)

    def _stale_error(self, member: R) -> ErrorCode:
        return ErrorCode.ILLEGAL_GENERATION if self.is_classic(member) else ErrorCode.STALE_MEMBER_EPOCH

    def offset_delete_error(self) -> ErrorCode:
        return ErrorCode.NONE

    def retention_start_ms(self, committed: CommittedOffset) -> int | None:
        return committed.commit_timestamp_ms

    def static_member(self, instance_id: str | None) -> R | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def find_member(self, member_id: str, instance_id: str | None) -> R | HeartbeatError:
        if instance_id is None:
            return self.members.get(member_id) or unknown_member(self.group_id, member_id)
        member = self.static_member(instance_id)
        if member is None:
            return HeartbeatError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.member_id != member_id:
            fenced = (
                f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}."
            )
            return HeartbeatError(ErrorCode.FENCED_INSTANCE_ID, fenced)
        return member


# -- subscriptions -----------------------------------------------------------------------------------------------------


def existing_names(topics: Mapping[str, Topic], names: frozenset[str]) -> Collection[str]:
    """Return the names of existing topics, by iterating over the smaller set."""
    return names.intersection(topics) if len(topics) < len(names) else [name for name in names if name in topics]


def shared_names(names: frozenset[str], subscriptions: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return the equal set of another member, if there is one, which makes comparisons fast."""
    return next((one for one in subscriptions if one == names), names)


# -- errors of heartbeats ----------------------------------------------------------------------------------------------


def blank_field(**fields: str | None) -> str | None:
    """Return the first field, by its name in the request, that is set but blank."""
    return next((name for name, text in fields.items() if text is not None and not text.strip(_BLANK)), None)


def first_problem(problems: Iterable[tuple[bool, str]]) -> HeartbeatError | None:
    problem = next((message for is_wrong, message in problems if is_wrong), None)
    return None if problem is None else HeartbeatError(ErrorCode.INVALID_REQUEST, problem)


def unknown_member(group_id: str, member_id: str) -> HeartbeatError:
    return HeartbeatError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")


def unreleased_instance(member_id: str, instance_id: str | None, owner: str) -> HeartbeatError:
    message = (
        f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is "
        f"owned by {owner} member."
    )
    return HeartbeatError(ErrorCode.UNRELEASED_INSTANCE_ID, message)


def fenced_epoch(group_type: str, member: _Member, epoch: int, detail: str = "") -> HeartbeatError:
    compared = "greater" if epoch > member.member_epoch else "smaller"
    message = (
        f"The {group_type} group member has a {compared} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}){detail}. The member must abandon all its partitions and rejoin."
    )
    return HeartbeatError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def wrong_group(group_type: str, group_id: str, group: object, *, joins: bool = True) -> HeartbeatError:
    if group is not None:
        message = f"Group {group_id} is not a {group_type} group."
    elif joins:
        message = f"{group_type.capitalize()} group {group_id} not found."
    else:
        message = f"Group {group_id} not found."
    return HeartbeatError(ErrorCode.GROUP_ID_NOT_FOUND, message)
