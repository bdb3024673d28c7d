"""What a partition's log asks of the place where its bytes are: memory (memory_storage.py) or a directory.

`PartitionLog` decides what is appended, read and let go. A storage makes the segments in which that is, and keeps or
forgets them; it knows nothing of producers and epochs. Batches of a segment have ascending offsets, with gaps between
them where a compaction or a truncation took some.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from sluice.protocol.records.batch import BatchHeader

from .leader_epochs import LeaderEpochs
from .log_config import LogConfig
from .memory_budget import EvictableLog
from .producer_state import ProducerState


class LogSegment(Protocol):
    """A stretch of a log: whole batches, one after the other, with an index of them (Kafka's LogSegment)."""

    base_offset: int  # no record is before it, and none of the segment before is at or after it
    next_offset: int  # after the last record, or, where others follow, up to where the next begins; base if empty
    size: int  # in bytes
    last_append_ms: int

    @property
    def max_timestamp(self) -> int:
        """Of all batches so far; -1: none had one (Kafka's NO_TIMESTAMP)."""

    def append(self, batch: memoryview | bytes, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Stores `batch`, which begins at or after `next_offset`; False if it belongs into a new segment."""

    def largest_timestamp(self) -> int:
        """What retention by time goes by: of the records, or of the last append where no record had one (ms)."""

    def span(self, offset: int, max_bytes: int, up_to_offset: int, at_least_one: bool) -> tuple[int, int, int]:
        """Start and end position of whole batches from the first that ends at or after `offset` on, and the offset
        after them.

        No batch that holds `up_to_offset` or later ones; no more than `max_bytes`, but for the first batch where
        `at_least_one`. Start and end are equal where nothing fits.
        """

    def slice(self, start: int, end: int) -> memoryview:
        """The bytes between two positions, by reference: they stay as they are as long as someone holds them."""

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Batches in order, from the first on that ends at or after `offset`."""

    def batches_from_timestamp(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Batches in order, from the first on that may hold a record at or after both `timestamp` and `offset`."""

    def truncate_to(self, offset: int) -> None:
        """Forgets the batch that holds `offset` and all after it; what was read of them stays as it is."""


class StoredLog(EvictableLog, Protocol):
    """A log as its storage sees it."""

    name: str
    config: LogConfig
    size_in_bytes: int
    log_end_offset: int

    @property
    def producers(self) -> ProducerState:
        """What is known of those who write here with a producer id."""


class RetainedLog(Protocol):
    """A log, as retention sees it."""

    config: LogConfig
    high_watermark: int
    size_in_bytes: int

    @property
    def segments(self) -> Sequence[LogSegment]: ...
    def drop_oldest_segments(self, count: int) -> int: ...


class RestoredLog(NamedTuple):
    """What a storage has of a log that was there before: at least one segment."""

    segments: Sequence[LogSegment]
    log_start_offset: int
    log_end_offset: int
    producers: ProducerState
    epochs: LeaderEpochs


class LogStorage(Protocol):
    """Where the segments of one log are, or of all logs. What has to do with files may raise OSError."""

    def configure(self, config: LogConfig) -> None:
        """Takes the topic's new configuration."""

    def save_epochs(self, epochs: LeaderEpochs) -> None:
        """The leader epochs have changed."""

    def first_segments(self, log: StoredLog, base_offset: int) -> Sequence[LogSegment]:
        """What an empty log that goes on at `base_offset` consists of: nothing, or one empty segment."""

    def begin_segment(self, log: StoredLog, base_offset: int, size: int, now_ms: int) -> LogSegment:
        """A new segment, for the active end of the log; there is room in it for a batch of `size` bytes."""

    def largest_segment_bytes(self, log: StoredLog) -> int:
        """As large may a segment of this log become, if it is not for a single batch."""

    def segment_filled(self, log: StoredLog, segment: LogSegment) -> None:
        """Nothing will be appended to this one any more."""

    def begin_cleaned(self, log: StoredLog, base_offset: int, size: int, now_ms: int) -> LogSegment:
        """A segment for what compaction leaves of `size` bytes; the log gets it by `replace`, or it is `deleted`."""

    def save_cleaned(self, cleaned: LogSegment, then: Callable[[], None]) -> None:
        """Puts it where a crash leaves it, and says so: now or later, but not before `replace` may be called."""

    def replace(self, log: StoredLog, old: Sequence[LogSegment], new: LogSegment) -> None:
        """`new`, complete and saved now, stands for `old`: either is there after a crash, never both, never neither."""

    def delete(self, segment: LogSegment) -> None:
        """Lets a segment go. Readers keep the parts that they hold."""

    def truncated(self, log: StoredLog) -> None:
        """The log ends earlier than it did."""

    def failed(self, error: OSError) -> str:
        """An append or a read could not be done: tells so, once for as long as it lasts. Returns what was wrong."""

    def forget(self, log: StoredLog, segments: Sequence[LogSegment]) -> None:
        """The partition is deleted, and all of its segments with it."""
