"""The interface between a partition's log and its storage: memory (memory_storage.py) or a directory.

`PartitionLog` decides which batches are appended, read and deleted. A storage creates and deletes the segments that
contain them, without knowledge of producers and epochs. Batches of a segment have ascending offsets; compaction and
truncation leave gaps.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from sluice.protocol.records.batch import BatchHeader

from .leader_epochs import LeaderEpochs
from .log_config import LogConfig
from .memory_budget import EvictableLog
from .producer_state import ProducerState


class LogSegment(Protocol):
    """Whole batches in offset order, with an index (Kafka's LogSegment)."""

    base_offset: int  # lower bound of its records; all records of the previous segment are before it
    next_offset: int  # after the last record or, if segments follow, at most the next one's base; the base if empty
    size: int  # bytes
    last_append_ms: int

    @property
    def max_timestamp(self) -> int:
        """Greatest timestamp of all batches so far; -1 if none has one (Kafka's NO_TIMESTAMP)."""

    def append(self, batch: memoryview | bytes, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Append `batch`, which starts at or after `next_offset`; return False if it needs a new segment."""

    def largest_timestamp(self) -> int:
        """Return the greatest record timestamp (ms), or the time of the last append if no record has a timestamp."""

    def span(self, offset: int, max_bytes: int, up_to_offset: int, at_least_one: bool) -> tuple[int, int, int]:
        """Return the start and end position of the whole batches to read, and the offset after them.

        They start at the first batch that ends at or after `offset`, end before the batch that contains `up_to_offset`,
        and have up to `max_bytes`. With `at_least_one`, the first batch may exceed this. Start and end are equal if no
        batch fits.
        """

    def slice(self, start: int, end: int) -> memoryview:
        """Return the bytes between two positions by reference; they do not change while a reader has them."""

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Iterate over the batches in order, from the first that ends at or after `offset`."""

    def batches_from_timestamp(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Iterate over the batches in order, from the first that may reach both `timestamp` and `offset`."""

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that contains `offset` and all later ones; bytes that were read do not change."""


class StoredLog(EvictableLog, Protocol):
    """A log as its storage uses it."""

    name: str
    config: LogConfig
    size_in_bytes: int
    log_end_offset: int

    @property
    def producers(self) -> ProducerState:
        """State of the idempotent and transactional producers."""


class RetainedLog(Protocol):
    """A log as retention uses it."""

    config: LogConfig
    high_watermark: int
    size_in_bytes: int

    @property
    def segments(self) -> Sequence[LogSegment]: ...
    def drop_oldest_segments(self, count: int) -> int: ...


class RestoredLog(NamedTuple):
    """The stored state of an existing log; it has at least one segment."""

    segments: Sequence[LogSegment]
    log_start_offset: int
    log_end_offset: int
    producers: ProducerState
    epochs: LeaderEpochs


class LogStorage(Protocol):
    """The storage of one log, or of all logs; file operations may raise OSError."""

    def configure(self, config: LogConfig) -> None:
        """Apply the topic's new configuration."""

    def save_epochs(self, epochs: LeaderEpochs) -> None:
        """Save the changed leader epochs."""

    def first_segments(self, log: StoredLog, base_offset: int) -> Sequence[LogSegment]:
        """Return the segments of an empty log that starts at `base_offset`: none, or one empty segment."""

    def begin_segment(self, log: StoredLog, base_offset: int, size: int, now_ms: int) -> LogSegment:
        """Create the new active segment, with room for a batch of `size` bytes."""

    def largest_segment_bytes(self, log: StoredLog) -> int:
        """Return the maximum size of a segment with more than one batch."""

    def segment_filled(self, log: StoredLog, segment: LogSegment) -> None:
        """Handle that nothing more will be appended to `segment`."""

    def begin_cleaned(self, log: StoredLog, base_offset: int, size: int, now_ms: int) -> LogSegment:
        """Create a segment for the compacted remains of `size` bytes; it ends in `replace` or `delete`."""

    def save_cleaned(self, cleaned: LogSegment, then: Callable[[], None]) -> None:
        """Make `cleaned` durable, then call `then`, now or later; `replace` requires that it was called."""

    def replace(self, log: StoredLog, old: Sequence[LogSegment], new: LogSegment) -> None:
        """Replace `old` by the saved segment `new`; after a crash exactly one of the two exists."""

    def delete(self, segment: LogSegment) -> None:
        """Delete a segment. Readers keep the bytes that they have."""

    def truncated(self, log: StoredLog) -> None:
        """Handle that the log was truncated at its end."""

    def failed(self, error: OSError) -> str:
        """Log a failed append or read, once until it succeeds again; return a description."""

    def forget(self, log: StoredLog, segments: Sequence[LogSegment]) -> None:
        """Delete all `segments` of a deleted partition."""
