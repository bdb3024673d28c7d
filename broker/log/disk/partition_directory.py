"""Where the segments of one partition are, and what they have to know of it: its directory, its settings, its flushes.

The recovery point is Kafka's: what is before it is on the disk, together with the indexes of it, and is not looked at
after a crash.
"""

import logging
import os
from typing import Protocol

from sluice.broker.log.log_config import LogConfig

from .open_files import OpenFiles

log = logging.getLogger("sluice.broker")

NO_SNAPSHOT = -1
_TIME_INDEX_ENTRY_BYTES = 12  # the larger of the two


class Flushable(Protocol):
    """A segment, as far as flushing it goes."""

    def duplicate_handle(self) -> int:
        """Return a file descriptor for the caller to flush and close."""


class PartitionDirectory:
    """The directory of one partition, shared by its segments."""

    __slots__ = (
        "config",
        "failing",
        "flush_messages",
        "flushed_ms",
        "index_interval_bytes",
        "most_index_entries",
        "open_files",
        "path",
        "recovery_point",
        "snapshot",
        "unflushed",
    )

    def __init__(self, path: str, config: LogConfig, open_files: OpenFiles) -> None:
        self.path = path
        self.open_files = open_files
        self.failing = False  # the last append could not be written
        self.flushed_ms = 0  # when flush.ms was last looked at
        self.recovery_point = 0
        self.snapshot = NO_SNAPSHOT  # offset of the newest, where it is not at the beginning of a segment
        self.unflushed: list[Flushable] = []  # those that are full and not known to be on the disk
        self.configure(config)

    def configure(self, config: LogConfig) -> None:
        """Takes the topic's new configuration; segments that are there keep their sizes."""
        self.config = config
        self.flush_messages = config.flush_messages
        self.index_interval_bytes = config.index_interval_bytes
        self.most_index_entries = max(1, config.segment_index_bytes // _TIME_INDEX_ENTRY_BYTES - 1)

    def failed(self, error: OSError) -> str:
        """Tells that the disk does not take or give what it should; once, until it does again."""
        reason = error.strerror or str(error)
        if not self.failing:
            self.failing = True
            log.error("partition is in trouble", extra={"directory": self.path, "reason": reason})
        return reason

    def works_again(self) -> None:
        """An append has succeeded after others did not."""
        self.failing = False
        log.info("partition is written again", extra={"directory": self.path})

    def flush_up_to(self, offset: int, handle: int) -> None:
        """Puts the active segment on the disk, and what is full before it. Raises OSError."""
        for segment in self.unflushed:
            other = segment.duplicate_handle()
            try:
                os.fdatasync(other)
            finally:
                os.close(other)
        self.unflushed.clear()
        os.fdatasync(handle)
        self.recovery_point = offset
