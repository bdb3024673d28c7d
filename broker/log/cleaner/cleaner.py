"""One cleaning of one log: of each key, only the last record stays. Kafka's Cleaner.

Theory of operation. A log has a clean head, where an earlier cleaning left one record a key, and a dirty tail; the
active segment, and what is not decided yet, are never touched (selection.py says how far a cleaning may go).

    first_dirty_offset                first_uncleanable_offset
    | clean segments    | dirty segments          | not touched
    0 ------------------+-------------------------+------------- log end

1. The keys of the dirty part are put into a map with their last offsets (offset_map.py), until the map is full. Up
   to there the log will be clean; the rest is left for the next time. Keys of aborted records are not put into it.
2. All segments from the log's start up to there are taken in groups that together are no larger than segment.bytes.
   What is left of each group's batches (record_filter.py) becomes one segment, which then stands for the group:
   offsets never change, there are gaps where records were.

A cleaning is a generator: it stops after each step, of about half a millisecond, and whoever drives it goes on when
there is time. In between the log may lose segments, by retention, DeleteRecords or the bound on memory. A group that is
not there any more as a whole ends the cleaning, and what was cleaned before stays clean.

Different from Kafka: it has threads for this; files of segments have no size of their own here that a group could
overflow, so that there is nothing to split.
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
    """A segment as a cleaning sees it."""

    @property
    def base_offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def last_append_ms(self) -> int: ...
    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Batches in order, from the first on that ends at or after `offset`."""

    def append(self, batch: memoryview | bytes, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Adds a batch to the end; False if there is no room for it."""


S = TypeVar("S", bound=CleanableSegment)


class CleanableLog(Protocol[S]):
    """A log as a cleaning sees it."""

    @property
    def config(self) -> LogConfig: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def largest_segment_bytes(self) -> int: ...
    def segments_before(self, offset: int) -> Sequence[S]:
        """Those that begin before `offset`, oldest first."""

    def aborted_transactions(self, offset: int, upper_offset: int) -> Sequence[AbortedTransaction]:
        """Those whose records may lie between `offset` and `upper_offset` (exclusive)."""

    def last_records(self) -> Mapping[int, LastRecord]:
        """What must be left of each producer that is remembered."""

    def begin_cleaned(self, group: Sequence[S]) -> S | None:
        """A segment for what is left of `group`; None if the log does not have all of it any more."""

    def save_cleaned(self, cleaned: S, then: Callable[[], None]) -> None:
        """Puts `cleaned`, complete now, where a crash leaves it, and says so, maybe later."""

    def discard_cleaned(self, cleaned: S) -> None:
        """Lets `cleaned` go, which stands for nothing."""

    def replace_group(self, group: Sequence[S], cleaned: S, aborted: Sequence[AbortedTransaction]) -> bool:
        """Puts `cleaned` into the place of `group`; False if the log does not have all of it any more.

        `aborted`: those aborted transactions whose markers were in the group and stay for the sake of their records.
        """


class LogCleaning(Generic[S]):
    """A cleaning under way."""

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
        self.end_offset = first_dirty_offset  # up to here the log is clean
        self.is_waiting = False  # for the disk: there is nothing to be done but to ask again, MOST_WAITS times
        self.bytes_read = 0
        self.bytes_kept = 0

    def steps(self) -> Steps[None]:
        """Does the whole of it, a step at a time. Raises InvalidRecords where the log cannot be read."""
        yield from self._take_keys(self.end_offset)
        end_offset = self._offsets.latest_offset + 1
        segments = self._log.segments_before(end_offset)
        if not segments:
            return
        # The last of the segments may go on after where the map was full.
        up_to_offset = self._first_uncleanable_offset
        transactions = CleanedTransactions(self._log.aborted_transactions(segments[0].base_offset, up_to_offset))
        for group in group_by_size(segments, self._log.largest_segment_bytes, up_to_offset):
            if not (yield from self._clean_group(group, transactions)):
                return
        self.end_offset = end_offset

    def _take_keys(self, from_offset: int) -> Steps[None]:
        """Fills the map."""
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
                        if not section.take_keys(offsets, from_offset, RECORDS_A_STEP):
                            return
                        yield
                offsets.latest_offset = max(offsets.latest_offset, header.last_offset)
                self.bytes_read += len(batch)
                yield
            offsets.latest_offset = end - 1

    def _clean_group(self, group: Sequence[S], transactions: CleanedTransactions) -> Steps[bool]:
        """Cleans one group; returns whether it was replaced."""
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
            raise OSError(f"what was compacted could not be flushed in {MOST_WAITS} tries")
        self.is_waiting = False


def group_by_size(segments: Sequence[S], most_bytes: int, first_uncleanable_offset: int) -> Iterator[Sequence[S]]:
    """Neighbours that together have at most `most_bytes`, and offsets that fit into one segment."""
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
    """Where each segment ends, with the gap behind it."""
    return [*(segment.base_offset for segment in segments[1:]), end_of_last][: len(segments)]
