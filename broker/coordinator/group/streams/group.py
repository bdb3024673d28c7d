"""A Streams group (KIP-1071): members, epochs, topology and target assignment. Follows Kafka's StreamsGroup.

Theory of operation. Members communicate by heartbeats, which are answered immediately. The epochs are those of consumer
groups: the group epoch grows with each change that affects assignment, the assignment epoch is the group epoch of the
target, and the member epoch is that of the target that a member has or is moving to. They define the group's state:

    Empty         no members
    NotReady      topics of the topology are missing or have wrong partition counts
    Assigning     assignment epoch < group epoch: a new target is due
    Reconciling   some member is not Stable in the assignment epoch
    Stable        all members are
"""

from collections.abc import Mapping, Set
from enum import Enum
from typing import NamedTuple

import msgspec

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.group import STREAMS, UNKNOWN_MEMBER_ID, Commit
from sluice.broker.coordinator.group.offsets import CommittedOffset
from sluice.broker.coordinator.group.timer import GroupTimer
from sluice.protocol.errors import ErrorCode

from .configured_topology import ConfiguredTopology
from .member import StreamsMember
from .record_keys import group_tombstones
from .tasks import AssignedTasks, Task, Tasks
from .topology import Topology

# The first OffsetCommit version with member epochs.
_MEMBER_EPOCHS_SINCE = 9
_UNKNOWN_GENERATION_ID = -1
_NO_PROCESSES: Set[str] = frozenset()


class StreamsState(Enum):
    """A state, with its name in responses."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class TimerKind(Enum):
    """The deadlines of a member."""

    SESSION = "heartbeat"
    REVOKE = "revoke tasks"


class TaskOffsets(NamedTuple):
    """Changelog offsets that a member reported, as sums by task. They are not stored."""

    offsets: Mapping[Task, int] = {}
    end_offsets: Mapping[Task, int] = {}


class StreamsGroup(msgspec.Struct, eq=False):
    """A Streams group. StreamsRebalance writes records and sets timers."""

    group_id: str
    group_epoch: int = 1
    assignment_epoch: int = 1
    assignment_timestamp_ms: int = 0  # wall clock; 0: unknown
    metadata_hash: int = 0  # at the last change of the group epoch
    validated_topology_epoch: int = -1  # of the topology whose topics were ready
    stored_description_epoch: int = -1  # kept for a Kafka broker with a topology plug-in
    failed_description_epoch: int = -1
    assignment_configs: Mapping[str, str] = {}  # at the last change of the group epoch
    topology: Topology | None = None
    configured: ConfiguredTopology | None = None  # None after loading
    members: dict[str, StreamsMember] = {}  # in the order they joined
    static_members: dict[str, str] = {}  # instance id -> member id
    target: dict[str, Tasks] = {}  # by member id
    task_offsets: dict[str, TaskOffsets] = {}  # by member id
    timers: dict[tuple[TimerKind, str], GroupTimer] = {}  # by kind and member id
    initial_delay: GroupTimer | None = None  # while the first assignment waits for more members
    shutdown_requested_by: str | None = None  # a member id
    endpoint_epoch: int = 0  # grows with each change of a member's endpoint or its tasks
    _active: dict[Task, str] = {}  # process ids
    _standby: dict[Task, set[str]] = {}
    _warmup: dict[Task, set[str]] = {}

    type = STREAMS
    listed_protocol_type = STREAMS

    # -- the interface Group -------------------------------------------------------------------------------------------

    @property
    def state(self) -> StreamsState:
        if not self.members:
            return StreamsState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsState.NOT_READY
        if self.group_epoch > self.assignment_epoch:
            return StreamsState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsState.STABLE
        return StreamsState.RECONCILING

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

        An earlier epoch is valid if the member has had the active tasks since then: it may not have received the new
        epoch. Without a member, commits are valid in an empty group and in transactions.
        """
        if commit.generation_id < 0 and self.is_empty:
            return ErrorCode.NONE
        is_anonymous = commit.generation_id == _UNKNOWN_GENERATION_ID and commit.member_id == UNKNOWN_MEMBER_ID
        if commit.transactional and is_anonymous and commit.group_instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(commit.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not commit.transactional and commit.version < _MEMBER_EPOCHS_SINCE:
            return ErrorCode.UNSUPPORTED_VERSION
        if commit.generation_id == member.member_epoch:
            return ErrorCode.NONE
        epochs = [self._task_epoch(member, new.topic.name, new.partition) for new in commit.offsets]
        has_tasks = all(epoch is not None and epoch <= commit.generation_id for epoch in epochs)
        if commit.generation_id > member.member_epoch or not has_tasks:
            return ErrorCode.STALE_MEMBER_EPOCH
        return ErrorCode.NONE

    def _task_epoch(self, member: StreamsMember, topic: str, partition: int) -> int | None:
        if self.topology is None or topic not in self.topology.subtopology_of:
            return None
        task = self.topology.subtopology_of[topic], partition
        return member.assigned.active.get(task, member.pending_revocation.active.get(task))

    def offset_fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or UNKNOWN_MEMBER_ID)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_epoch == member.member_epoch else ErrorCode.STALE_MEMBER_EPOCH

    def offset_delete_error(self) -> ErrorCode:
        return ErrorCode.NONE

    def delete_error(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    def is_subscribed_to(self, topic: str) -> bool:
        return not self.is_empty and self.topology is not None and topic in self.topology.subtopology_of

    def retention_start_ms(self, committed: CommittedOffset) -> int | None:
        return committed.commit_timestamp_ms

    def tombstones(self) -> list[KeyValue]:
        return group_tombstones(self.group_id, self.members)

    def cancel_timers(self) -> None:
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()
        if self.initial_delay is not None:
            self.initial_delay.cancel()
            self.initial_delay = None

    # -- members -------------------------------------------------------------------------------------------------------

    def put(self, member: StreamsMember) -> None:
        """Add or update a member."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._disown(before)
        self.members[member.member_id] = member
        for tasks in (member.assigned, member.pending_revocation):
            self._own(tasks, member.process_id)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        self.target.pop(member_id, None)
        self.task_offsets.pop(member_id, None)
        self._disown(member)
        for kind in TimerKind:
            self.cancel_timer(kind, member_id)
        if not self.members:
            self.shutdown_requested_by = None

    def static_member(self, instance_id: str) -> StreamsMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def offsets_of(self, member_id: str) -> TaskOffsets:
        return self.task_offsets.get(member_id, TaskOffsets())

    def cancel_timer(self, kind: TimerKind, member_id: str) -> None:
        timer = self.timers.pop((kind, member_id), None)
        if timer is not None:
            timer.cancel()

    # -- processes of tasks --------------------------------------------------------------------------------------------

    def active_process(self, task: Task) -> str | None:
        """Return the process that owns an active task until its member confirms the revocation, or None."""
        return self._active.get(task)

    def standby_processes(self, task: Task) -> Set[str]:
        return self._standby.get(task, _NO_PROCESSES)

    def warmup_processes(self, task: Task) -> Set[str]:
        return self._warmup.get(task, _NO_PROCESSES)

    def _own(self, tasks: AssignedTasks, process_id: str) -> None:
        self._active.update(dict.fromkeys(tasks.active, process_id))
        for owners, replicas in ((self._standby, tasks.standby), (self._warmup, tasks.warmup)):
            for task in replicas:
                owners.setdefault(task, set()).add(process_id)

    def _disown(self, member: StreamsMember) -> None:
        for tasks in (member.assigned, member.pending_revocation):
            for task in tasks.active:
                if self._active.get(task) == member.process_id:
                    del self._active[task]
            for owners, replicas in ((self._standby, tasks.standby), (self._warmup, tasks.warmup)):
                for task in replicas:
                    owners.get(task, set()).discard(member.process_id)
                    if not owners.get(task):
                        owners.pop(task, None)
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
