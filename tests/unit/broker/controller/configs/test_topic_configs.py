"""Effect of each topic config that the docs describe as effective, before and after it is altered.

Each scenario creates a topic with a first value, observes it, alters the value with IncrementalAlterConfigs while the
topic is in use, and observes it again.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from sluice.broker.log.cleaner.cleaner import LogCleaning
from sluice.broker.log.cleaner.selection import to_clean
from sluice.broker.log.retention import enforce_retention
from sluice.broker.metadata.topic import Partition
from sluice.config.property_table import TOPIC_PROPERTIES
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import BatchHeader
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.compression import GZIP
from sluice.protocol.records.record import Record
from tests.support.configs import config_changes
from tests.support.records import fetch, fetched
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker

TOPIC = 2
WELL_COMPRESSED = b"".join(b"line %d of many that are much alike\n" % (number * number) for number in range(300))
HOUR_MS = 3_600_000


class World:
    """A broker with topic `t`, in memory or, for configs of files, in a directory."""

    def __init__(self, path: Path | None, **configs: Any) -> None:
        on_disk = ["log.flush.scheduler.interval.ms=1000"]
        self.broker = VirtualBroker(*([] if path is None else [f"log.dirs={path}", *on_disk]))
        self.broker.topic("t", 1, -1, **configs)

    @property
    def partition(self) -> Partition:
        return self.broker.partition()

    def alter(self, name: str, value: str) -> None:
        (response,) = self.broker.client().call(config_changes(TOPIC, "t", {name: value}), 1).responses
        assert (response.error_code, response.error_message) == (0, None)

    def send(self, after_ms: int = 0, key: bytes | None = b"k", value: bytes | None = b"v") -> int:
        """Append a record with a timestamp `after_ms` after the clock, and return the error code."""
        log, now_ms = self.partition.log, self.broker.clock.wall_ms()
        data = memoryview(bytearray(build_batch([Record(0, now_ms + after_ms, key, value)])))
        return log.append(data, now_ms, 0).error_code

    def batches(self) -> list[BatchHeader]:
        log = self.partition.log
        return [header for segment in log.segments for header, _ in segment.batches(segment.base_offset)]

    # Observations

    def compressed(self) -> int:
        log, now_ms = self.partition.log, self.broker.clock.wall_ms()
        data = build_batch([Record(0, now_ms, None, bytes(500))], compression=GZIP)
        return log.append(memoryview(bytearray(data)), now_ms, 0).error_code

    def keyless(self) -> int:
        return self.send(key=None)

    def large(self) -> int:
        return self.send(value=bytes(500))

    def early(self) -> int:
        return self.send(-10_000)

    def late(self) -> int:
        return self.send(10_000)

    def codec(self) -> int:
        self.send()
        return self.batches()[-1].compression

    def stored_bytes(self) -> int:
        self.send(value=WELL_COMPRESSED)
        return self.batches()[-1].size_in_bytes

    def stored_age_ms(self) -> int:
        self.send(-5_000)
        return self.broker.clock.wall_ms() - self.batches()[-1].max_timestamp

    def old_consumer(self) -> int:
        self.send()
        self.partition.log.advance_high_watermark(self.partition.log.log_end_offset)
        return fetched(self.broker.client().call(fetch(), 2)).error_code

    def largest_segment_bytes(self) -> int:
        return self.partition.log.storage.largest_segment_bytes(self.partition.log)

    def segments_of_ten(self) -> int:
        """Append ten records, each one second after the last, and return the number of new segments."""
        before = len(self.partition.log.segments)
        for _ in range(10):
            self.send(self.partition.log.log_end_offset * 1000)
        return len(self.partition.log.segments) - before

    def deleted_records(self) -> int:
        """Append five records that are two hours old and a recent one, and return the log start after retention."""
        for _ in range(5):
            self.send(-2 * HOUR_MS, value=bytes(3000))
        self.send(value=bytes(3000))
        self.partition.log.advance_high_watermark(self.partition.log.log_end_offset)
        enforce_retention(self.partition.log, self.broker.clock.wall_ms())
        return self.partition.log.log_start_offset

    def cleanable(self) -> bool:
        for after_ms in (0, 1000, 2000):
            self.send(after_ms)
        return to_clean(self.partition.log, self.broker.clock.wall_ms()).cleanable_bytes > 0

    def is_due(self) -> bool:
        """Return whether a log of which half is clean is due for cleaning."""
        log = self.partition.log
        if not log.segments:
            for number in range(8):
                self.send(number * 1000, key=b"%d" % number)
            log.first_dirty_offset = log.segments[len(log.segments) // 2].base_offset
        return to_clean(log, WALL_START_MS + HOUR_MS).is_due

    def tombstone_lifetime_ms(self) -> int:
        log, now_ms = self.partition.log, self.broker.clock.wall_ms()
        first = log.log_end_offset
        self.send(first * 1000, key=b"%d" % first, value=None)
        self.send(first * 1000 + 100)
        for _ in LogCleaning(log, first, log.segments[-1].base_offset, now_ms, 100).steps():
            pass
        (tombstone,) = [header for header in self.batches() if header.base_offset == first]
        assert tombstone.has_delete_horizon
        return tombstone.base_timestamp - now_ms

    def deleted_files(self) -> int:
        log, directory = self.partition.log, self.broker.cluster.logs.directory
        assert directory is not None
        for number in range(8):
            self.send(len(self.batches()) * 1000 + number, value=bytes(900))
        directory.tick()
        folder = Path(directory.path) / "t-0"
        before = len(list(folder.glob("*.deleted")))
        log.delete_records_before(log.log_end_offset)
        enforce_retention(log, self.broker.clock.wall_ms())
        directory.tick()
        return len(list(folder.glob("*.deleted"))) - before

    def flushed_at_once(self) -> bool:
        self.send()
        return self.recovery_point() == self.partition.log.log_end_offset

    def flushed_soon(self) -> bool:
        directory = self.broker.cluster.logs.directory
        assert directory is not None
        for _ in range(2):  # the first check flushes all logs
            self.send()
            self.broker.advance(5_000)
            directory.flusher.finish()
        return self.recovery_point() == self.partition.log.log_end_offset

    def recovery_point(self) -> int:
        storage: Any = self.partition.log.storage
        point: int = storage.directory.recovery_point
        return point

    def index_entries(self) -> int:
        active: Any = self.partition.log.segments[-1]
        before = len(active.index())
        for _ in range(10):
            self.send(value=bytes(200))
        return len(active.index()) - before

    def segments_of_small_indexes(self) -> int:
        before = len(self.partition.log.segments)
        for _ in range(20):
            self.send(value=bytes(5000))
        return len(self.partition.log.segments) - before


class Scenario(NamedTuple):
    observe: Callable[[World], int]
    first: str
    second: str
    expected: tuple[int, int] | Callable[[int, int], bool]
    others: Mapping[str, str] = MappingProxyType({})
    on_disk: bool = False


def less(first: int, second: int) -> bool:
    return second < first


def more(first: int, second: int) -> bool:
    return second > first


def some_then_none(first: int, second: int) -> bool:
    return first > 0 >= second


COMPACTED = {"cleanup_policy": "compact", "segment_ms": "10"}
SMALL = {"internal_segment_bytes": "4096"}
OK = ErrorCode.NONE
SCENARIOS = {
    "cleanup.policy": Scenario(World.keyless, "delete", "compact", (OK, ErrorCode.INVALID_RECORD)),
    "compression.type": Scenario(World.codec, "producer", "gzip", (0, 1)),
    "compression.gzip.level": Scenario(World.stored_bytes, "1", "9", less, {"compression_type": "gzip"}),
    "compression.zstd.level": Scenario(World.stored_bytes, "-50", "19", less, {"compression_type": "zstd"}),
    "delete.retention.ms": Scenario(World.tombstone_lifetime_ms, "1000", "7", (1000, 7), COMPACTED),
    "file.delete.delay.ms": Scenario(World.deleted_files, "60000", "0", some_then_none, SMALL, True),
    "flush.messages": Scenario(World.flushed_at_once, "9", "1", (False, True), {}, True),
    "flush.ms": Scenario(World.flushed_soon, "9999999", "1000", (False, True), {}, True),
    "index.interval.bytes": Scenario(World.index_entries, "4096", "300", more, {}, True),
    "internal.segment.bytes": Scenario(World.largest_segment_bytes, "5000", "9000", (5000, 9000)),
    "max.compaction.lag.ms": Scenario(
        World.is_due, "99999999", "1000", (False, True), COMPACTED | {"min_cleanable_dirty_ratio": "1"}
    ),
    "max.decompressed.message.bytes": Scenario(World.compressed, "507", "506", (OK, ErrorCode.INVALID_RECORD)),
    "max.message.bytes": Scenario(World.large, "1000", "300", (OK, ErrorCode.MESSAGE_TOO_LARGE)),
    "message.downconversion.enable": Scenario(World.old_consumer, "true", "false", (OK, ErrorCode.UNSUPPORTED_VERSION)),
    "message.timestamp.after.max.ms": Scenario(World.late, "10000", "9999", (OK, ErrorCode.INVALID_TIMESTAMP)),
    "message.timestamp.before.max.ms": Scenario(World.early, "10000", "9999", (OK, ErrorCode.INVALID_TIMESTAMP)),
    "message.timestamp.type": Scenario(World.stored_age_ms, "CreateTime", "LogAppendTime", (5000, 0)),
    "min.cleanable.dirty.ratio": Scenario(World.is_due, "0.9", "0.1", (False, True), COMPACTED),
    "min.compaction.lag.ms": Scenario(World.cleanable, "9999999", "0", (False, True), COMPACTED),
    "retention.bytes": Scenario(World.deleted_records, "-1", "1", more, SMALL),
    "retention.ms": Scenario(World.deleted_records, "-1", str(HOUR_MS), more, SMALL),
    "segment.bytes": Scenario(World.largest_segment_bytes, str(2**21), str(2**20), (2**21, 2**20)),
    "segment.index.bytes": Scenario(World.segments_of_small_indexes, "10485760", "32", more, {}, True),
    "segment.jitter.ms": Scenario(World.segments_of_ten, "0", "4999", more, {"segment_ms": "5000"}),
    "segment.ms": Scenario(World.segments_of_ten, "99999999", "2000", more),
}
# Tested in other files, with several replicas, share groups or without a topic.
TESTED_ELSEWHERE = {
    "min.insync.replicas": "broker/controller/test_controller.py",
    "unclean.leader.election.enable": "broker/controller/test_controller.py",
    "leader.replication.throttled.replicas": "broker/controller/test_replication_throttle.py",
    "follower.replication.throttled.replicas": "broker/controller/test_replication_throttle.py",
    "errors.deadletterqueue.group.enable": "broker/share/test_dead_letters.py",
    "remote.storage.enable": "sluice/config/test_broker_config.py",
}


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_config_takes_effect_when_set_and_when_altered(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    own = {**scenario.others, name.replace(".", "_"): scenario.first}
    world = World(tmp_path if scenario.on_disk else None, **own)
    first = scenario.observe(world)
    world.alter(name, scenario.second)
    found = first, scenario.observe(world)
    world.broker.cluster.logs.close()
    assert scenario.expected(*found) if callable(scenario.expected) else found == scenario.expected, found


def test_every_effective_config_has_a_scenario() -> None:
    with_effect = {row.name for row in TOPIC_PROPERTIES.values() if not row.has_no_effect}
    assert with_effect == SCENARIOS.keys() | TESTED_ELSEWHERE.keys()


@pytest.mark.parametrize(("name", "file"), TESTED_ELSEWHERE.items())
def test_other_config_is_tested_in_its_file(name: str, file: str) -> None:
    assert name.replace(".", "_") in (Path(__file__).parents[3] / file).read_text().replace(".", "_")


def test_documentation_lists_the_configs_without_effect() -> None:
    page = (Path(__file__).parents[5] / "docs" / "topic-configs.md").read_text()
    listed = page.partition("and have no effect:")[2].partition("\n- ")[0]
    assert set(re.findall("`([^`]*)`", listed)) - {"--as"} == {
        row.name for row in TOPIC_PROPERTIES.values() if row.has_no_effect
    }
