"""Global tables: bootstrapping, then continuous updates. test_kip572 covers their timeouts under KIP-572."""

import asyncio

import pytest

from sluice.client import errors
from sluice.client.errors import TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.streams.errors import StreamsException
from sluice.streams.global_table import GlobalSettings, GlobalThread
from tests.support.streaming import now_ms
from tests.support.streaming_fakes import FakeConsumer, clock, record

T0, T1 = TopicPartition("topic", 0), TopicPartition("topic", 1)
SETTINGS = GlobalSettings(
    task_timeout_ms=5000, retry_backoff_ms=100, poll_ms=100, request_timeout_ms=900, profile="kafka"
)


def thread_of(consumer: FakeConsumer, settings: GlobalSettings = SETTINGS, *tables: str) -> GlobalThread:
    return GlobalThread(dict.fromkeys(tables or ("names",), "topic"), consumer, settings, clock())  # type: ignore[arg-type]  # a fake


async def test_partitions_are_read_to_their_ends_one_by_one() -> None:
    consumer = FakeConsumer()
    consumer.ends = {T0: 2, T1: 1}
    consumer.records = [
        [record(b"1", key=b"a", partition=T0)],
        [record(b"nobody's", key=None, offset=1, partition=T0)],
        [record(b"2", key=b"b", partition=T1)],
    ]
    thread = thread_of(consumer)
    await thread.restore()
    assert dict(thread.tables["names"]) == {b"a": b"1", b"b": b"2"}
    assert consumer.assigned == {T1}
    running = asyncio.ensure_future(thread.run())
    consumer.records = [[record(None, key=b"a", offset=2, partition=T0), record(b"3", key=b"c", partition=T1)]]
    await asyncio.sleep(1)
    assert dict(thread.tables["names"]) == {b"b": b"2", b"c": b"3"}
    assert consumer.assigned == {T0, T1}
    assert (consumer.sought[T0], consumer.sought[T1]) == ("2", "1")
    running.cancel()


async def test_two_tables_may_share_a_topic() -> None:
    consumer = FakeConsumer()
    consumer.ends = {T0: 1}
    consumer.records = [[record(b"1", key=b"a", partition=T0)], [record(b"1", key=b"a", partition=T0)]]
    thread = thread_of(consumer, SETTINGS, "names", "again")
    await thread.restore()
    assert dict(thread.tables["names"]) == dict(thread.tables["again"]) == {b"a": b"1"}


async def test_empty_polls_are_timeouts_and_records_are_progress() -> None:
    consumer = FakeConsumer()
    consumer.ends = {T0: 3}
    consumer.records = [[], [], [], [record(partition=T0)]]
    began_ms = now_ms()
    with pytest.raises(StreamsException, match=r"5000 ms without progress .*no records were read from topic-0"):
        await thread_of(consumer).restore()
    assert now_ms() - began_ms == 3000 + 1000 + 5000, "one second each; the first after the record sets the deadline"


@pytest.mark.parametrize("call", ["partitions_for", "end_offsets", "position"])
async def test_each_call_has_its_own_deadline(call: str) -> None:
    consumer = FakeConsumer()
    consumer.ends = {T0: 0}
    consumer.fail(call, *[TimeoutException("late")] * 10)
    await thread_of(consumer).restore()
    assert consumer.calls.count(call) == 11


async def test_other_error_ends_the_thread() -> None:
    consumer = FakeConsumer()
    consumer.ends = {T0: 0}
    consumer.fail("end_offsets", errors.TopicAuthorizationException("not yours"))
    with pytest.raises(StreamsException, match="global tables cannot be read: not yours"):
        await thread_of(consumer).restore()
    consumer.fail("poll", errors.TopicAuthorizationException("not yours any more"))
    with pytest.raises(StreamsException, match="global tables cannot be read: not yours any more"):
        await thread_of(consumer).run()
