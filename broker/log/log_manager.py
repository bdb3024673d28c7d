"""All logs of a broker, and what is done to all of them from time to time: Kafka's LogManager."""

from collections.abc import Iterator

from .log_config import LogConfig
from .memory_storage import MemoryStorage
from .partition_log import PartitionLog


class LogManager:
    """Makes and keeps the logs, by name ("topic-0"); they share `memory_bytes` (`sluice.log.memory.bytes`)."""

    __slots__ = ("_logs", "_storage", "budget")

    def __init__(self, memory_bytes: int) -> None:
        self._storage = MemoryStorage(memory_bytes)
        self.budget = self._storage.budget
        self._logs: dict[str, PartitionLog] = {}

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self._logs.values())

    def create(self, name: str, config: LogConfig) -> PartitionLog:
        """A new, empty log; there must be none of that name."""
        assert name not in self._logs
        log = self._logs[name] = self.new(name, config)
        return log

    def new(self, name: str, config: LogConfig) -> PartitionLog:
        """A log that is kept nowhere; it takes no memory before its first record."""
        return PartitionLog(name, config, self._storage)

    def delete(self, name: str) -> None:
        """Lets the log and its memory go."""
        self._logs.pop(name).close()

    def enforce_retention(self, now_ms: int) -> int:
        """Applies retention.bytes and retention.ms (every log.retention.check.interval.ms); returns segments let go."""
        return sum(log.enforce_retention(now_ms) for log in self)

    def expire_producers(self, now_ms: int) -> None:
        """Forgets idle producers (every producer.id.expiration.check.interval.ms)."""
        for log in self:
            log.expire_producers(now_ms)
