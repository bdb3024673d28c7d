"""All logs of a broker, and what is done to all of them from time to time: Kafka's LogManager."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from sluice.protocol.types import ZERO_UUID

from .log_config import LogConfig
from .memory_storage import MemoryStorage
from .partition_log import Fails, PartitionLog
from .retention import enforce_retention

if TYPE_CHECKING:
    from sluice.broker.log.disk.log_directory import LogDirectory


class LogManager:
    """Makes and keeps the logs, by name ("topic-0"): in `directory`, or, where that is None, in `memory_bytes` together
    (`sluice.log.memory.bytes`).
    """

    __slots__ = ("_fails", "_logs", "_storage", "budget", "directory")

    def __init__(self, memory_bytes: int, directory: "LogDirectory | None" = None) -> None:
        self.directory = directory
        self._storage = MemoryStorage(memory_bytes)
        self.budget = self._storage.budget
        self._logs: dict[str, PartitionLog] = {}
        self._fails: list[Fails] = []

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self._logs.values())

    def create(self, name: str, config: LogConfig, topic_id: bytes = ZERO_UUID) -> PartitionLog:
        """The log of a partition; there must be none of that name. It is empty, unless the directory has it already.

        Raises OSError where the directory cannot be written.
        """
        assert name not in self._logs
        if self.directory is None:
            log = self.new(name, config, topic_id)
        else:
            log = self.directory.open_log(name, config, topic_id)
        self._logs[name] = log
        if self._fails:
            log.fail_appends(self._failure)
        return log

    def fail_appends(self, fails: Fails) -> Callable[[], None]:
        """Appends to any log, also to those that come later, fail with what `fails` returns of its name, if anything;
        until what is returned is called.
        """
        self._fails.append(fails)
        self._apply_failures()
        return partial(self._fail_no_more, fails)

    def _fail_no_more(self, fails: Fails) -> None:
        self._fails.remove(fails)
        self._apply_failures()

    def _apply_failures(self) -> None:
        for log in self:
            log.fail_appends(self._failure if self._fails else None)

    def _failure(self, name: str) -> OSError | None:
        return next((error for fails in self._fails if (error := fails(name)) is not None), None)

    def new(self, name: str, config: LogConfig, _topic_id: bytes = ZERO_UUID) -> PartitionLog:
        """A log that is kept nowhere; it takes no memory before its first record."""
        return PartitionLog(name, config, self._storage)

    def delete(self, name: str) -> None:
        """Lets the log and its memory go."""
        self._logs.pop(name).close()

    def save_cleaned(self) -> None:
        """Writes down how far logs are compacted."""
        if self.directory is not None:
            self.directory.save_cleaned()

    def close(self) -> None:
        """A clean stop: all that is in a directory is safe there."""
        if self.directory is not None:
            self.directory.close()

    def enforce_retention(self, now_ms: int) -> int:
        """Applies retention.bytes and retention.ms (every log.retention.check.interval.ms); returns segments let go."""
        return sum(enforce_retention(log, now_ms) for log in self)

    def expire_producers(self, now_ms: int) -> None:
        """Forgets idle producers (every producer.id.expiration.check.interval.ms)."""
        for log in self:
            log.expire_producers(now_ms)
