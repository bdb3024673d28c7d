"""Processor contexts."""

import pytest

from sluice.streams.errors import StreamsException, TaskId
from sluice.streams.processor import Context, Processor, Record, RecordMetadata, TaskScope, create_processor
from sluice.streams.store import GlobalTable, KeyValueStore
from tests.support.streaming_fakes import IN1, record

SCOPE = TaskScope(TaskId(0, 1), {"names": GlobalTable()})
RECORD = Record(b"k", b"v", 1000)


def test_forwarded_record_reaches_all_children_in_order() -> None:
    seen: list[str] = []
    context = Context(SCOPE, (lambda _: seen.append("first"), lambda _: seen.append("second")), {})
    context.forward(RECORD)
    assert seen == ["first", "second"]


def test_current_node_is_available() -> None:
    scope = TaskScope(TaskId(0, 1), {})

    def child(_record: Record) -> None:
        scope.node = "child"

    scope.node = "parent"
    Context(scope, (child,), {}).forward(RECORD)
    assert scope.node == "parent"


def test_record_metadata_is_available() -> None:
    scope = TaskScope(TaskId(0, 1), {})
    scope.record = record(offset=7, partition=IN1)
    context = Context(scope, (), {})
    assert context.metadata == RecordMetadata("in", 1, 7)
    assert context.task_id == TaskId(0, 1)
    assert scope.timestamp == 1000


def test_only_connected_stores_and_existing_tables_are_accessible() -> None:
    store = KeyValueStore(lambda _key, _value: None)
    context = Context(SCOPE, (), {"counts": store})
    assert context.store("counts") is store
    assert context.table("names") is SCOPE.tables["names"]
    with pytest.raises(StreamsException, match="store sums is not a store of this processor; expected one of: counts"):
        context.store("sums")
    with pytest.raises(StreamsException, match="global table ages does not exist; expected one of: names"):
        context.table("ages")


def test_functions_and_classes_are_processors() -> None:
    seen: list[object] = []

    class Seeing(Processor):
        def process(self, record: Record) -> None:
            seen.append((self.ctx, record))

    context = Context(SCOPE, (), {})
    for processor in (Seeing, lambda ctx, record: seen.append((ctx, record))):
        made = create_processor(processor, context)
        made.process(RECORD)
        made.close()
    assert seen == [(context, RECORD)] * 2
