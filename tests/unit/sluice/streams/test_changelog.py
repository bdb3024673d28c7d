"""Store restoration up to the changelogs' end offsets, and its timeouts."""

import pytest

from sluice.client import errors
from sluice.client.consumer.fetch.fetcher import OffsetOutOfRangeError
from sluice.client.consumer.subscription_state import NoSubscriptionError
from sluice.client.errors import KafkaException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.streams.changelog import ChangelogReader
from sluice.streams.errors import StreamsException, TaskCorruptedException
from sluice.streams.task import StreamTask
from tests.support.streaming import now_ms
from tests.support.streaming_fakes import LOG0, LOG1, FakeAdmin, FakeConsumer, reader_of, record, restoring


async def registered(end_offset: int) -> tuple[FakeConsumer, ChangelogReader, StreamTask]:
    """Return a reader of one task, whose changelog ends at this offset, with its consumer."""
    consumer, task = FakeConsumer(), await restoring()
    reader = reader_of(consumer, FakeAdmin({LOG0: end_offset}))
    reader.register(task)
    return consumer, reader, task


async def test_store_is_restored_to_the_end_of_its_changelog() -> None:
    consumer, reader, task = await registered(4)
    consumer.records = [
        [record(b"1", key=b"a", offset=0, partition=LOG0), record(b"2", key=b"b", offset=1, partition=LOG0)],
        [
            record(b"no key", key=None, offset=2, partition=LOG0),
            record(None, key=b"a", offset=3, partition=LOG0),
            record(b"later", key=b"c", offset=4, partition=LOG0),
        ],
    ]
    await reader.restore()
    assert not reader.is_restored(task)
    assert consumer.assigned == {LOG0}
    assert consumer.sought == {LOG0: "beginning"}
    await reader.restore()
    assert reader.is_restored(task)
    assert dict(task.stores["counts"]) == {b"b": b"2"}
    assert reader.restored == 3
    assert consumer.assigned == set()


async def test_empty_changelog_is_restored() -> None:
    reader, task = reader_of(FakeConsumer(), FakeAdmin()), await restoring()
    reader.register(task)
    await reader.restore()
    assert reader.is_restored(task)


@pytest.mark.parametrize(
    "error",
    [TimeoutException("late"), errors.UnknownTopicOrPartitionException("not created yet")],
    ids=["a timeout", "another error, as in Kafka"],
)
async def test_failed_end_offsets_set_a_deadline_for_every_task(error: KafkaException) -> None:
    admin, first, second = FakeAdmin({LOG0: 1, LOG1: 1}), await restoring(0), await restoring(1)
    admin.fail("list_offsets", error)
    consumer = FakeConsumer()
    reader = reader_of(consumer, admin)
    reader.register(first)
    reader.register(second)
    began_ms = now_ms()
    await reader.restore()
    assert [task.timeout.deadline_ms for task in (first, second)] == [began_ms + 5000] * 2
    assert now_ms() == began_ms + 100, "the next attempt after retry.backoff.ms"
    await reader.restore()
    assert [task.timeout.deadline_ms for task in (first, second)] == [None] * 2
    assert consumer.assigned == {LOG0, LOG1}


async def test_expired_restoration_names_the_task() -> None:
    admin, task = FakeAdmin(), await restoring(timeout_ms=150)
    admin.fail("list_offsets", *[TimeoutException("late")] * 3)
    reader = reader_of(FakeConsumer(), admin)
    reader.register(task)
    await reader.restore()
    await reader.restore()
    with pytest.raises(StreamsException, match=r"Admin\.list_offsets of changelogs") as raised:
        await reader.restore()
    assert raised.value.task_id == task.id


async def test_empty_polls_are_no_timeouts_and_records_are_progress() -> None:
    consumer, reader, task = await registered(2)
    consumer.fail("position", TimeoutException("late"))
    began_ms = now_ms()
    await reader.restore()
    deadline_ms = task.timeout.deadline_ms
    assert deadline_ms == began_ms + 100 + 5000, "the position was unknown"
    for _ in range(3):
        await reader.restore()
    assert task.timeout.deadline_ms == deadline_ms
    consumer.records = [[record(partition=LOG0)]]
    await reader.restore()
    assert task.timeout.deadline_ms is None


async def test_truncated_changelog_corrupts_its_task() -> None:
    consumer, first, second = FakeConsumer(), await restoring(0), await restoring(1)
    reader = reader_of(consumer, FakeAdmin({LOG0: 2, LOG1: 2}))
    reader.register(first)
    reader.register(second)
    consumer.fail("poll", OffsetOutOfRangeError({LOG1: 0}), errors.TopicAuthorizationException("no"))
    with pytest.raises(TaskCorruptedException) as raised:
        await reader.restore()
    assert raised.value.tasks == {second.id}
    with pytest.raises(StreamsException, match="changelogs cannot be read"):
        await reader.restore()


async def test_task_revoked_during_a_position_lookup_causes_no_error() -> None:
    consumer, reader, task = await registered(2)
    gone, refused = NoSubscriptionError("not assigned"), errors.TopicAuthorizationException("no")

    async def position(_partition: TopicPartition) -> int:
        if gone in failures:
            reader.unregister(task)
        raise failures.pop(0)

    failures: list[Exception] = [gone, refused]
    consumer.position = position  # type: ignore[assignment,method-assign]  # to take it away meanwhile
    await reader.restore()
    reader.register(task)
    with pytest.raises(StreamsException, match="task 0_0: its changelog cannot be read: no"):
        await reader.restore()


async def test_revoked_task_is_restored_no_further() -> None:
    consumer, reader, task = await registered(2)
    await reader.restore()
    reader.unregister(task)
    assert consumer.assigned == set()
    began_ms = now_ms()
    await reader.restore()
    assert now_ms() == began_ms, "no changelog to poll"
