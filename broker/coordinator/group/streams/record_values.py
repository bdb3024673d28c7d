"""The values of Streams groups' records in __consumer_offsets, as Kafka 4.4 writes them; see modern_records.py.

Their structs are those of StreamsGroupHeartbeat.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.broker.coordinator.common.loader import RecordType
from sluice.broker.coordinator.group.modern_records import GroupKey, RecordNumbers
from sluice.protocol.apis.streams_group_heartbeat import Endpoint, KeyValue, Subtopology, TaskIds
from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int8, int32, int64, string

RECORDS = RecordNumbers(group=17, member=19, target_epoch=20, target=21, current=22)
TOPOLOGY = 23


class StreamsGroupMetadataValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    epoch: int32 = 0
    metadata_hash: int64 = 0
    validated_topology_epoch: Annotated[int32, V("0+", tag=0)] = -1
    last_assignment_configs: Annotated[list[KeyValue] | None, V("0+", null="0+", tag=1)] = None
    stored_description_topology_epoch: Annotated[int32, V("0+", tag=2)] = -1
    failed_description_topology_epoch: Annotated[int32, V("0+", tag=3)] = -1


class StreamsGroupMemberMetadataValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    instance_id: Annotated[string | None, V("0+", null="0+")] = ""
    rack_id: Annotated[string | None, V("0+", null="0+")] = ""
    client_id: string = ""
    client_host: string = ""
    rebalance_timeout_ms: int32 = -1
    topology_epoch: int32 = 0
    process_id: string = ""
    user_endpoint: Annotated[Endpoint | None, V("0+", null="0+")] = None
    client_tags: list[KeyValue] = []


class StreamsGroupTargetAssignmentMemberValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []


class TaskIdsWithEpochs(Message):
    subtopology_id: string = ""
    partitions: list[int32] = []
    assignment_epochs: Annotated[list[int32] | None, V("0+", null="0+", tag=0)] = None


class StreamsGroupCurrentMemberAssignmentValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    member_epoch: int32 = 0
    previous_member_epoch: int32 = 0
    state: int8 = 0
    active_tasks: list[TaskIdsWithEpochs] = []
    standby_tasks: list[TaskIdsWithEpochs] = []
    warmup_tasks: list[TaskIdsWithEpochs] = []
    active_tasks_pending_revocation: list[TaskIdsWithEpochs] = []
    standby_tasks_pending_revocation: list[TaskIdsWithEpochs] = []
    warmup_tasks_pending_revocation: list[TaskIdsWithEpochs] = []


class StreamsGroupTopologyValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    epoch: int32 = 0
    subtopologies: list[Subtopology] = []


RECORD_TYPES = {
    **RECORDS.types(
        StreamsGroupMetadataValue,
        StreamsGroupMemberMetadataValue,
        StreamsGroupTargetAssignmentMemberValue,
        StreamsGroupCurrentMemberAssignmentValue,
    ),
    TOPOLOGY: RecordType(GroupKey, StreamsGroupTopologyValue, range(1)),
}
