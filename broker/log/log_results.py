"""Results of a partition's log, as plain values with Kafka's error codes."""

import msgspec

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.invalid import InvalidRecords

from .producer_state import Refusal, StoredBatch

# Errors for which Kafka does not return the log start offset (ReplicaManager.appendToLocalLog).
_LOG_START_UNKNOWN = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE})


class AppendResult(msgspec.Struct, gc=False):
    """The outcome of an append, in the terms of a Produce response; missing offsets and times are -1.

    `error_message` and `record_errors` [(index, message)] are for the client, and only for invalid records; `reason`
    is for logs and the journal. A `duplicate` has the first copy's offsets, and its greatest timestamp as
    `log_append_time_ms`.
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
    return AppendResult(
        error_code=invalid.code,
        log_start_offset=-1 if invalid.code in _LOG_START_UNKNOWN else log_start_offset,
        error_message=invalid.message if invalid.record_errors else None,
        record_errors=tuple(invalid.record_errors),
        reason=invalid.message,
    )


def verdict_result(verdict: StoredBatch | Refusal, log_start_offset: int) -> AppendResult:
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
    parts: list[memoryview]
    size: int
    next_offset: int
    error_code: int = ErrorCode.NONE


class TimestampOffset(msgspec.Struct, frozen=True, gc=False):
    timestamp: int
    offset: int
    leader_epoch: int
