"""A Streams group (KIP-1071): members, epochs, topology and target assignment. Follows Kafka's StreamsGroup.

The epochs (modern_group.py) define the group's state:

    Empty         no members
    NotReady      topics of the topology are missing or have wrong partition counts
    Assigning     assignment epoch < group epoch: a new target is due
    Reconciling   some member is not Stable in the assignment epoch
    Stable        all members are
"""

from collections.abc import Collection, Iterable, Mapping, Set
from enum import Enum
from typing import NamedTuple

from msgspec import field

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.group import STREAMS
from sluice.broker.coordinator.group.modern_group import ReconcilingGroup
from sluice.broker.coordinator.group.modern_records import of_group
from sluice.broker.coordinator.group.timer import GroupTimer
from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis import streams_group_heartbeat as api
from sluice.protocol.message import Message

from . import record_values as values
from .configured_topology import ConfiguredTopology
from .member import AssignedTasks, Endpoint, MemberState, StreamsMember, Task, Tasks, by_subtopology
from .topology import Topology, topology_of

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


class StreamsGroup(ReconcilingGroup[StreamsMember, Tasks]):
    validated_topology_epoch: int = -1  # of the topology whose topics were ready
    stored_description_epoch: int = -1  # kept for a Kafka broker with a topology plug-in
    failed_description_epoch: int = -1
    assignment_configs: Mapping[str, str] = {}  # at the last change of the group epoch
    topology: Topology | None = None
    configured: ConfiguredTopology | None = None  # None after loading
    task_offsets: dict[str, TaskOffsets] = field(default_factory=dict)
    initial_delay: GroupTimer | None = None  # while the first assignment waits for more members
    shutdown_requested_by: str | None = None
    endpoint_epoch: int = 0  # grows with each change of a member's endpoint or its tasks
    _active: dict[Task, str] = field(default_factory=dict)
    _standby: dict[Task, set[str]] = field(default_factory=dict)
    _warmup: dict[Task, set[str]] = field(default_factory=dict)

    RECORDS = values.RECORDS
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

    def subscriptions(self) -> set[frozenset[str]]:
        return set() if self.is_empty or self.topology is None else {frozenset(self.topology.subtopology_of)}

    def tombstones(self) -> list[KeyValue]:
        return [*self._tombstones(), of_group(values.TOPOLOGY, self.group_id)]

    def cancel_timers(self) -> None:
        super().cancel_timers()
        if self.initial_delay is not None:
            self.initial_delay.cancel()
            self.initial_delay = None

    # -- members -------------------------------------------------------------------------------------------------------

    def remove(self, member_id: str) -> None:
        super().remove(member_id)
        self.task_offsets.pop(member_id, None)
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

    def _own(self, member: StreamsMember) -> None:
        for tasks in (member.assigned, member.pending_revocation):
            self._active.update(dict.fromkeys(tasks.active, member.process_id))
            for owners, replicas in ((self._standby, tasks.standby), (self._warmup, tasks.warmup)):
                for task in replicas:
                    owners.setdefault(task, set()).add(member.process_id)

    def _disown(self, member: StreamsMember) -> None:
        super()._disown(member)
        for tasks in (member.assigned, member.pending_revocation):
            for task in tasks.active:
                if self._active.get(task) == member.process_id:
                    del self._active[task]
            for owners, replicas in ((self._standby, tasks.standby), (self._warmup, tasks.warmup)):
                for task in replicas:
                    owners.get(task, set()).discard(member.process_id)
                    if not owners.get(task):
                        owners.pop(task, None)

    # -- records -------------------------------------------------------------------------------------------------------

    def group_value(self) -> Message:
        return values.StreamsGroupMetadataValue(
            epoch=self.group_epoch,
            metadata_hash=self.metadata_hash,
            validated_topology_epoch=self.validated_topology_epoch,
            last_assignment_configs=_pairs(self.assignment_configs),
            stored_description_topology_epoch=self.stored_description_epoch,
            failed_description_topology_epoch=self.failed_description_epoch,
        )

    def member_value(self, member: StreamsMember) -> Message:
        endpoint = member.user_endpoint
        return values.StreamsGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id,
            user_endpoint=None if endpoint is None else api.Endpoint(host=endpoint.host, port=endpoint.port),
            client_tags=_pairs(member.client_tags),
        )

    def target_value(self, target: Tasks) -> Message:
        active, standby, warmup = map(task_ids, target)
        return values.StreamsGroupTargetAssignmentMemberValue(
            active_tasks=active, standby_tasks=standby, warmup_tasks=warmup
        )

    def current_value(self, member: StreamsMember) -> Message:
        assigned, pending = member.assigned, member.pending_revocation
        return values.StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            active_tasks=_with_epochs(assigned.active),
            standby_tasks=_without_epochs(assigned.standby),
            warmup_tasks=_without_epochs(assigned.warmup),
            active_tasks_pending_revocation=_with_epochs(pending.active),
            standby_tasks_pending_revocation=_without_epochs(pending.standby),
            warmup_tasks_pending_revocation=_without_epochs(pending.warmup),
        )

    # -- loading -------------------------------------------------------------------------------------------------------

    def replay(self, number: int, part: str, value: Message) -> None:
        if isinstance(value, values.StreamsGroupMetadataValue):
            self.group_epoch, self.metadata_hash = value.epoch, value.metadata_hash
            self.validated_topology_epoch = value.validated_topology_epoch
            self.stored_description_epoch = value.stored_description_topology_epoch
            self.failed_description_epoch = value.failed_description_topology_epoch
            self.assignment_configs = {one.key: one.value for one in value.last_assignment_configs or ()}
        elif isinstance(value, values.StreamsGroupTopologyValue):
            self.topology = topology_of(value)
        else:
            super().replay(number, part, value)

    def target_of(self, value: Message) -> Tasks:
        assert isinstance(value, values.StreamsGroupTargetAssignmentMemberValue)
        return Tasks(_tasks(value.active_tasks), _tasks(value.standby_tasks), _tasks(value.warmup_tasks))

    def replay_member(self, member_id: str, stored: Message, current: Message | None) -> None:
        assert isinstance(stored, values.StreamsGroupMemberMetadataValue)
        endpoint = stored.user_endpoint
        member = StreamsMember(
            member_id,
            instance_id=stored.instance_id,
            rack_id=stored.rack_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            rebalance_timeout_ms=stored.rebalance_timeout_ms,
            topology_epoch=stored.topology_epoch,
            process_id=stored.process_id,
            user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
            client_tags={tag.key: tag.value for tag in stored.client_tags},
        )
        if current is not None:
            assert isinstance(current, values.StreamsGroupCurrentMemberAssignmentValue)
            epoch = current.member_epoch
            member = member._replace(
                member_epoch=epoch,
                previous_member_epoch=current.previous_member_epoch,
                state=MemberState.of_record(current.state),
                assigned=AssignedTasks(
                    _epochs(current.active_tasks, epoch), _tasks(current.standby_tasks), _tasks(current.warmup_tasks)
                ),
                pending_revocation=AssignedTasks(
                    _epochs(current.active_tasks_pending_revocation, epoch),
                    _tasks(current.standby_tasks_pending_revocation),
                    _tasks(current.warmup_tasks_pending_revocation),
                ),
            )
        self.put(member)


def topology_record(group_id: str, topology: Topology) -> KeyValue:
    value = values.StreamsGroupTopologyValue(epoch=topology.epoch, subtopologies=list(topology.subtopologies.values()))
    return of_group(values.TOPOLOGY, group_id, value)


def task_ids(tasks: Collection[Task]) -> list[api.TaskIds]:
    return [api.TaskIds(subtopology_id=name, partitions=those) for name, those in by_subtopology(tasks).items()]


def _pairs(items: Mapping[str, str]) -> list[api.KeyValue]:
    return [api.KeyValue(key=key, value=value) for key, value in sorted(items.items())]


def _with_epochs(active: Mapping[Task, int]) -> list[values.TaskIdsWithEpochs]:
    return [
        values.TaskIdsWithEpochs(
            subtopology_id=name, partitions=those, assignment_epochs=[active[name, index] for index in those]
        )
        for name, those in by_subtopology(active).items()
    ]


def _without_epochs(tasks: Collection[Task]) -> list[values.TaskIdsWithEpochs]:
    return [
        values.TaskIdsWithEpochs(subtopology_id=name, partitions=those) for name, those in by_subtopology(tasks).items()
    ]


def _tasks(stored: Iterable[api.TaskIds | values.TaskIdsWithEpochs]) -> frozenset[Task]:
    return frozenset((one.subtopology_id, partition) for one in stored for partition in one.partitions)


def _epochs(stored: Iterable[values.TaskIdsWithEpochs], member_epoch: int) -> dict[Task, int]:
    # Brokers before 4.3 did not write the epochs.
    active: dict[Task, int] = {}
    for one in stored:
        epochs = one.assignment_epochs
        if epochs is None or len(epochs) != len(one.partitions):
            epochs = [member_epoch] * len(one.partitions)
        active.update(((one.subtopology_id, index), epoch) for index, epoch in zip(one.partitions, epochs, strict=True))
    return active
