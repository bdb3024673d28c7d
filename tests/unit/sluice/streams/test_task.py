"""A single task: processing, sending, commits and start positions."""

from typing import Any

import pytest

from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.consumer.offset_reset import EARLIEST, LATEST, NONE, OffsetReset
from sluice.client.consumer.record import OffsetAndTimestamp
from sluice.client.errors import KafkaException, TimeoutException
from sluice.streams.errors import ClientTimeoutException, StreamsException, TaskCorruptedException
from sluice.streams.processor import Context, Processor, Record
from sluice.streams.store import GlobalTable
from sluice.streams.task import StreamTask, TaskState
from sluice.streams.topology import Topology
from tests.support.streaming import count
from tests.support.streaming_fakes import IN0, IN1, FakeConsumer, FakeProducer, record, settings_of, task_with


def counting() -> Topology:
    topology = Topology()
    topology.store("counts")
    topology.source("in").process(count, stores=["counts"]).sink("out")
    return topology


async def run(task: StreamTask) -> None:
    await task.initialize()
    await task.complete_restoration()


async def running(topology: Topology, consumer: FakeConsumer, producer: FakeProducer, **given: Any) -> StreamTask:
    task = task_with(topology, consumer, producer, **given)
    await run(task)
    return task


async def test_task_lifecycle_from_created_to_closed() -> None:
    consumer, producer = FakeConsumer(IN0), FakeProducer()
    task = task_with(counting(), consumer, producer)
    states = [task.state]
    await task.initialize()
    states.append(task.state)
    await task.complete_restoration()
    states.append(task.state)
    task.close()
    task.close()
    states.append(task.state)
    await task.revive()
    states.append(task.state)
    assert [state.value for state in states] == ["created", "restoring", "running", "closed", "created"]
    assert consumer.paused == {IN0}


async def test_output_is_sent_and_then_committed() -> None:
    consumer, producer = FakeConsumer(IN0), FakeProducer()
    task = await running(counting(), consumer, producer)
    assert await task.prepare_commit() == {}
    task.add_records(IN0, [record(offset=4, key=b"to"), record(offset=9, key=b"to")])
    assert [await task.process(0) for _ in range(3)] == [True, True, False]
    assert producer.sent == [
        ("app-counts-changelog", b"to", b"1", 0),
        ("out", b"to", b"1", None),
        ("app-counts-changelog", b"to", b"2", 0),
        ("out", b"to", b"2", None),
    ]
    assert task.commit_needed
    assert await task.prepare_commit() == {IN0: OffsetAndMetadata(10, "", 5)}
    assert producer.calls[-1] == "flush"
    task.post_commit()
    assert await task.prepare_commit() == {}


async def test_timed_out_record_is_processed_again_from_its_source() -> None:
    seen: list[bytes | None] = []
    failures = [TimeoutException("late")]

    def slow(ctx: Context, record: Record) -> None:
        seen.append(record.value)
        ctx.forward(record._replace(value=b"before"))
        if failures:
            raise failures.pop()

    topology = Topology()
    topology.source("in").process(slow).sink("out")
    producer = FakeProducer()
    task = await running(topology, FakeConsumer(IN0), producer)
    task.add_records(IN0, [record(b"1"), record(b"2", offset=1)])
    with pytest.raises(TimeoutException):
        await task.process(0)
    assert task.buffered == 2
    assert not task.commit_needed
    assert producer.sent == [], "output of the failed attempt is dropped"
    assert await task.process(0)
    assert await task.process(0)
    assert seen == [b"1", b"1", b"2"]
    assert len(producer.sent) == 2


@pytest.mark.parametrize("error", [ValueError("odd"), KafkaException("not for the task")], ids=["any", "Kafka's"])
async def test_processor_error_names_the_processor_and_the_offset(error: Exception) -> None:
    def inner(_ctx: Context, _record: Record) -> None:
        raise error

    topology = Topology()
    topology.source("in").process(lambda ctx, record: ctx.forward(record), name="outer").process(inner)
    task = await running(topology, FakeConsumer(IN0), FakeProducer())
    task.add_records(IN0, [record(offset=7)])
    with pytest.raises(StreamsException, match="task 0_0: processor inner failed at in-0 offset 7: ") as raised:
        await task.process(0)
    assert raised.value.__cause__ is error
    assert raised.value.task_id == task.id


async def test_failed_delivery_ends_the_commit() -> None:
    producer = FakeProducer()
    producer.outcomes = [TimeoutException("120000 ms")]
    task = await running(counting(), FakeConsumer(IN0), producer)
    task.add_records(IN0, [record()])
    await task.process(0)
    with pytest.raises(TaskCorruptedException):
        await task.prepare_commit()


AN_HOUR = OffsetReset("by_duration", 3_600_000)
AN_HOUR_AGO_MS = 1_700_000_000_000 - 3_600_000


REVIVED = {
    "at the committed offset": (EARLIEST, 12, "12"),
    "no commit: at the beginning": (EARLIEST, None, "beginning"),
    "no commit: at the end": (LATEST, None, "end"),
    "no commit: an hour ago": (AN_HOUR, None, "77"),
    "no reset policy, and none needed": (NONE, 12, "12"),
}


@pytest.mark.parametrize(("reset", "committed", "sought"), REVIVED.values(), ids=REVIVED)
async def test_revived_task_returns_to_its_start_position(
    reset: OffsetReset, committed: int | None, sought: str
) -> None:
    consumer = FakeConsumer(IN0)
    consumer.times = {IN0: OffsetAndTimestamp(77, 1)}
    task = await running(counting(), consumer, FakeProducer(), settings=settings_of(reset=reset))
    assert consumer.sought == {}, "a new task starts at the consumer's position"
    task.add_records(IN0, [record()])
    task.close()
    await task.revive()
    if committed is not None:
        consumer.offsets = {IN0: OffsetAndMetadata(committed)}
    await run(task)
    assert consumer.sought == {IN0: sought}
    assert not await task.process(0), "buffered records are dropped"
    if reset == AN_HOUR:
        assert consumer.calls[-1] == f"offsets_for_times {AN_HOUR_AGO_MS}"


async def test_missing_start_position_is_an_error() -> None:
    task = task_with(counting(), FakeConsumer(IN0), FakeProducer(), settings=settings_of(reset=NONE))
    task.close()
    await task.revive()
    await task.initialize()
    with pytest.raises(StreamsException, match=r"no committed offset for in-0, and auto\.offset\.reset=none"):
        await task.complete_restoration()


async def test_duration_without_newer_records_starts_at_the_end() -> None:
    consumer = FakeConsumer(IN0)
    consumer.times = {IN0: None}
    task = task_with(counting(), consumer, FakeProducer(), settings=settings_of(reset=AN_HOUR))
    task.close()
    await task.revive()
    await run(task)
    assert consumer.sought == {IN0: "end"}


@pytest.mark.parametrize("call", ["committed", f"offsets_for_times {AN_HOUR_AGO_MS}"])
async def test_timed_out_position_lookup_is_retried(call: str) -> None:
    consumer = FakeConsumer(IN0)
    consumer.fail(call, TimeoutException("late"))
    task = task_with(counting(), consumer, FakeProducer(), settings=settings_of(reset=AN_HOUR))
    task.close()
    await task.revive()
    await task.initialize()
    with pytest.raises(ClientTimeoutException, match="Consumer"):
        await task.complete_restoration()
    states = [task.state]
    await task.complete_restoration()
    assert [*states, task.state] == [TaskState.RESTORING, TaskState.RUNNING]


async def test_full_partition_buffer_pauses_fetching() -> None:
    consumer = FakeConsumer(IN0)
    task = await running(counting(), consumer, FakeProducer(), settings=settings_of(buffered=2))
    task.add_records(IN0, [record(offset=offset) for offset in range(2)])
    assert consumer.paused == set()
    task.add_records(IN0, [record(offset=2), record(offset=3)])
    assert consumer.paused == {IN0}
    await task.process(0)
    task.resume_polling()
    assert consumer.paused == {IN0}, "three are buffered"
    await task.process(0)
    task.resume_polling()
    assert consumer.paused == set()


async def test_all_processors_are_closed_even_if_one_fails() -> None:
    closed: list[str] = []

    class Failing(Processor):
        def close(self) -> None:
            closed.append("failing")
            raise ValueError("not closed")

    class Closing(Processor):
        def close(self) -> None:
            closed.append("closing")

    topology = Topology()
    source = topology.source("in")
    for processor in (Closing, Failing, Closing):
        source.process(processor)
    task = await running(topology, FakeConsumer(IN0), FakeProducer())
    task.close()
    assert sorted(closed) == ["closing", "closing", "failing"]


async def test_processors_read_global_tables() -> None:
    table = GlobalTable()
    table.update([(b"v", b"found")])
    topology = Topology()
    topology.global_table("names", "names-topic")

    def look_up(ctx: Context, record: Record) -> None:
        ctx.forward(record._replace(value=ctx.table("names")[record.value or b""]))

    topology.source("in").process(look_up).sink("out")
    producer = FakeProducer()
    task = await running(topology, FakeConsumer(IN0), producer, tables={"names": table})
    task.add_records(IN0, [record(b"v")])
    await task.process(0)
    assert producer.sent == [("out", b"k", b"found", None)]


async def test_task_has_the_partitions_of_one_number() -> None:
    task = task_with(counting(), FakeConsumer(IN1), FakeProducer(), partitions=[IN1])
    assert str(task.id) == "0_1"
    assert [str(partition) for partition in task.changelogs] == ["app-counts-changelog-1"]
