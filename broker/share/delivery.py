"""The values of deliveries to share groups: states, acknowledgements, settings (KIP-932)."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from sluice.protocol.errors import ErrorCode

NO_MEMBER: Final = ""
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
ACQUIRE_MODES = BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1


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
