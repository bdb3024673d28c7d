"""What was committed of repartition topics is deleted, by and by; and where it cannot be, nothing else fails."""

import asyncio
import logging
from collections.abc import Mapping

import pytest

from sluice.client import errors
from sluice.client.admin import Outcomes
from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.errors import KafkaException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.streams.repartition_purge import RepartitionPurge
from tests.support.streaming import Stage, streaming, word_count
from tests.support.streaming_fakes import IN0, Script, clock, in_virtual_time

R0, R1 = TopicPartition("app-words-repartition", 0), TopicPartition("app-words-repartition", 1)


class DeletingAdmin(Script):
    """Tells of each partition what a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: list[dict[TopicPartition, int]] = []
        self.told: dict[TopicPartition, KafkaException] = {}

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, int]:
        self.called("delete_records")
        self.deleted.append(dict(before))
        return Outcomes({partition: self.told.get(partition, offset) for partition, offset in before.items()})


def committed(*partitions: TopicPartition, offset: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return dict.fromkeys(partitions, OffsetAndMetadata(offset))


def test_the_newest_offsets_of_repartition_topics_are_deleted_up_to() -> None:
    async def test() -> None:
        admin = DeletingAdmin()
        async with RepartitionPurge({R0.topic}, admin, clock(), 1000) as purge:
            purge.committed(committed(R0, R1, IN0, offset=5))
            purge.committed(committed(R0, IN0, offset=9))
            await asyncio.sleep(3.5)
            assert admin.deleted == [{R0: 9, R1: 5}], "once: there was nothing new"
            purge.committed(committed(R1, offset=6))
            await asyncio.sleep(1)
            assert admin.deleted[1:] == [{R1: 6}]

    in_virtual_time(test)


def test_what_fails_is_told_and_tried_with_the_next_commit(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        admin = DeletingAdmin()
        admin.fail("delete_records", TimeoutException("late"))
        admin.told = {R0: errors.TopicAuthorizationException("no")}
        async with RepartitionPurge({R0.topic}, admin, clock(), 0) as purge:
            for offset in (1, 2):
                purge.committed(committed(R0, offset=offset))
                await asyncio.sleep(1)

    with caplog.at_level(logging.INFO, logger="sluice.streams"):
        in_virtual_time(test)
    assert caplog.messages == [
        f"records of {R0} before 1 were not deleted: late",
        f"records of {R0} before 2 were not deleted: no",
    ]


def test_an_application_keeps_of_them_only_what_it_needs() -> None:
    async def test(stage: Stage) -> None:
        async with stage.streams(word_count(), {"repartition.purge.interval.ms": 2000}) as streams:
            await stage.running(streams)
            await stage.write("lines", b"to be or not to be")
            await asyncio.sleep(10)
            assert await stage.read("app-words-repartition") == []
            await stage.write("lines", b"that is")
            await asyncio.sleep(10)
        assert len(await stage.latest("word-counts")) == 6

    streaming(test, {"lines": 2, "word-counts": 1})
