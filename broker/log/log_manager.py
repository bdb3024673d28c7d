"""All logs of a broker and their periodic maintenance: Kafka's LogManager."""

import os
from collections.abc import Callable, Iterator
from errno import ENOSPC
from functools import partial
from typing import TYPE_CHECKING

from sluice.protocol.types import ZERO_UUID

from .log_config import LogConfig
from .memory_storage import MemoryStorage
from .partition_log import ErrorOf, PartitionLog
from .retention import enforce_retention

if TYPE_CHECKING:
    from sluice.broker.log.disk.log_directory import LogDirectory


class LogManager:
    """The logs of a broker by name ("topic-0").

    They are in `directory`, or in up to `memory_bytes` (`sluice.log.memory.bytes`) of memory if it is None.
    """

    def __init__(self, memory_bytes: int, directory: "LogDirectory | None" = None) -> None:
        self.directory = directory
        self._storage = MemoryStorage(memory_bytes)
        self.budget = self._storage.budget
        self._logs: dict[str, PartitionLog] = {}
        self._errors_of: list[ErrorOf] = []
        self._accept_appends: Callable[[], None] | None = None  # while the disk is full
        if directory is not None:
            directory.reserve.on_change = self._follow_reserve
            self._follow_reserve()

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self._logs.values())

    def create(self, name: str, config: LogConfig, topic_id: bytes = ZERO_UUID) -> PartitionLog:
        """Create a log, which is empty unless the directory has it.

        Raises:
            OSError: The directory cannot be written.
        """
        assert name not in self._logs
        if self.directory is None:
            log = self.new(name, config, topic_id)
        else:
            log = self.directory.open_log(name, config, topic_id)
        self._logs[name] = log
        if self._errors_of:
            log.fail_appends(self._failure)
        return log

    def fail_appends(self, error_of: ErrorOf) -> Callable[[], None]:
        """Fail all appends with the error that `error_of` returns for a log's name, until the result is called."""
        self._errors_of.append(error_of)
        self._apply_failures()
        return partial(self._stop_failing, error_of)

    def _follow_reserve(self) -> None:
        assert self.directory is not None
        if self.directory.reserve.is_used:
            self._accept_appends = self.fail_appends(partial(OSError, ENOSPC, os.strerror(ENOSPC)))
        elif self._accept_appends is not None:
            self._accept_appends()

    def _stop_failing(self, error_of: ErrorOf) -> None:
        self._errors_of.remove(error_of)
        self._apply_failures()

    def _apply_failures(self) -> None:
        for log in self:
            log.fail_appends(self._failure if self._errors_of else None)

    def _failure(self, name: str) -> OSError | None:
        return next((error for error_of in self._errors_of if (error := error_of(name)) is not None), None)

    def new(self, name: str, config: LogConfig, _topic_id: bytes = ZERO_UUID) -> PartitionLog:
        return PartitionLog(name, config, self._storage)

    def delete(self, name: str) -> None:
        self._logs.pop(name).close()

    def save_cleaned(self) -> None:
        if self.directory is not None:
            self.directory.save_cleaned()

    def close(self) -> None:
        if self.directory is not None:
            self.directory.close()

    def enforce_retention(self, now_ms: int) -> int:
        """Delete old segments of all logs without `compact` in cleanup.policy; the cleaner does so for the others."""
        return sum(enforce_retention(log, now_ms) for log in self if not log.config.append.compacted)

    def expire_producers(self, now_ms: int) -> None:
        for log in self:
            log.expire_producers(now_ms)
