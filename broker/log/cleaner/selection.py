"""The next log to clean, and its cleanable part: Kafka's LogCleanerManager and LogToClean.

In a log with `compact` in cleanup.policy, these parts are not cleaned:

    the active segment; in memory, only its last part: __consumer_offsets would grow to 100 MiB per partition
    records above the high watermark or of an undecided transaction
    segments from the first one with a record younger than min.compaction.lag.ms

The rest is due if it exceeds min.cleanable.dirty.ratio of all bytes up to its end, or if the first batch of any dirty
segment is older than max.compaction.lag.ms. The highest ratio is first.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from sluice.broker.log.log_storage import LogSegment
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.segment_list import largest_timestamp
from sluice.config.value_types import LONG_MAX


class LogToClean(msgspec.Struct, frozen=True, gc=False):
    """A log; its cleanable part is whole segments up to `first_uncleanable_offset`."""

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool

    @property
    def cleanable_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        if self.is_overdue and self.cleanable_bytes:
            return True
        return self.cleanable_ratio > self.log.config.min_cleanable_dirty_ratio


def filthiest(logs: Iterable[PartitionLog], now_ms: int) -> LogToClean | None:
    compacted = (to_clean(log, now_ms) for log in logs if log.config.append.compacted)
    return max((found for found in compacted if found.is_due), key=lambda found: found.cleanable_ratio, default=None)


def to_clean(log: PartitionLog, now_ms: int) -> LogToClean:
    first_dirty_offset = log.first_dirty_offset
    if not log.log_start_offset <= first_dirty_offset <= log.log_end_offset:
        first_dirty_offset = log.log_start_offset
    segments = log.segments
    if not segments:
        return LogToClean(log, first_dirty_offset, first_dirty_offset, 0, 0, is_overdue=False)
    bases = [segment.base_offset for segment in segments]
    first_dirty = max(bisect_right(bases, first_dirty_offset) - 1, 0)
    dirty = segments[first_dirty:-1]
    uncleanable_offset = max(first_dirty_offset, _uncleanable_offset(log, dirty, now_ms))
    first_uncleanable = max(bisect_right(bases, uncleanable_offset) - 1, 0)
    return LogToClean(
        log,
        first_dirty_offset,
        bases[first_uncleanable],
        sum(segment.size for segment in segments[: bisect_left(bases, first_dirty_offset)]),
        sum(segment.size for segment in segments[first_dirty:first_uncleanable]),
        _is_overdue(log, dirty, now_ms),
    )


def _uncleanable_offset(log: PartitionLog, dirty: Sequence[LogSegment], now_ms: int) -> int:
    end = min(log.last_stable_offset, log.segments[-1].base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in dirty:
            if largest_timestamp((segment,)) > now_ms - lag_ms:
                return min(end, segment.base_offset)
    return end


def _is_overdue(log: PartitionLog, dirty: Sequence[LogSegment], now_ms: int) -> bool:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms == LONG_MAX:
        return False
    firsts = (next(segment.batches(segment.base_offset), None) for segment in dirty)
    return any(first is not None and 0 < first[0].max_timestamp < now_ms - lag_ms for first in firsts)
