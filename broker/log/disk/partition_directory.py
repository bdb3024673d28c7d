"""One partition's directory, with the settings and flush state of its segments."""

import logging
import os
from typing import Protocol

from sluice.broker.log.log_config import LogConfig

from .open_files import OpenFiles

log = logging.getLogger("sluice.broker")

NO_SNAPSHOT = -1
_TIME_INDEX_ENTRY_BYTES = 12  # the larger of the two entry sizes


class Flushable(Protocol):
    def duplicate_handle(self) -> int:
        """Return a file descriptor for the caller to close."""


class PartitionDirectory:
    def __init__(self, path: str, config: LogConfig, open_files: OpenFiles) -> None:
        self.path = path
        self.open_files = open_files
        self.failing = False  # the last append failed
        self.flushed_ms = 0  # last check of flush.ms
        self.recovery_point = 0
        self.snapshot = NO_SNAPSHOT  # offset of the newest snapshot inside a segment
        self.unflushed: list[Flushable] = []  # full segments whose flush is not complete
        self.configure(config)

    def configure(self, config: LogConfig) -> None:
        self.config = config
        self.flush_messages = config.flush_messages
        self.index_interval_bytes = config.index_interval_bytes
        self.most_index_entries = max(1, config.segment_index_bytes // _TIME_INDEX_ENTRY_BYTES - 1)

    def failed(self, error: OSError) -> str:
        reason = error.strerror or str(error)
        if not self.failing:
            self.failing = True
            log.error("partition storage failed", extra={"directory": self.path, "reason": reason})
        return reason

    def writes_recovered(self) -> None:
        self.failing = False
        log.info("partition storage recovered", extra={"directory": self.path})

    def flush_up_to(self, offset: int, handle: int) -> None:
        for segment in self.unflushed:
            other = segment.duplicate_handle()
            try:
                os.fdatasync(other)
            finally:
                os.close(other)
        self.unflushed.clear()
        os.fdatasync(handle)
        self.recovery_point = offset
