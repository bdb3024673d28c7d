"""What a partition's log answers. Plain values; errors are Kafka's codes."""

import msgspec

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.invalid import InvalidRecords

from .producer_state import Refusal, StoredBatch

# Errors for which Kafka does not return the log start offset (ReplicaManager.appendToLocalLog).
_LOG_START_UNKNOWN = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE})


class AppendResult(msgspec.Struct, gc=False):
    """What became of a batch, in the terms of a Produce response; offsets and times are -1 where there is none.

    `error_message` and `record_errors` [(index, message)] are what a client is told; Kafka tells only of bad records.
    `reason` says for a log or a journal what was wrong. Of a `duplicate` the offsets are the first copy's, and so is
    `log_append_time_ms`: its greatest timestamp, whatever the topic's timestamp type.
    """

    error_code: int = ErrorCode.NONE
    base_offset: int = -1
    last_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    duplicate: bool = False
    error_message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
    reason: str = ""


def invalid_result(invalid: InvalidRecords, log_start_offset: int) -> AppendResult:
    """Return the result of a batch that failed validation."""
    return AppendResult(
        error_code=invalid.code,
        log_start_offset=-1 if invalid.code in _LOG_START_UNKNOWN else log_start_offset,
        error_message=invalid.message if invalid.record_errors else None,
        record_errors=tuple(invalid.record_errors),
        reason=invalid.message,
    )


def verdict_result(verdict: StoredBatch | Refusal, log_start_offset: int) -> AppendResult:
    """Return the result of a batch that the producer state refused, or that repeats a stored batch."""
    if isinstance(verdict, Refusal):
        return AppendResult(verdict.error_code, log_start_offset=log_start_offset, reason=verdict.reason)
    return AppendResult(
        base_offset=verdict.first_offset,
        last_offset=verdict.last_offset,
        log_append_time_ms=verdict.timestamp,
        log_start_offset=log_start_offset,
        duplicate=True,
    )


class LogRead(msgspec.Struct, gc=False):
    """Whole batches, by reference: `size` bytes in `parts`. `next_offset` is the one after the last record."""

    parts: list[memoryview]
    size: int
    next_offset: int
    error_code: int = ErrorCode.NONE


class TimestampOffset(msgspec.Struct, frozen=True, gc=False):
    """Where a record is: its timestamp (ms), its offset, and the epoch of the leader that wrote it."""

    timestamp: int
    offset: int
    leader_epoch: int
