"""The interface between a partition's log and its storage, in memory (memory_storage.py) or a directory.

`PartitionLog` decides which batches are appended, read and deleted.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from sluice.protocol.records.batch import BatchHeader

from .leader_epochs import LeaderEpochs
from .log_config import LogConfig
from .memory_budget import EvictableLog
from .producer_state import ProducerState


class LogSegment(Protocol):
    """Whole batches in offset order (Kafka's LogSegment)."""

    base_offset: int  # lower bound of its records; all records of the previous segment are before it
    next_offset: int  # after the last record, up to the next segment's base; the base if empty
    size: int  # bytes
    last_append_ms: int
    continues: bool  # the segment before it: for deletion and lookups by time, they are one (segment_list.py)

    @property
    def max_timestamp(self) -> int:
        """Greatest timestamp of all batches so far; -1 if none has one (Kafka's NO_TIMESTAMP)."""

    def append(self, batch: memoryview | bytes, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Return False if the batch needs a new segment."""

    def span(self, offset: int, max_bytes: int, up_to_offset: int, at_least_one: bool) -> tuple[int, int, int]:
        """Return the start and end position of the whole batches to read, and the offset after them.

        They start at the first batch that ends at or after `offset`, end before the one that contains `up_to_offset`,
        and have up to `max_bytes`, except a larger first batch with `at_least_one`. Start and end are equal if none
        fits.
        """

    def slice(self, start: int, end: int) -> memoryview:
        """Return the bytes between two positions by reference; they stay unchanged for readers."""

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Iterate from the first batch that ends at or after `offset`."""

    def batches_from_timestamp(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Iterate from the first batch that may match both `timestamp` and `offset`."""

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that contains `offset` and all later ones; readers' bytes stay unchanged."""


class StoredLog(EvictableLog, Protocol):
    name: str
    config: LogConfig
    size_in_bytes: int
    log_end_offset: int

    @property
    def producers(self) -> ProducerState: ...


class RestoredLog(NamedTuple):
    """The stored state of an existing log, with at least one segment."""

    segments: Sequence[LogSegment]
    log_start_offset: int
    log_end_offset: int
    producers: ProducerState
    epochs: LeaderEpochs


class LogStorage(Protocol):
    """File operations may raise OSError."""

    def configure(self, config: LogConfig) -> None: ...

    def save_epochs(self, epochs: LeaderEpochs) -> None: ...

    def first_segments(self, log: StoredLog, base_offset: int) -> Sequence[LogSegment]:
        """Return the segments of an empty log: none, or one empty segment."""

    def begin_segment(self, log: StoredLog, base_offset: int, size: int, room: int, now_ms: int) -> LogSegment:
        """Create the active segment for a batch of `size` bytes.

        It may continue the previous one for up to `room` bytes.
        """

    def largest_segment_bytes(self, log: StoredLog) -> int:
        """Return the maximum size of a segment with several batches."""

    def segment_filled(self, log: StoredLog, segment: LogSegment) -> None: ...

    def begin_cleaned(self, log: StoredLog, base_offset: int, size: int, now_ms: int) -> LogSegment:
        """Create a segment for the compacted remains of `size` bytes; before `replace` or `delete`."""

    def save_cleaned(self, cleaned: LogSegment, then: Callable[[], None]) -> None:
        """Make `cleaned` durable, then call `then`, now or later; before `replace`."""

    def replace(self, log: StoredLog, old: Sequence[LogSegment], new: LogSegment) -> None:
        """Replace `old` by `new`; after a crash exactly one of them exists."""

    def records_deleted(self, log: StoredLog) -> None:
        """Handle a move of the log start offset, after which all records of a segment may be deleted."""

    def delete(self, segment: LogSegment) -> None:
        """Delete a segment. Readers keep their bytes."""

    def truncated(self, log: StoredLog) -> None:
        """Handle a truncation of the log's end."""

    def failed(self, error: OSError) -> str:
        """Log the first of consecutive disk errors; return a description."""

    def forget(self, log: StoredLog, segments: Sequence[LogSegment]) -> None:
        """Delete the segments of a deleted partition."""
