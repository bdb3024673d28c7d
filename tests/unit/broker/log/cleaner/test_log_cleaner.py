"""Compaction while the broker runs: when it begins, that it lets others in, what ends it and what turns it off."""

import logging
from typing import Any

import pytest

from sluice.broker.log.cleaner.log_cleaner import SLICE_MS, LogCleaner
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import Partition, Topic
from sluice.clock import ManualClock
from sluice.protocol.records.batch import HEADER_BYTES
from sluice.protocol.records.build import build_batch, stamp_checksum
from sluice.protocol.records.record import Record, iter_records
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker

BACKOFF_MS = 15_000


class SlowClock(ManualClock):
    """A clock that moves on each time somebody looks: work takes time."""

    def monotonic_ms(self) -> float:
        self._now_ms += 0.25
        return self._now_ms


def compacted(broker: VirtualBroker, name: str = "t", **configs: str) -> Partition:
    """A compacted topic in which each batch has a segment of its own."""
    own = {"cleanup.policy": "compact", "segment.ms": "5", **{key.replace("_", "."): v for key, v in configs.items()}}
    topic = broker.cluster.create(NewTopic(name, 1, configs=own))
    assert isinstance(topic, Topic)
    return topic.partitions[0]


def append(partition: Partition, *keys: bytes | None, at_ms: int) -> None:
    for number, key in enumerate(keys):
        data = build_batch([Record(0, WALL_START_MS + at_ms + 10 * number, key, b"v")])
        assert partition.log.append(memoryview(bytearray(data)), WALL_START_MS, 0).error_code == 0


def left(partition: Partition) -> list[int]:
    """The offsets that are left."""
    log = partition.log
    return [
        record.offset
        for segment in log.segments
        for _, batch in segment.batches(segment.base_offset)
        for record in iter_records(batch)
    ]


def test_dirty_log_is_compacted_once_the_backoff_has_passed() -> None:
    broker = VirtualBroker()
    partition = compacted(broker)
    append(partition, b"a", b"b", b"a", b"c", b"b", at_ms=0)
    broker.advance(BACKOFF_MS - 1)
    assert left(partition) == [0, 1, 2, 3, 4]
    broker.advance(1)
    assert left(partition) == [1, 2, 3, 4]  # the last segment is active: its `b` hides none
    append(partition, b"c", at_ms=60)
    broker.advance(BACKOFF_MS)
    assert left(partition) == [1, 2, 3, 4, 5]  # one of four segments is new
    append(partition, b"d", b"e", b"f", at_ms=70)
    broker.advance(BACKOFF_MS)
    assert left(partition) == [2, 4, 5, 6, 7, 8]
    assert partition.log.first_dirty_offset == 8


@pytest.mark.parametrize(
    ("overrides", "configs"),
    [
        pytest.param(["log.cleaner.enable=false"], {}, id="the cleaner is turned off"),
        pytest.param([], {"cleanup_policy": "delete"}, id="the topic is not compacted"),
        pytest.param([], {"min_cleanable_dirty_ratio": "1.0"}, id="no log is so dirty"),
        pytest.param([], {"segment_ms": "1000"}, id="all is in the active segment"),
    ],
)
def test_nothing_is_compacted_where(overrides: list[str], configs: dict[str, str]) -> None:
    broker = VirtualBroker(*overrides)
    partition = compacted(broker, **configs)
    append(partition, b"a", b"a", b"a", at_ms=0)
    broker.advance(10 * BACKOFF_MS)
    assert left(partition) == [0, 1, 2]


def test_topic_that_becomes_compacted_is_compacted() -> None:
    broker = VirtualBroker("log.cleaner.backoff.ms=1000")
    partition = compacted(broker, cleanup_policy="delete")
    append(partition, b"a", None, b"a", b"a", at_ms=0)
    broker.advance(2000)
    assert left(partition) == [0, 1, 2, 3]
    broker.cluster.configure(partition.topic, {**partition.topic.config.own, "cleanup.policy": "compact,delete"})
    broker.advance(1000)
    assert left(partition) == [2, 3]


def long_cleaning(clock: ManualClock) -> tuple[LogCleaner, VirtualBroker, Partition]:
    broker = VirtualBroker("log.cleaner.enable=false")
    partition = compacted(broker)
    append(partition, *[b"a", b"b"] * 100, at_ms=0)
    cleaner = LogCleaner(broker.cluster.logs, broker.cluster.config, clock, broker.cluster.scheduler)
    return cleaner, broker, partition


def test_cleaning_lets_others_in_after_each_turn() -> None:
    cleaner, broker, partition = long_cleaning(SlowClock(WALL_START_MS))
    cleaner.start()
    turns = 0
    while left(partition) != [197, 198, 199]:
        cleaner.start()  # it is at work: this does nothing
        broker.advance(SLICE_MS)
        turns += 1
        assert turns < 1000
    assert turns > 20  # about eight looks at the clock a turn, and one after each of 400 batches


def test_topic_that_is_deleted_is_not_compacted_to_the_end() -> None:
    cleaner, broker, partition = long_cleaning(SlowClock(WALL_START_MS))
    cleaner.start()
    broker.cluster.delete(partition.topic)
    other = compacted(broker, "other")
    append(other, b"a", b"a", b"a", at_ms=0)
    broker.advance(10_000)
    assert partition.log.segments == []
    cleaner.start()
    broker.advance(10_000)
    assert left(other) == [1, 2]


def test_records_that_go_meanwhile_end_the_cleaning() -> None:
    cleaner, broker, partition = long_cleaning(SlowClock(WALL_START_MS))
    cleaner.start()
    for _ in range(70):  # it has all keys, and is in the middle of the first group
        broker.advance(SLICE_MS)
    partition.log.delete_records_before(1)
    broker.advance(10_000)
    assert len(left(partition)) == 199
    cleaner.start()
    broker.advance(10_000)
    assert left(partition) == [197, 198, 199]


def test_log_that_cannot_be_read_is_left_alone_and_the_others_are_compacted(caplog: Any) -> None:
    broker = VirtualBroker("sluice.record.validation.max.bytes=0")
    broken, fine = compacted(broker, "broken", cleanup_policy="delete"), compacted(broker, "fine")
    data = bytearray(build_batch([Record(0, WALL_START_MS, b"a" * 100, b"v")]))
    data[HEADER_BYTES] = 0x7E  # the length of the record
    stamp_checksum(data)
    assert broken.log.append(memoryview(data), WALL_START_MS, 0).error_code == 0
    append(broken, b"a", b"a", at_ms=10)
    broker.cluster.configure(broken.topic, {**broken.topic.config.own, "cleanup.policy": "compact"})
    append(fine, b"a", b"a", b"a", at_ms=0)
    with caplog.at_level(logging.WARNING, "sluice.broker"):
        broker.advance(BACKOFF_MS * 3)
    assert [record.message.split(":")[0] for record in caplog.records] == ["compaction of broken-0 disabled"]
    assert len(broken.log.segments) == 3
    assert left(fine) == [1, 2]
