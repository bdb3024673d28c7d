"""Deletion of committed records from repartition topics; its failures are only logged."""

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
from tests.support.streaming import streaming, word_count
from tests.support.streaming_fakes import IN0, FakeAdmin, clock

R0, R1 = TopicPartition("app-words-repartition", 0), TopicPartition("app-words-repartition", 1)


class DeletingAdmin(FakeAdmin):
    """An admin client that returns scripted results per partition."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: list[dict[TopicPartition, int]] = []
        self.errors_by_partition: dict[TopicPartition, KafkaException] = {}

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, int]:
        self.called("delete_records")
        self.deleted.append(dict(before))
        return Outcomes(
            {partition: self.errors_by_partition.get(partition, offset) for partition, offset in before.items()}
        )


def committed(*partitions: TopicPartition, offset: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return dict.fromkeys(partitions, OffsetAndMetadata(offset))


async def test_records_before_the_latest_committed_offset_are_deleted() -> None:
    admin = DeletingAdmin()
    async with RepartitionPurge({R0.topic}, admin, clock(), 1000) as purge:  # type: ignore[arg-type]  # a fake
        purge.committed(committed(R0, R1, IN0, offset=5))
        purge.committed(committed(R0, IN0, offset=9))
        await asyncio.sleep(3.5)
        assert admin.deleted == [{R0: 9, R1: 5}], "once: no newer offset"
        purge.committed(committed(R1, offset=6))
        await asyncio.sleep(1)
        assert admin.deleted[1:] == [{R1: 6}]


async def test_failed_deletion_is_logged_and_retried_with_the_next_commit(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="sluice.streams")
    admin = DeletingAdmin()
    admin.fail("delete_records", TimeoutException("late"))
    admin.errors_by_partition = {R0: errors.TopicAuthorizationException("no")}
    async with RepartitionPurge({R0.topic}, admin, clock(), 0) as purge:  # type: ignore[arg-type]  # a fake
        for offset in (1, 2):
            purge.committed(committed(R0, offset=offset))
            await asyncio.sleep(1)
    assert caplog.messages == [
        f"records of {R0} before 1 were not deleted: late",
        f"records of {R0} before 2 were not deleted: no",
    ]


async def test_application_keeps_only_uncommitted_repartition_records() -> None:
    async with streaming({"lines": 2, "word-counts": 1}) as stage:
        async with stage.streams(word_count(), {"repartition.purge.interval.ms": 2000}) as streams:
            await stage.running(streams)
            await stage.write("lines", b"to be or not to be")
            await asyncio.sleep(10)
            assert await stage.read("app-words-repartition") == []
            await stage.write("lines", b"that is")
            await asyncio.sleep(10)
        assert len(await stage.latest("word-counts")) == 6
