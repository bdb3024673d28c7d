"""What a task sends: collected, then given to the producer; and what a task meets when that failed."""

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
from tests.support.streaming_fakes import FakeProducer, in_virtual_time

TASK = TaskId(0, 1)
RECORD = Record(b"k", b"v", 1000)


def collector(producer: FakeProducer, profile: Profile = "kafka") -> RecordCollector:
    return RecordCollector(TASK, producer, profile)


async def send_and_flush(found: RecordCollector) -> None:
    await found.send_all()
    await found.flush()


def test_records_are_sent_when_all_are_collected_and_in_their_order() -> None:
    async def test() -> None:
        producer = FakeProducer()
        found = collector(producer)
        found.add("a", RECORD)
        found.add("b", RECORD, partition=1)
        found.add("c", RECORD, partitioner=lambda record, partitions: partitions - len(record.value or b""))
        assert producer.sent == []
        await found.send_all()
        await found.send_all()
        assert [(topic, partition) for topic, _, _, partition in producer.sent] == [("a", None), ("b", 1), ("c", 1)]

    in_virtual_time(test)


def test_what_is_dropped_is_not_sent() -> None:
    async def test() -> None:
        producer = FakeProducer()
        found = collector(producer)
        found.add("a", RECORD)
        found.drop()
        await found.send_all()
        assert producer.sent == []

    in_virtual_time(test)


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (TimeoutException("120000 ms have passed"), TaskCorruptedException),
        (errors.NotEnoughReplicasException("there were two"), TaskCorruptedException),
        (errors.OutOfOrderSequenceException("5 after 3"), TaskMigratedException),
        (errors.ProducerFencedException("there is a newer one"), TaskMigratedException),
        (errors.TopicAuthorizationException("no"), StreamsException),
        (errors.RecordTooLargeException("too large"), StreamsException),
        (errors.SerializationException("no bytes"), StreamsException),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.__name__,
)
@pytest.mark.parametrize("how", ["send_all", "flush"])
def test_a_failed_delivery_is_met_with_the_next_send_or_commit(
    failure: KafkaException, raised: type[StreamsException], how: str
) -> None:
    async def test() -> None:
        producer = FakeProducer()
        producer.outcomes = [failure, TimeoutException("what comes after counts for nothing")]
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

    in_virtual_time(test)


def test_who_begins_anew_has_forgotten_what_failed() -> None:
    async def test() -> None:
        producer = FakeProducer()
        producer.outcomes = [TimeoutException("late")]
        found = collector(producer)
        found.add("a", RECORD)
        await found.send_all()
        await found.settle()
        await found.flush()
        assert producer.calls.count("flush") == 2, "what is on its way has ended before"

    in_virtual_time(test)


@pytest.mark.parametrize(
    ("profile", "raised"),
    [
        pytest.param("kafka", TaskCorruptedException, id="with Kafka it is as a delivery that failed"),
        pytest.param("kip", ClientTimeoutException, id="by the text it is a timeout as any other"),
    ],
)
def test_a_send_that_is_blocked(profile: Profile, raised: type[Exception]) -> None:
    async def test() -> None:
        producer = FakeProducer()
        producer.fail("send", TimeoutException("no memory"))
        found = collector(producer, profile)
        found.add("a", RECORD)
        with pytest.raises(raised, match="no memory"):
            await send_and_flush(found)

    in_virtual_time(test)


@pytest.mark.parametrize("profile", ["kafka", "kip"])
def test_asking_for_partitions_counts_always(profile: Profile) -> None:
    async def test() -> None:
        producer = FakeProducer()
        producer.fail("partitions_for", TimeoutException("no metadata"), errors.TopicAuthorizationException("no"))
        found = collector(producer, profile)
        found.add("a", RECORD, partitioner=lambda _record, _partitions: 0)
        with pytest.raises(ClientTimeoutException, match=r"Producer\.partitions_for a: no metadata"):
            await found.send_all()
        found.add("a", RECORD, partitioner=lambda _record, _partitions: 0)
        with pytest.raises(StreamsException, match="cannot look up the partitions of topic a"):
            await found.send_all()

    in_virtual_time(test)


def test_a_changelog_has_to_have_the_tasks_partition() -> None:
    async def test() -> None:
        producer = FakeProducer(partitions=1)
        found = collector(producer)
        await found.initialize([TopicPartition("app-counts-changelog", 0)])
        with pytest.raises(StreamsException, match="topic app-counts-changelog has no partition 1"):
            await found.initialize([TopicPartition("app-counts-changelog", 1)])
        producer.fail("partitions_for", TimeoutException("no metadata"))
        with pytest.raises(ClientTimeoutException):
            await found.initialize([TopicPartition("app-counts-changelog", 0)])

    in_virtual_time(test)
