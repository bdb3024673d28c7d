"""Space of the disk that is kept for the metadata log, so that topics can be deleted when the disk is full.

When the metadata log finds the disk full, at a start too, the reserved file is removed. Appends to partitions fail
until there is room for it again. Kafka has no such reserve and does not start on a full disk.
"""

import logging
import os
from collections.abc import Callable
from contextlib import suppress

log = logging.getLogger("sluice.broker")

# The records of 5,000 deleted topics, and the small files that a start replaces.
RESERVED_BYTES = 512 * 1024
_NAME = "reserved-space"


class Reserve:
    def __init__(self, directory: str) -> None:
        self.is_used = False
        self.on_change: Callable[[], None] = lambda: None
        self._directory = directory
        self._path = f"{directory}/{_NAME}"

    def use(self) -> bool:
        """Free the space, if it was reserved. Appends fail from now on."""
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            return False
        log.warning("disk is full: appends fail; delete topics to make room", extra={"directory": self._directory})
        self.is_used = True
        self.on_change()
        return True

    def restore(self) -> None:
        """Reserve the space if the disk has twice as much."""
        volume = os.statvfs(self._directory)
        free_bytes = volume.f_bavail * volume.f_frsize
        if os.path.exists(self._path):
            if free_bytes < RESERVED_BYTES:
                self.use()
            return
        if free_bytes < 2 * RESERVED_BYTES or not self._allocate():
            return
        if self.is_used:
            log.warning("disk has room again: appends are accepted", extra={"directory": self._directory})
            self.is_used = False
            self.on_change()

    def _allocate(self) -> bool:
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                os.posix_fallocate(handle, 0, RESERVED_BYTES)
            finally:
                os.close(handle)
        except OSError:  # full meanwhile, or the file system cannot reserve space
            with suppress(OSError):
                os.unlink(self._path)
            return False
        return True
