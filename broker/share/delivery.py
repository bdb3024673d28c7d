"""The values of deliveries to share groups: states, acknowledgements, settings, and what is persisted (KIP-932)."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from sluice.protocol.errors import ErrorCode
from sluice.protocol.uuids import printed_uuid

NO_MEMBER: Final = ""
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1

Done = Callable[[ErrorCode], None]


class AcknowledgeResult(NamedTuple):
    code: ErrorCode = ErrorCode.NONE
    message: str | None = None


Acknowledged = Callable[[AcknowledgeResult], None]


class RecordState(IntEnum):
    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3  # a dead letter, until it is in the dead-letter queue (KIP-1191)
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class SharePartitionId(NamedTuple):
    group_id: str
    topic_id: bytes
    partition: int

    @property
    def coordinator_key(self) -> str:
        return f"{self.group_id}:{printed_uuid(self.topic_id)}:{self.partition}"


class ShareSettings(NamedTuple):
    delivery_count_limit: int
    record_lock_duration_ms: int
    partition_max_record_locks: int
    renew_acknowledge: bool
    keeps_dead_letters: bool

    @property
    def undelivered(self) -> RecordState:
        """The state of records that were rejected or delivered too often."""
        return RecordState.ARCHIVING if self.keeps_dead_letters else RecordState.ARCHIVED


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


class AcknowledgementBatch(NamedTuple):
    """Acknowledge types of consecutive records: one for all, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class Acquired(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_count: int


class FetchedBatch(NamedTuple):
    """A batch read from the log; `data` are its bytes."""

    base_offset: int
    last_offset: int
    producer_id: int
    is_transactional: bool
    is_control: bool
    data: memoryview
