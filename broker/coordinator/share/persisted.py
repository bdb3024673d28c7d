"""What is persisted of a share partition: its key, the writes of its leader, and summaries (KIP-932)."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from sluice.protocol.errors import ErrorCode
from sluice.protocol.uuids import printed_uuid

Done = Callable[[ErrorCode], None]


class SharePartitionId(NamedTuple):
    group_id: str
    topic_id: bytes
    partition: int

    @property
    def coordinator_key(self) -> str:
        return f"{self.group_id}:{printed_uuid(self.topic_id)}:{self.partition}"


class StateBatch(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class StateWrite(NamedTuple):
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: list[StateBatch]


NO_OFFSET = -1


class PartitionSummary(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    start_offset: int = NO_OFFSET
    state_epoch: int = 0
    leader_epoch: int = 0
    delivery_complete_count: int = -1


ShareErrors = Mapping[bytes, Mapping[int, ErrorCode]]
ShareSummaries = Mapping[bytes, Mapping[int, PartitionSummary]]


@cache
def failed_summary(error: ErrorCode) -> PartitionSummary:
    return PartitionSummary(error)
