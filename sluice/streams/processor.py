"""The processor API: functions or classes that handle records, and their context.

    def split(ctx: Context, record: Record) -> None:
        for word in (record.value or b"").split():
            ctx.forward(record._replace(key=word, value=word))

    class Latest(Processor):
        def process(self, record: Record) -> None:
            self.ctx.store("latest")[record.key or b""] = record.value or b""

A function is called for each record; a class is instantiated for each task. `forward` calls all child nodes in order
(as in Kafka's Processor API). Sinks send after the whole source record is processed. Keys and values are bytes; the
application serializes.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

from sluice.client.consumer.record import ConsumerRecord, Header

from .errors import StreamsException, TaskId
from .store import GlobalTable, KeyValueStore


class Record(NamedTuple):
    """A record passed between nodes. `timestamp`: event time in ms."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[Header, ...] = ()


class RecordMetadata(NamedTuple):
    """The source of the current record."""

    topic: str
    partition: int
    offset: int


class TaskScope:
    """The state that all contexts of a task share: the current record and node."""

    def __init__(self, task_id: TaskId, tables: Mapping[str, GlobalTable]) -> None:
        self.task_id = task_id
        self.tables = tables
        self.record: ConsumerRecord | None = None
        self.node = ""

    @property
    def timestamp(self) -> int:
        """The timestamp of the current record; 0 before the first."""
        return 0 if self.record is None else self.record.timestamp


class Context:
    """The operations that are available to a processor in one task."""

    def __init__(
        self, scope: TaskScope, children: tuple[Callable[[Record], None], ...], stores: Mapping[str, KeyValueStore]
    ) -> None:
        self._scope = scope
        self._children = children
        self._stores = stores

    @property
    def task_id(self) -> TaskId:
        return self._scope.task_id

    @property
    def metadata(self) -> RecordMetadata:
        """The topic, partition and offset of the source record."""
        record = self._scope.record
        assert record is not None, "no record is being processed"
        return RecordMetadata(record.topic, record.partition, record.offset)

    def forward(self, record: Record) -> None:
        """Pass a record to all child nodes."""
        node = self._scope.node
        for child in self._children:
            child(record)
        self._scope.node = node  # skipped after an error: `node` then names the failed one

    def store(self, name: str) -> KeyValueStore:
        """Return a store of this processor (`process(..., stores=[name])`); raise StreamsException for others."""
        if name not in self._stores:
            has = ", ".join(sorted(self._stores)) or "none"
            raise StreamsException(
                f"store {name} is not a store of this processor; expected one of: {has}", self.task_id
            )
        return self._stores[name]

    def table(self, name: str) -> GlobalTable:
        """Return a global table; raise StreamsException if it does not exist."""
        if name not in self._scope.tables:
            has = ", ".join(sorted(self._scope.tables)) or "none"
            raise StreamsException(f"global table {name} does not exist; expected one of: {has}", self.task_id)
        return self._scope.tables[name]


class Processor:
    """A base class for processors."""

    def __init__(self, ctx: Context) -> None:
        """Create the processor of one task; its stores are restored."""
        self.ctx = ctx

    def process(self, record: Record) -> None:
        """Handle a record."""
        raise NotImplementedError

    def close(self) -> None:
        """Release resources when the task is closed."""


class _FunctionProcessor(Processor):
    def __init__(self, ctx: Context, function: "ProcessorFunction") -> None:
        super().__init__(ctx)
        self._function = function

    def process(self, record: Record) -> None:
        self._function(self.ctx, record)


ProcessorFunction = Callable[[Context, Record], None]
AnyProcessor = ProcessorFunction | type[Processor]


def create_processor(processor: AnyProcessor, ctx: Context) -> Processor:
    if isinstance(processor, type) and issubclass(processor, Processor):
        return processor(ctx)
    return _FunctionProcessor(ctx, cast(ProcessorFunction, processor))  # mypy does not exclude classes
