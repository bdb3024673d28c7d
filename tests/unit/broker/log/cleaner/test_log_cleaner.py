"""Periodic compaction: start conditions, small steps, interruptions and errors."""

import logging
from typing import Any

import pytest

from sluice.broker.log.cleaner.log_cleaner import SLICE_MS, LogCleaner
from sluice.broker.log.retention import enforce_retention
from sluice.broker.metadata.topic import Partition
from sluice.clock import ManualClock
from sluice.protocol.records.batch import HEADER_BYTES
from sluice.protocol.records.build import build_batch, stamp_checksum
from sluice.protocol.records.record import Record, iter_records
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker

BACKOFF_MS = 15_000


class SlowClock(ManualClock):
    """A clock that advances with every reading, to simulate the duration of work."""

    def monotonic_ms(self) -> float:
        self._now_ms += 0.25
        return self._now_ms


def compacted_topic(broker: VirtualBroker, name: str = "t", **configs: Any) -> Partition:
    """Create a compacted topic with one batch per segment."""
    return broker.topic(name, **({"cleanup_policy": "compact", "segment_ms": "5"} | configs)).partitions[0]


def append(partition: Partition, *keys: bytes | None, at_ms: int) -> None:
    for number, key in enumerate(keys):
        data = build_batch([Record(0, WALL_START_MS + at_ms + 10 * number, key, b"v")])
        assert partition.log.append(memoryview(bytearray(data)), WALL_START_MS, 0).error_code == 0


def remaining_offsets(partition: Partition) -> list[int]:
    log = partition.log
    return [
        record.offset
        for segment in log.segments
        for _, batch in segment.batches(segment.base_offset)
        for record in iter_records(batch)
    ]


def test_dirty_log_is_compacted_after_the_backoff(broker: VirtualBroker) -> None:
    partition = compacted_topic(broker)
    append(partition, b"a", b"b", b"a", b"c", b"b", at_ms=0)
    broker.advance(BACKOFF_MS - 1)
    assert remaining_offsets(partition) == [0, 1, 2, 3, 4]
    broker.advance(1)
    assert remaining_offsets(partition) == [1, 2, 3, 4]  # the last segment is active: its `b` is ignored
    append(partition, b"c", at_ms=60)
    broker.advance(BACKOFF_MS)
    assert remaining_offsets(partition) == [1, 2, 3, 4, 5]  # only one of four segments is dirty
    append(partition, b"d", b"e", b"f", at_ms=70)
    broker.advance(BACKOFF_MS)
    assert remaining_offsets(partition) == [2, 4, 5, 6, 7, 8]
    assert partition.log.first_dirty_offset == 8


NOT_COMPACTED = {
    "the cleaner is turned off": (["log.cleaner.enable=false"], {}),
    "the topic is not compacted": ([], {"cleanup_policy": "delete"}),
    "no log reaches the dirty ratio": ([], {"min_cleanable_dirty_ratio": "1.0"}),
    "all records are in the active segment": ([], {"segment_ms": "1000"}),
}


@pytest.mark.parametrize(("overrides", "configs"), NOT_COMPACTED.values(), ids=NOT_COMPACTED)
def test_log_is_not_compacted(overrides: list[str], configs: dict[str, str]) -> None:
    broker = VirtualBroker(*overrides)
    partition = compacted_topic(broker, **configs)
    append(partition, b"a", b"a", b"a", at_ms=0)
    broker.advance(10 * BACKOFF_MS)
    assert remaining_offsets(partition) == [0, 1, 2]


def test_log_is_compacted_after_its_cleanup_policy_changes() -> None:
    broker = VirtualBroker("log.cleaner.backoff.ms=1000")
    partition = compacted_topic(broker, cleanup_policy="delete")
    append(partition, b"a", None, b"a", b"a", at_ms=0)
    broker.advance(2000)
    assert remaining_offsets(partition) == [0, 1, 2, 3]
    broker.cluster.configure(partition.topic, {**partition.topic.config.own, "cleanup.policy": "compact,delete"})
    broker.advance(1000)
    assert remaining_offsets(partition) == [2, 3]


def long_cleaning(clock: ManualClock) -> tuple[LogCleaner, VirtualBroker, Partition]:
    broker = VirtualBroker("log.cleaner.enable=false")
    partition = compacted_topic(broker)
    append(partition, *[b"a", b"b"] * 100, at_ms=0)
    cleaner = LogCleaner(broker.cluster.logs, broker.cluster.config, clock, broker.cluster.runtime.scheduler)
    return cleaner, broker, partition


def test_cleaning_yields_after_each_step() -> None:
    cleaner, broker, partition = long_cleaning(SlowClock(WALL_START_MS))
    cleaner.start()
    steps = 0
    while remaining_offsets(partition) != [197, 198, 199]:
        cleaner.start()  # ignored during a cleaning
        broker.advance(SLICE_MS)
        steps += 1
        assert steps < 1000
    assert steps > 20  # a step reads the clock about eight times, once after each of 400 batches


def test_deleting_a_topic_ends_its_cleaning() -> None:
    cleaner, broker, partition = long_cleaning(SlowClock(WALL_START_MS))
    cleaner.start()
    broker.cluster.delete(partition.topic)
    other = compacted_topic(broker, "other")
    append(other, b"a", b"a", b"a", at_ms=0)
    broker.advance(10_000)
    assert partition.log.segments == []
    cleaner.start()
    broker.advance(10_000)
    assert remaining_offsets(other) == [1, 2]


REMOVALS = {"records are deleted": (False, 3), "their segment is removed": (True, 199)}


@pytest.mark.parametrize(("is_removed", "remaining"), REMOVALS.values(), ids=REMOVALS)
def test_removal_of_a_segment_during_a_cleaning_ends_it(is_removed: bool, remaining: int) -> None:
    cleaner, broker, partition = long_cleaning(SlowClock(WALL_START_MS))
    cleaner.start()
    for _ in range(70):  # in the middle of the first group, after all keys were collected
        broker.advance(SLICE_MS)
    partition.log.delete_records_before(1)
    if is_removed:
        enforce_retention(partition.log, 0)
    broker.advance(10_000)
    assert len(remaining_offsets(partition)) == remaining
    cleaner.start()
    broker.advance(10_000)
    assert remaining_offsets(partition) == [197, 198, 199]


def test_old_segments_of_compacted_logs_are_deleted_by_the_cleaner_only(broker: VirtualBroker) -> None:
    uncleaned = {"min_cleanable_dirty_ratio": "1"}
    compacted, both, deleted = (
        compacted_topic(broker, name, cleanup_policy=policy, **uncleaned)
        for name, policy in (("compacted", "compact"), ("both", "compact,delete"), ("deleted", "delete"))
    )
    broker.advance(BACKOFF_MS - 1)
    for partition in (compacted, both, deleted):
        append(partition, b"a", b"b", b"c", at_ms=0)
        partition.log.delete_records_before(2)
    broker.cluster.logs.enforce_retention(WALL_START_MS)
    assert [remaining_offsets(each) for each in (compacted, both, deleted)] == [[0, 1, 2], [0, 1, 2], [2]]
    broker.advance(1)
    assert [remaining_offsets(each) for each in (compacted, both, deleted)] == [[2], [2], [2]]


def test_compaction_of_an_unreadable_log_is_disabled_and_other_logs_are_compacted(caplog: Any) -> None:
    broker = VirtualBroker("sluice.record.validation.max.bytes=0")
    broken, readable = compacted_topic(broker, "broken", cleanup_policy="delete"), compacted_topic(broker, "fine")
    data = bytearray(build_batch([Record(0, WALL_START_MS, b"a" * 100, b"v")]))
    data[HEADER_BYTES] = 0x7E  # the length of the record
    stamp_checksum(data)
    assert broken.log.append(memoryview(data), WALL_START_MS, 0).error_code == 0
    append(broken, b"a", b"a", at_ms=10)
    broker.cluster.configure(broken.topic, {**broken.topic.config.own, "cleanup.policy": "compact"})
    append(readable, b"a", b"a", b"a", at_ms=0)
    with caplog.at_level(logging.WARNING, "sluice.broker"):
        broker.advance(BACKOFF_MS * 3)
        broken.log.delete_records_before(2)
        broker.advance(BACKOFF_MS)
    assert [record.message.split(":")[0] for record in caplog.records] == ["compaction of broken-0 disabled"]
    assert len(broken.log.segments) == 3, "as in Kafka, its old segments are not deleted"
    assert remaining_offsets(readable) == [1, 2]
