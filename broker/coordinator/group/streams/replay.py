"""The Streams groups stored in a partition of __consumer_offsets.

Follows the `replay` methods of Kafka's GroupMetadataManager for the StreamsGroup* records.
"""

from collections.abc import Iterable

from sluice.broker.coordinator.common.loader import RecordType
from sluice.protocol.message import Message

from .group import StreamsGroup
from .member import Endpoint, MemberState, StreamsMember
from .record_keys import (
    CURRENT_ASSIGNMENT,
    GROUP_METADATA,
    MEMBER_METADATA,
    TARGET_MEMBER,
    TARGET_METADATA,
    TOPOLOGY,
    StreamsGroupKey,
    StreamsMemberKey,
)
from .record_values import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyValue,
    TaskIds,
    TaskIdsWithEpochs,
)
from .tasks import AssignedTasks, Task, Tasks
from .topology import topology_of

_V0 = range(1)
STREAMS_RECORD_TYPES = {
    GROUP_METADATA: RecordType(StreamsGroupKey, StreamsGroupMetadataValue, _V0),
    MEMBER_METADATA: RecordType(StreamsMemberKey, StreamsGroupMemberMetadataValue, _V0),
    TARGET_METADATA: RecordType(StreamsGroupKey, StreamsGroupTargetAssignmentMetadataValue, _V0),
    TARGET_MEMBER: RecordType(StreamsMemberKey, StreamsGroupTargetAssignmentMemberValue, _V0),
    CURRENT_ASSIGNMENT: RecordType(StreamsMemberKey, StreamsGroupCurrentMemberAssignmentValue, _V0),
    TOPOLOGY: RecordType(StreamsGroupKey, StreamsGroupTopologyValue, _V0),
}


class StreamsGroupBuilder:
    __slots__ = ("_current", "_groups", "_metadata")

    def __init__(self) -> None:
        self._groups: dict[str, StreamsGroup] = {}
        self._metadata: dict[tuple[str, str], StreamsGroupMemberMetadataValue] = {}
        self._current: dict[tuple[str, str], StreamsGroupCurrentMemberAssignmentValue] = {}

    def add(self, key: Message, value: Message) -> None:
        assert isinstance(key, StreamsGroupKey | StreamsMemberKey)
        group = self._groups.get(key.group_id)
        if group is None:
            group = self._groups[key.group_id] = StreamsGroup(key.group_id)
        if isinstance(key, StreamsGroupKey):
            _add_group_record(group, value)
        elif isinstance(value, StreamsGroupTargetAssignmentMemberValue):
            group.target[key.member_id] = Tasks(
                _tasks(value.active_tasks), _tasks(value.standby_tasks), _tasks(value.warmup_tasks)
            )
        elif isinstance(value, StreamsGroupMemberMetadataValue):
            self._metadata[key.group_id, key.member_id] = value
        else:
            assert isinstance(value, StreamsGroupCurrentMemberAssignmentValue)
            self._current[key.group_id, key.member_id] = value

    def groups(self) -> dict[str, StreamsGroup]:
        for where in sorted(self._metadata):
            group_id, member_id = where
            member = _member(member_id, self._metadata[where])
            self._groups[group_id].put(_with_current(member, self._current.get(where)))
        return self._groups


def _add_group_record(group: StreamsGroup, value: Message) -> None:
    if isinstance(value, StreamsGroupMetadataValue):
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
        group.validated_topology_epoch = value.validated_topology_epoch
        group.stored_description_epoch = value.stored_description_topology_epoch
        group.failed_description_epoch = value.failed_description_topology_epoch
        group.assignment_configs = {one.key: one.value for one in value.last_assignment_configs or ()}
    elif isinstance(value, StreamsGroupTargetAssignmentMetadataValue):
        group.assignment_epoch, group.assignment_timestamp_ms = value.assignment_epoch, value.assignment_timestamp
    else:
        assert isinstance(value, StreamsGroupTopologyValue)
        group.topology = topology_of(value)


def _member(member_id: str, stored: StreamsGroupMemberMetadataValue) -> StreamsMember:
    endpoint = stored.user_endpoint
    return StreamsMember(
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


def _with_current(member: StreamsMember, current: StreamsGroupCurrentMemberAssignmentValue | None) -> StreamsMember:
    # Without a current assignment, the member is about to join.
    if current is None:
        return member
    epoch = current.member_epoch
    return member._replace(
        member_epoch=epoch,
        previous_member_epoch=current.previous_member_epoch,
        state=MemberState.of_record(current.state),
        assigned=AssignedTasks(
            _with_epochs(current.active_tasks, epoch), _tasks(current.standby_tasks), _tasks(current.warmup_tasks)
        ),
        pending_revocation=AssignedTasks(
            _with_epochs(current.active_tasks_pending_revocation, epoch),
            _tasks(current.standby_tasks_pending_revocation),
            _tasks(current.warmup_tasks_pending_revocation),
        ),
    )


def _tasks(stored: Iterable[TaskIds | TaskIdsWithEpochs]) -> frozenset[Task]:
    return frozenset((one.subtopology_id, partition) for one in stored for partition in one.partitions)


def _with_epochs(stored: Iterable[TaskIdsWithEpochs], member_epoch: int) -> dict[Task, int]:
    # Brokers before 4.3 did not write the epochs.
    active: dict[Task, int] = {}
    for one in stored:
        epochs = one.assignment_epochs
        if epochs is None or len(epochs) != len(one.partitions):
            epochs = [member_epoch] * len(one.partitions)
        active.update(((one.subtopology_id, index), epoch) for index, epoch in zip(one.partitions, epochs, strict=True))
    return active
