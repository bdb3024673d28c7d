"""Restoration in the background: hand-over of tasks, and failures."""

import asyncio

import pytest

from sluice.client.consumer.fetch.fetcher import OffsetOutOfRangeError
from sluice.client.errors import TimeoutException
from sluice.streams.errors import StreamsException, TaskCorruptedException
from sluice.streams.state_updater import StateUpdater
from tests.support.streaming_fakes import LOG0, LOG1, FakeAdmin, FakeConsumer, reader_of, record, restoring


async def test_restored_tasks_are_returned() -> None:
    consumer = FakeConsumer()
    quick, slow = await restoring(0, has_store=False), await restoring(1)
    async with StateUpdater(reader_of(consumer, FakeAdmin({LOG1: 2}))) as updater:
        updater.add(quick)
        updater.add(slow)
        await asyncio.sleep(1)
        assert updater.take_restored() == [quick]
        consumer.records = [[record(offset=0, partition=LOG1)], [record(offset=1, partition=LOG1)]]
        await asyncio.sleep(1)
        assert updater.take_restored() == [slow]
        assert updater.take_restored() == []


async def test_timed_out_task_fails_and_others_continue() -> None:
    admin, consumer = FakeAdmin({LOG0: 1}), FakeConsumer()
    admin.fail("list_offsets", *[TimeoutException("late")] * 3)
    impatient, patient = await restoring(1, timeout_ms=150), await restoring(0)
    async with StateUpdater(reader_of(consumer, admin)) as updater:
        updater.add(impatient)
        updater.add(patient)
        await asyncio.sleep(1)
        with pytest.raises(StreamsException, match="task 0_1: "):
            updater.raise_failure()
        updater.raise_failure()
        consumer.records = [[record(partition=LOG0)]]
        await asyncio.sleep(1)
        assert updater.take_restored() == [patient]


async def test_corrupted_tasks_are_dropped() -> None:
    consumer = FakeConsumer()
    consumer.fail("poll", OffsetOutOfRangeError({LOG0: 0}))
    task = await restoring(0)
    async with StateUpdater(reader_of(consumer, FakeAdmin({LOG0: 1}))) as updater:
        updater.add(task)
        await asyncio.sleep(1)
        with pytest.raises(TaskCorruptedException):
            updater.raise_failure()
        assert consumer.assigned == set()


async def test_removed_task_is_not_returned() -> None:
    consumer = FakeConsumer()
    quick, slow = await restoring(0, has_store=False), await restoring(1)
    async with StateUpdater(reader_of(consumer, FakeAdmin({LOG1: 1}))) as updater:
        updater.add(quick)
        updater.add(slow)
        await asyncio.sleep(1)
        updater.remove(quick)
        updater.remove(slow)
        consumer.records = [[record(partition=LOG1)]]
        await asyncio.sleep(1)
        assert updater.take_restored() == []


async def test_internal_error_is_raised() -> None:
    consumer = FakeConsumer()
    consumer.fail("poll", ZeroDivisionError("a mistake"))
    async with StateUpdater(reader_of(consumer, FakeAdmin({LOG0: 1}))) as updater:
        updater.add(await restoring(0))
        await asyncio.sleep(1)
        with pytest.raises(ZeroDivisionError):
            updater.raise_failure()
