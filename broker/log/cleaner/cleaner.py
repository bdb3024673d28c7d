"""One cleaning of one log, which keeps the last record of each key: Kafka's Cleaner.

A log has a clean head, where an earlier cleaning left one record per key, and a dirty tail. The active segment and
undecided records are not touched (selection.py).

    first_dirty_offset                first_uncleanable_offset
    | clean segments    | dirty segments          | not touched
    0 ------------------+-------------------------+------------- log end

1. Put the keys of the dirty part, except those of aborted records, into a map with their last offsets (offset_map.py).
   If it is full, the cleaning ends there; the next one continues.
2. Group all segments up to that offset, up to segment.bytes per group. The remains of a group's batches
   (record_filter.py) become one segment, which replaces the group. Offsets never change; removed records leave gaps.

A cleaning is a generator with steps of about half a millisecond. It ends if a group loses segments between steps.

Different from Kafka: no threads, and no splitting of groups, because segment files here cannot overflow.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from sluice.broker.log.log_storage import LogSegment
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.producer_state import AbortedTransaction

from .offset_map import OffsetMap
from .record_filter import RECORDS_A_STEP, BatchCleaner, Steps
from .record_sections import Section
from .transactions import CleanedTransactions

MOST_WAITS = 600
_LARGEST_OFFSET_RANGE = 2**31 - 1  # in one segment, where relative offsets have 32 bits


class LogCleaning:
    def __init__(
        self, log: PartitionLog, first_dirty_offset: int, first_uncleanable_offset: int, now_ms: int, most_keys: int
    ) -> None:
        self._log = log
        self._now_ms = now_ms
        self._offsets = OffsetMap(most_keys)
        self._first_uncleanable_offset = first_uncleanable_offset
        self.end_offset = first_dirty_offset  # end of the clean part
        self.is_waiting = False  # for the disk: the next steps only check again
        self.bytes_read = 0
        self.bytes_kept = 0

    def steps(self) -> Steps[None]:
        """Raise InvalidRecords if the log is unreadable."""
        yield from self._collect_keys(self.end_offset)
        end_offset = self._offsets.latest_offset + 1
        segments = self._log.segment_list.before(end_offset)
        if not segments:
            return
        # The last segment may extend past the offset at which the map was full.
        up_to_offset = self._first_uncleanable_offset
        transactions = CleanedTransactions(self._log.aborted_transactions(segments[0].base_offset, up_to_offset))
        most_bytes = self._log.storage.largest_segment_bytes(self._log)
        for group in group_by_size(segments, most_bytes, up_to_offset):
            if not (yield from self._clean_group(group, transactions)):
                return
        self.end_offset = end_offset

    def _collect_keys(self, from_offset: int) -> Steps[None]:
        offsets, up_to_offset = self._offsets, self._first_uncleanable_offset
        segments = self._log.segment_list.before(up_to_offset)
        transactions = CleanedTransactions(self._log.aborted_transactions(from_offset, up_to_offset))
        for segment, end in zip(segments, _ends(segments, up_to_offset), strict=True):
            if end <= from_offset:
                continue
            for header, batch in segment.batches(from_offset):
                if not transactions.is_useless(header, batch) and not header.is_control and header.record_count:
                    section = Section(header, batch)
                    while not section.is_done:
                        if not section.collect_keys(offsets, from_offset, RECORDS_A_STEP):
                            return
                        yield
                offsets.latest_offset = max(offsets.latest_offset, header.last_offset)
                self.bytes_read += len(batch)
                yield
            offsets.latest_offset = end - 1

    def _clean_group(self, group: Sequence[LogSegment], transactions: CleanedTransactions) -> Steps[bool]:
        log = self._log
        if not log.segment_list.has_group(group):
            return False
        size, last_append_ms = sum(segment.size for segment in group), group[-1].last_append_ms
        cleaned = log.storage.begin_cleaned(log, group[0].base_offset, size, last_append_ms)
        known = len(transactions.kept)
        cleaner = BatchCleaner(
            self._offsets,
            transactions,
            log.producers.last_records(),
            log.high_watermark,
            self._now_ms,
            log.config.delete_retention_ms,
        )
        try:
            for segment in group:
                for header, batch in segment.batches(segment.base_offset):
                    remains = yield from cleaner.clean(header, batch)
                    if remains is not None:
                        data, max_timestamp = remains
                        fits = cleaned.append(data, header.last_offset, max_timestamp, last_append_ms)
                        assert fits
                        self.bytes_kept += len(data)
                    yield
            yield from self._save(cleaned)
        except BaseException:
            log.storage.delete(cleaned)
            raise
        return self._replace_group(group, cleaned, transactions.kept[known:])

    def _replace_group(
        self, group: Sequence[LogSegment], cleaned: LogSegment, aborted: Sequence[AbortedTransaction]
    ) -> bool:
        """Replace `group`, unless it is incomplete; `aborted` transactions have markers that stay in it."""
        log = self._log
        if not log.segment_list.has_group(group):
            log.storage.delete(cleaned)
            return False
        log.producers.replace_aborted(cleaned.base_offset, log.segment_list.end_of_group(group), aborted)
        log.storage.replace(log, group, cleaned)
        log.segment_list.replace_group(group, cleaned)
        log.size_in_bytes += cleaned.size - sum(segment.size for segment in group)
        return True

    def _save(self, cleaned: LogSegment) -> Steps[None]:
        saved: list[bool] = []
        self._log.storage.save_cleaned(cleaned, partial(saved.append, True))
        self.is_waiting = not saved
        for _ in range(MOST_WAITS):
            if saved:
                break
            yield
        else:
            raise OSError(f"compacted segment not flushed after {MOST_WAITS} checks")
        self.is_waiting = False


def group_by_size(
    segments: Sequence[LogSegment], most_bytes: int, first_uncleanable_offset: int
) -> Iterator[Sequence[LogSegment]]:
    ends = _ends(segments, first_uncleanable_offset)
    group: list[LogSegment] = []
    size = 0
    for segment, end in zip(segments, ends, strict=True):
        if group and (size + segment.size > most_bytes or end - 1 - group[0].base_offset > _LARGEST_OFFSET_RANGE):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group


def _ends(segments: Sequence[LogSegment], end_of_last: int) -> list[int]:
    """Return end offsets, including the gap after each segment."""
    return [*(segment.base_offset for segment in segments[1:]), end_of_last][: len(segments)]
