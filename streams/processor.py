"""What an application writes: functions or classes that take records, and what they are given to do so.

    def split(ctx: Context, record: Record) -> None:
        for word in (record.value or b"").split():
            ctx.forward(record._replace(key=word, value=word))

    class Latest(Processor):
        def process(self, record: Record) -> None:
            self.ctx.store("latest")[record.key or b""] = record.value or b""

A function is called for each record. Of a class there is one object for each task, made when the task begins to run. A
record goes on with `forward`, to all that follow, at once and in order (Kafka's Processor API). Nothing here waits:
what is sent, is sent when the record has been through.

Keys and values are bytes; who serializes is the application, as with the client.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

from sluice.client.consumer.record import ConsumerRecord, Header

from .errors import StreamsException, TaskId
from .store import GlobalTable, KeyValueStore


class Record(NamedTuple):
    """What goes from node to node. `timestamp` in ms: when it happened."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[Header, ...] = ()


class RecordMetadata(NamedTuple):
    """Where the record that is being processed was read."""

    topic: str
    partition: int
    offset: int


class TaskScope:
    """What all contexts of a task share: which record it is at, and in which node."""

    def __init__(self, task_id: TaskId, tables: Mapping[str, GlobalTable]) -> None:
        self.task_id = task_id
        self.tables = tables
        self.record: ConsumerRecord | None = None
        self.node = ""

    @property
    def timestamp(self) -> int:
        """Of the record that is being processed; 0 before the first."""
        return 0 if self.record is None else self.record.timestamp


class Context:
    """What a processor may do, in one task."""

    def __init__(
        self,
        scope: TaskScope,
        children: tuple[Callable[[Record], None], ...],
        stores: Mapping[str, KeyValueStore],
    ) -> None:
        self._scope = scope
        self._children = children
        self._stores = stores

    @property
    def task_id(self) -> TaskId:
        return self._scope.task_id

    @property
    def metadata(self) -> RecordMetadata:
        """Where the record was read that all this comes from."""
        record = self._scope.record
        assert record is not None, "no record is being processed"
        return RecordMetadata(record.topic, record.partition, record.offset)

    def forward(self, record: Record) -> None:
        """Gives a record to all nodes that follow."""
        node = self._scope.node
        for child in self._children:
            child(record)
        self._scope.node = node  # not where a child raised: that is where it happened

    def store(self, name: str) -> KeyValueStore:
        """A store of this processor's (`process(..., stores=[name])`)."""
        if name not in self._stores:
            has = ", ".join(sorted(self._stores)) or "none"
            raise StreamsException(f"store {name} is none of this processor's; those are: {has}", self.task_id)
        return self._stores[name]

    def table(self, name: str) -> GlobalTable:
        """A global table, to look things up in."""
        if name not in self._scope.tables:
            has = ", ".join(sorted(self._scope.tables)) or "none"
            raise StreamsException(f"there is no global table {name}; there are: {has}", self.task_id)
        return self._scope.tables[name]


class Processor:
    """A processor that is a class; to be inherited."""

    def __init__(self, ctx: Context) -> None:
        """For one task, when its stores are restored."""
        self.ctx = ctx

    def process(self, record: Record) -> None:
        """Takes a record."""
        raise NotImplementedError

    def close(self) -> None:
        """The task ends, or is given up."""


class _FunctionProcessor(Processor):
    """A function, as a processor."""

    def __init__(self, ctx: Context, function: "ProcessorFunction") -> None:
        super().__init__(ctx)
        self._function = function

    def process(self, record: Record) -> None:
        self._function(self.ctx, record)


# What `process` of a topology takes.
ProcessorFunction = Callable[[Context, Record], None]
AnyProcessor = ProcessorFunction | type[Processor]


def made_by(processor: AnyProcessor, ctx: Context) -> Processor:
    """The processor of one task."""
    if isinstance(processor, type) and issubclass(processor, Processor):
        return processor(ctx)
    return _FunctionProcessor(ctx, cast(ProcessorFunction, processor))  # mypy takes a class for a function as well
