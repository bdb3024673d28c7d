"""Retention by size and time: Kafka's UnifiedLog.deleteOldSegments, as functions.

Both rules delete whole segments, oldest first, up to the high watermark, including the active one if it is not empty.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .log_storage import LogSegment, RetainedLog


def enforce_retention(log: "RetainedLog", now_ms: int) -> int:
    dropped = enforce_retention_bytes(log)
    if not log.config.cleanup_deletes:
        return dropped
    count = count_over_age(log.segments, now_ms, log.config.retention_ms, log.high_watermark)
    return dropped + log.drop_oldest_segments(count)


def enforce_retention_bytes(log: "RetainedLog") -> int:
    if not log.config.cleanup_deletes:
        return 0
    count = count_over_size(log.segments, log.size_in_bytes, log.config.retention_bytes, log.high_watermark)
    return log.drop_oldest_segments(count)


def count_over_size(
    segments: "Sequence[LogSegment]", size_in_bytes: int, retention_bytes: int, high_watermark: int
) -> int:
    # Negative: no bound.
    if retention_bytes < 0:
        return 0
    excess = size_in_bytes - retention_bytes
    for number, segment in enumerate(segments):
        excess -= segment.size
        if excess < 0 or segment.next_offset > high_watermark or _is_active_and_empty(segment, segments):
            return number
    return len(segments)


def count_over_age(segments: "Sequence[LogSegment]", now_ms: int, retention_ms: int, high_watermark: int) -> int:
    if retention_ms < 0:
        return 0
    for number, segment in enumerate(segments):
        if (
            now_ms - segment.largest_timestamp() <= retention_ms
            or segment.next_offset > high_watermark
            or _is_active_and_empty(segment, segments)
        ):
            return number
    return len(segments)


def _is_active_and_empty(segment: "LogSegment", segments: "Sequence[LogSegment]") -> bool:
    return segment.size == 0 and segment is segments[-1]
