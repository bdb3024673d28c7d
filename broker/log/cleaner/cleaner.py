"""One cleaning of one log, which keeps the last record of each key: Kafka's Cleaner.

Theory of operation. A log has a clean head, where an earlier cleaning left one record per key, and a dirty tail. The
active segment and undecided records are never touched (selection.py determines the limit).

    first_dirty_offset                first_uncleanable_offset
    | clean segments    | dirty segments          | not touched
    0 ------------------+-------------------------+------------- log end

1. Put the keys of the dirty part into a map with their last offsets (offset_map.py), except those of aborted records,
until the map is full. The cleaning ends there; the next one continues. 2. Group all segments from the log's start to
that offset; a group has up to segment.bytes. The remains of a group's batches (record_filter.py) become one segment,
which replaces the group. Offsets never change; removed records leave gaps.

A cleaning is a generator that yields after each step of about half a millisecond. Between steps the log may lose
segments by retention, DeleteRecords or eviction from memory. If a group is no longer complete, the cleaning ends;
groups cleaned before stay clean.

Different from Kafka: no threads; and no splitting of groups, because segment files here cannot overflow.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.producer_state import AbortedTransaction, LastRecord
from sluice.protocol.records.batch import BatchHeader

from .offset_map import OffsetMap
from .record_filter import RECORDS_A_STEP, BatchCleaner, Steps
from .record_sections import Section
from .transactions import CleanedTransactions

MOST_WAITS = 600
_LARGEST_OFFSET_RANGE = 2**31 - 1  # of one segment, in which offsets have 32 bits


class CleanableSegment(Protocol):
    """A segment as a cleaning uses it."""

    @property
    def base_offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def last_append_ms(self) -> int: ...
    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Iterate over the batches in order, from the first that ends at or after `offset`."""

    def append(self, batch: memoryview | bytes, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Append a batch; return False if it does not fit."""


S = TypeVar("S", bound=CleanableSegment)


class CleanableLog(Protocol[S]):
    """A log as a cleaning uses it."""

    @property
    def config(self) -> LogConfig: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def largest_segment_bytes(self) -> int: ...
    def segments_before(self, offset: int) -> Sequence[S]:
        """Return segments that start before `offset`, oldest first."""

    def aborted_transactions(self, offset: int, upper_offset: int) -> Sequence[AbortedTransaction]:
        """Return transactions that may have records from `offset` to `upper_offset` (exclusive)."""

    def last_records(self) -> Mapping[int, LastRecord]:
        """Return what must be kept of each producer."""

    def begin_cleaned(self, group: Sequence[S]) -> S | None:
        """Create a segment for the remains of `group`; None if the log no longer has all of it."""

    def save_cleaned(self, cleaned: S, then: Callable[[], None]) -> None:
        """Make the complete segment durable, then call `then`, maybe later."""

    def discard_cleaned(self, cleaned: S) -> None:
        """Delete `cleaned`, which replaces nothing."""

    def replace_group(self, group: Sequence[S], cleaned: S, aborted: Sequence[AbortedTransaction]) -> bool:
        """Replace `group` by `cleaned`; return False if the log no longer has all of it.

        `aborted` are the aborted transactions with markers in the group that stay because of their records.
        """


class LogCleaning(Generic[S]):
    """A cleaning in progress."""

    def __init__(
        self,
        log: CleanableLog[S],
        first_dirty_offset: int,
        first_uncleanable_offset: int,
        now_ms: int,
        most_keys: int,
    ) -> None:
        self._log = log
        self._now_ms = now_ms
        self._offsets = OffsetMap(most_keys)
        self._first_uncleanable_offset = first_uncleanable_offset
        self.end_offset = first_dirty_offset  # the log is clean before this offset
        self.is_waiting = False  # for the disk: each next step only checks again, up to MOST_WAITS times
        self.bytes_read = 0
        self.bytes_kept = 0

    def steps(self) -> Steps[None]:
        """Clean the log step by step.

        Raises:
            InvalidRecords: The log is unreadable.
        """
        yield from self._collect_keys(self.end_offset)
        end_offset = self._offsets.latest_offset + 1
        segments = self._log.segments_before(end_offset)
        if not segments:
            return
        # The last segment may extend past the offset at which the map was full.
        up_to_offset = self._first_uncleanable_offset
        transactions = CleanedTransactions(self._log.aborted_transactions(segments[0].base_offset, up_to_offset))
        for group in group_by_size(segments, self._log.largest_segment_bytes, up_to_offset):
            if not (yield from self._clean_group(group, transactions)):
                return
        self.end_offset = end_offset

    def _collect_keys(self, from_offset: int) -> Steps[None]:
        offsets, up_to_offset = self._offsets, self._first_uncleanable_offset
        segments = self._log.segments_before(up_to_offset)
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

    def _clean_group(self, group: Sequence[S], transactions: CleanedTransactions) -> Steps[bool]:
        """Clean one group; return whether it was replaced."""
        log = self._log
        cleaned = log.begin_cleaned(group)
        if cleaned is None:
            return False
        last_append_ms = group[-1].last_append_ms
        known = len(transactions.kept)
        cleaner = BatchCleaner(
            self._offsets,
            transactions,
            log.last_records(),
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
            log.discard_cleaned(cleaned)
            raise
        return log.replace_group(group, cleaned, transactions.kept[known:])

    def _save(self, cleaned: S) -> Steps[None]:
        saved: list[bool] = []
        self._log.save_cleaned(cleaned, partial(saved.append, True))
        self.is_waiting = not saved
        for _ in range(MOST_WAITS):
            if saved:
                break
            yield
        else:
            raise OSError(f"compacted segment not flushed after {MOST_WAITS} checks")
        self.is_waiting = False


def group_by_size(segments: Sequence[S], most_bytes: int, first_uncleanable_offset: int) -> Iterator[Sequence[S]]:
    """Group neighbours with up to `most_bytes` together, and offsets that fit into one segment."""
    ends = _ends(segments, first_uncleanable_offset)
    group: list[S] = []
    size = 0
    for segment, end in zip(segments, ends, strict=True):
        if group and (size + segment.size > most_bytes or end - 1 - group[0].base_offset > _LARGEST_OFFSET_RANGE):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group


def _ends(segments: Sequence[CleanableSegment], end_of_last: int) -> list[int]:
    """Return the end offset of each segment, including a gap after it."""
    return [*(segment.base_offset for segment in segments[1:]), end_of_last][: len(segments)]
