"""A Streams group (KIP-1071): members, epochs, topology and target assignment. Follows Kafka's StreamsGroup.

The epochs (modern_group.py) define the group's state:

    Empty         no members
    NotReady      topics of the topology are missing or have wrong partition counts
    Assigning     assignment epoch < group epoch: a new target is due
    Reconciling   some member is not Stable in the assignment epoch
    Stable        all members are
"""

from collections.abc import Mapping, Set
from enum import Enum
from typing import NamedTuple

from msgspec import field

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.group import STREAMS
from sluice.broker.coordinator.group.modern_group import ReconcilingGroup, TimerKind
from sluice.broker.coordinator.group.timer import GroupTimer
from sluice.broker.metadata.topic import Topic

from .configured_topology import ConfiguredTopology
from .member import StreamsMember
from .record_keys import group_tombstones
from .tasks import AssignedTasks, Task, Tasks
from .topology import Topology

_NO_PROCESSES: Set[str] = frozenset()


class StreamsState(Enum):
    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class TaskOffsets(NamedTuple):
    """Sums of changelog offsets by task, as a member reported them. They are not stored."""

    offsets: Mapping[Task, int] = {}
    end_offsets: Mapping[Task, int] = {}


class StreamsGroup(ReconcilingGroup[StreamsMember]):
    validated_topology_epoch: int = -1  # of the topology whose topics were ready
    stored_description_epoch: int = -1  # kept for a Kafka broker with a topology plug-in
    failed_description_epoch: int = -1
    assignment_configs: Mapping[str, str] = {}  # at the last change of the group epoch
    topology: Topology | None = None
    configured: ConfiguredTopology | None = None  # None after loading
    target: dict[str, Tasks] = field(default_factory=dict)
    task_offsets: dict[str, TaskOffsets] = field(default_factory=dict)
    initial_delay: GroupTimer | None = None  # while the first assignment waits for more members
    shutdown_requested_by: str | None = None
    endpoint_epoch: int = 0  # grows with each change of a member's endpoint or its tasks
    _active: dict[Task, str] = field(default_factory=dict)
    _standby: dict[Task, set[str]] = field(default_factory=dict)
    _warmup: dict[Task, set[str]] = field(default_factory=dict)

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
        return StreamsState.STABLE if self.is_reconciled() else StreamsState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    def epoch_of(self, member: StreamsMember, topic: Topic, partition: int) -> int | None:
        if self.topology is None or topic.name not in self.topology.subtopology_of:
            return None
        task = self.topology.subtopology_of[topic.name], partition
        return member.assigned.active.get(task, member.pending_revocation.active.get(task))

    def is_subscribed_to(self, topic: str) -> bool:
        return not self.is_empty and self.topology is not None and topic in self.topology.subtopology_of

    def tombstones(self) -> list[KeyValue]:
        return group_tombstones(self.group_id, self.members)

    def cancel_timers(self) -> None:
        super().cancel_timers()
        if self.initial_delay is not None:
            self.initial_delay.cancel()
            self.initial_delay = None

    # -- members -------------------------------------------------------------------------------------------------------

    def put(self, member: StreamsMember) -> None:
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

    def offsets_of(self, member_id: str) -> TaskOffsets:
        return self.task_offsets.get(member_id, TaskOffsets())

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
