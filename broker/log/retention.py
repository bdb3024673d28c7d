"""Deletion of old segments: Kafka's UnifiedLog.deleteOldSegments, as functions.

Whole segments are deleted, oldest first, up to the high watermark: first those whose records are all before the log
start offset, except the active one, then those above the size or age, including the active one if it is not empty.
"""

from collections.abc import Callable

from .partition_log import PartitionLog
from .segment_list import WholeSegment


def enforce_retention(log: PartitionLog, now_ms: int) -> int:
    deleted = _delete(log, lambda segment: not segment.is_active and segment.end_offset <= log.log_start_offset)
    if not log.config.cleanup_deletes:
        return deleted
    deleted += _delete(log, _exceeds_the_size(log))
    retention_ms = log.config.retention_ms
    return deleted + _delete(
        log, lambda segment: retention_ms >= 0 and now_ms - segment.largest_timestamp() > retention_ms
    )


def _delete(log: PartitionLog, is_deletable: Callable[[WholeSegment], bool]) -> int:
    count = 0
    for segment in log.segment_list.whole(log.log_end_offset):
        is_kept = segment.end_offset > log.high_watermark or (segment.is_active and segment.size == 0)
        if is_kept or not is_deletable(segment):
            break
        count += len(segment.parts)
    return log.drop_oldest_segments(count)


def _exceeds_the_size(log: PartitionLog) -> Callable[[WholeSegment], bool]:
    excess = log.size_in_bytes - log.config.retention_bytes

    def exceeds(segment: WholeSegment) -> bool:
        nonlocal excess
        excess -= segment.size
        return log.config.retention_bytes >= 0 and excess >= 0  # negative: no bound

    return exceeds
