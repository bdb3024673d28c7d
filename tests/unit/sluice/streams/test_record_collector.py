"""Records that a task sends: collected, then passed to the producer; and delivery errors."""

import asyncio

import pytest

from sluice.client import errors
from sluice.client.config import Profile
from sluice.client.errors import KafkaException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.streams.errors import (
    ClientTimeoutException,
    StreamsException,
    TaskCorruptedException,
    TaskId,
    TaskMigratedException,
)
from sluice.streams.processor import Record
from sluice.streams.record_collector import RecordCollector
from tests.support.streaming_fakes import FakeProducer

TASK = TaskId(0, 1)
RECORD = Record(b"k", b"v", 1000)


def collector(producer: FakeProducer, profile: Profile = "kafka") -> RecordCollector:
    return RecordCollector(TASK, producer, profile)  # type: ignore[arg-type]  # a fake


async def send_and_flush(found: RecordCollector) -> None:
    await found.send_all()
    await found.flush()


async def test_records_are_sent_together_and_in_order() -> None:
    producer = FakeProducer()
    found = collector(producer)
    found.add("a", RECORD)
    found.add("b", RECORD, partition=1)
    found.add("c", RECORD, partitioner=lambda record, partitions: partitions - len(record.value or b""))
    assert producer.sent == []
    await found.send_all()
    await found.send_all()
    assert [(topic, partition) for topic, _, _, partition in producer.sent] == [("a", None), ("b", 1), ("c", 1)]


async def test_discarded_records_are_not_sent() -> None:
    producer = FakeProducer()
    found = collector(producer)
    found.add("a", RECORD)
    found.drop()
    await found.send_all()
    assert producer.sent == []


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (TimeoutException("120000 ms have passed"), TaskCorruptedException),
        (errors.NotEnoughReplicasException("there were two"), TaskCorruptedException),
        (errors.OutOfOrderSequenceException("5 after 3"), TaskMigratedException),
        (errors.ProducerFencedException("there is a newer one"), TaskMigratedException),
        (errors.TopicAuthorizationException("no"), StreamsException),
        (errors.RecordTooLargeException("too large"), StreamsException),
        (errors.KafkaException("no bytes"), StreamsException),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.__name__,
)
@pytest.mark.parametrize("how", ["send_all", "flush"])
async def test_failed_delivery_is_raised_by_the_next_send_or_commit(
    failure: KafkaException, raised: type[StreamsException], how: str
) -> None:
    producer = FakeProducer()
    producer.outcomes = [failure, TimeoutException("later failures are ignored")]
    found = collector(producer)
    found.add("a", RECORD)
    found.add("a", RECORD)
    await found.send_all()
    await asyncio.sleep(0)
    found.add("b", RECORD)
    with pytest.raises(StreamsException, match=r"task 0_1: .*topic a was not delivered") as met:
        await getattr(found, how)()
    assert type(met.value) is raised
    if isinstance(met.value, TaskCorruptedException):
        assert met.value.tasks == {TASK}


async def test_reset_forgets_earlier_delivery_failures() -> None:
    producer = FakeProducer()
    producer.outcomes = [TimeoutException("late")]
    found = collector(producer)
    found.add("a", RECORD)
    await found.send_all()
    await found.settle()
    await found.flush()
    assert producer.calls.count("flush") == 2, "pending deliveries have ended"


BLOCKED_SENDS = {
    "Kafka treats it as a failed delivery": ("kafka", TaskCorruptedException),
    "the KIP treats it as any timeout": ("kip", ClientTimeoutException),
}


@pytest.mark.parametrize(("profile", "raised"), BLOCKED_SENDS.values(), ids=BLOCKED_SENDS)
async def test_blocked_send(profile: Profile, raised: type[Exception]) -> None:
    producer = FakeProducer()
    producer.fail("send", TimeoutException("no memory"))
    found = collector(producer, profile)
    found.add("a", RECORD)
    with pytest.raises(raised, match="no memory"):
        await send_and_flush(found)


@pytest.mark.parametrize("profile", ["kafka", "kip"])
async def test_partition_lookup_timeout_always_counts(profile: Profile) -> None:
    producer = FakeProducer()
    producer.fail("partitions_for", TimeoutException("no metadata"), errors.TopicAuthorizationException("no"))
    found = collector(producer, profile)
    found.add("a", RECORD, partitioner=lambda _record, _partitions: 0)
    with pytest.raises(ClientTimeoutException, match=r"Producer\.partitions_for a: no metadata"):
        await found.send_all()
    found.add("a", RECORD, partitioner=lambda _record, _partitions: 0)
    with pytest.raises(StreamsException, match="cannot look up the partitions of topic a"):
        await found.send_all()


async def test_changelog_must_have_the_tasks_partition() -> None:
    producer = FakeProducer(partitions=1)
    found = collector(producer)
    await found.initialize([TopicPartition("app-counts-changelog", 0)])
    with pytest.raises(StreamsException, match="topic app-counts-changelog has no partition 1"):
        await found.initialize([TopicPartition("app-counts-changelog", 1)])
    producer.fail("partitions_for", TimeoutException("no metadata"))
    with pytest.raises(ClientTimeoutException):
        await found.initialize([TopicPartition("app-counts-changelog", 0)])
