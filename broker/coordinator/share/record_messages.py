"""The records in __share_group_state, as Kafka 4.4 writes them: record type 0 is a snapshot, 1 an update."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, int8, int16, int32, int64, string, uuid


class SharePartitionKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""
    topic_id: uuid = ZERO_UUID
    partition: int32 = 0


class StateBatch(Message):
    """Offsets with the same state: 0 available, 2 acknowledged, 4 archived."""

    first_offset: int64 = 0
    last_offset: int64 = 0
    delivery_state: int8 = 0
    delivery_count: int16 = 0


class ShareSnapshotValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    snapshot_epoch: int32 = 0
    state_epoch: int32 = 0
    leader_epoch: int32 = 0
    start_offset: int64 = 0
    delivery_complete_count: Annotated[int32, V("0+", tag=0)] = -1
    create_timestamp: int64 = 0
    write_timestamp: int64 = 0
    state_batches: list[StateBatch] = []


class ShareUpdateValue(Message):
    """Changes since the snapshot with the same epoch."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    snapshot_epoch: int32 = 0
    leader_epoch: int32 = 0
    start_offset: int64 = 0
    delivery_complete_count: Annotated[int32, V("0+", tag=0)] = -1
    state_batches: list[StateBatch] = []
