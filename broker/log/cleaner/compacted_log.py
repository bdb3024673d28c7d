"""A PartitionLog as a CleanableLog."""

from collections.abc import Callable, Mapping, Sequence

from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.log_storage import LogSegment
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.producer_state import AbortedTransaction, LastRecord


class CompactedLog:
    def __init__(self, log: PartitionLog) -> None:
        self._log = log

    @property
    def config(self) -> LogConfig:
        return self._log.config

    @property
    def high_watermark(self) -> int:
        return self._log.high_watermark

    @property
    def largest_segment_bytes(self) -> int:
        return self._log.storage.largest_segment_bytes(self._log)

    def segments_before(self, offset: int) -> Sequence[LogSegment]:
        return self._log.segment_list.before(offset)

    def aborted_transactions(self, offset: int, upper_offset: int) -> Sequence[AbortedTransaction]:
        return self._log.aborted_transactions(offset, upper_offset)

    def last_records(self) -> Mapping[int, LastRecord]:
        return self._log.producers.last_records()

    def begin_cleaned(self, group: Sequence[LogSegment]) -> LogSegment | None:
        log = self._log
        if not log.segment_list.has_group(group):
            return None
        size = sum(segment.size for segment in group)
        return log.storage.begin_cleaned(log, group[0].base_offset, size, group[-1].last_append_ms)

    def save_cleaned(self, cleaned: LogSegment, then: Callable[[], None]) -> None:
        self._log.storage.save_cleaned(cleaned, then)

    def discard_cleaned(self, cleaned: LogSegment) -> None:
        self._log.storage.delete(cleaned)

    def replace_group(
        self, group: Sequence[LogSegment], cleaned: LogSegment, aborted: Sequence[AbortedTransaction]
    ) -> bool:
        log = self._log
        if not log.segment_list.has_group(group):
            self.discard_cleaned(cleaned)
            return False
        log.producers.replace_aborted(cleaned.base_offset, log.segment_list.end_of_group(group), aborted)
        log.storage.replace(log, group, cleaned)
        log.segment_list.replace_group(group, cleaned)
        log.size_in_bytes += cleaned.size - sum(segment.size for segment in group)
        return True
