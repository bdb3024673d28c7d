"""Segments in memory, and the memory that is charged for them."""

import pytest

from sluice.broker.log.log_config import LogConfig, log_settings
from sluice.broker.log.memory_storage import FIRST_SEGMENT_BYTES, MemoryStorage
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.segment import INDEX_ENTRY_BYTES
from sluice.broker.log.segment_memory import MAPPED_FROM_BYTES
from sluice.config.broker_config import Config, TopicConfig
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.log_validator import AppendConfig
from sluice.protocol.records.record import Record

NOW_MS = 1_700_000_000_000
MEMORY_BYTES = 64 * FIRST_SEGMENT_BYTES


def storage_and_log() -> tuple[MemoryStorage, PartitionLog]:
    storage = MemoryStorage(MEMORY_BYTES)
    return storage, PartitionLog("t-0", LogConfig(AppendConfig()), storage)


CAPACITIES = {
    "empty log": (0, 100, FIRST_SEGMENT_BYTES),
    "batch above a page": (0, FIRST_SEGMENT_BYTES + 1, 2 * FIRST_SEGMENT_BYTES),
    "half of the log": (8 * FIRST_SEGMENT_BYTES, 100, 4 * FIRST_SEGMENT_BYTES),
    "rounded down": (16 * FIRST_SEGMENT_BYTES - 2, 100, 4 * FIRST_SEGMENT_BYTES),
    "the largest": (10**9, 100, 8 * FIRST_SEGMENT_BYTES),
    "batch above the largest": (10**9, 9 * FIRST_SEGMENT_BYTES, 9 * FIRST_SEGMENT_BYTES),
}


@pytest.mark.parametrize(("log_bytes", "size", "capacity"), CAPACITIES.values(), ids=CAPACITIES)
def test_capacity_of_a_segment(log_bytes: int, size: int, capacity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, log = storage_and_log()
    monkeypatch.setattr(log, "size_in_bytes", log_bytes)
    monkeypatch.setattr(storage.budget, "largest_segment_bytes", 8 * FIRST_SEGMENT_BYTES)
    assert storage.begin_segment(log, 0, size, 0, NOW_MS).charged_bytes == capacity


COMPRESSION_LEVELS = {
    "producer": ({}, None),
    "default": ({"compression.type": "gzip"}, None),
    "the same as the default": ({"compression.type": "gzip", "compression.gzip.level": "-1"}, None),
    "a level": ({"compression.type": "gzip", "compression.gzip.level": "5"}, 5),
    "of another codec": ({"compression.type": "gzip", "compression.zstd.level": "5"}, None),
    "without levels": ({"compression.type": "snappy"}, None),
}


@pytest.mark.parametrize(("configs", "level"), COMPRESSION_LEVELS.values(), ids=COMPRESSION_LEVELS)
def test_compression_level_of_a_log(configs: dict[str, str], level: int | None) -> None:
    config = Config.load()
    assert log_settings(TopicConfig(config, configs), config).append.compression_level == level


def test_empty_log_is_charged_no_memory() -> None:
    storage, log = storage_and_log()
    assert storage.first_segments(log, 5) == ()
    assert storage.budget.used_bytes == 0


def test_segment_is_charged_its_capacity_until_full_and_its_size_afterwards() -> None:
    storage, log = storage_and_log()
    segment = storage.begin_segment(log, 5, 10, 0, NOW_MS)
    assert (segment.base_offset, storage.budget.used_bytes) == (5, FIRST_SEGMENT_BYTES)
    segment.append(bytes(10), 5, -1, NOW_MS)
    storage.segment_filled(log, segment)
    assert storage.budget.used_bytes == FIRST_SEGMENT_BYTES + INDEX_ENTRY_BYTES
    storage.delete(segment)
    assert storage.budget.used_bytes == 0


def test_cleaned_segment_replaces_the_charge_of_its_sources() -> None:
    storage, log = storage_and_log()
    old = [storage.begin_segment(log, base_offset, 10, 0, NOW_MS) for base_offset in (0, 1)]
    cleaned = storage.begin_cleaned(log, 0, 10, NOW_MS)
    cleaned.append(bytes(10), 1, -1, NOW_MS)
    storage.replace(log, old, cleaned)
    assert storage.budget.used_bytes == 10 + INDEX_ENTRY_BYTES


CONTINUATIONS = {
    "no room: a segment of segment.bytes": (100, 0, False, 1000),
    "too little room": (100, 99, False, 1000),
    "just enough room: a part of that size": (100, 100, True, 100),
    "more room": (100, 900, True, 900),
    "a batch above segment.bytes": (1001, 1000, False, 1001),
}


@pytest.mark.parametrize(("size", "room", "continues", "capacity"), CONTINUATIONS.values(), ids=CONTINUATIONS)
def test_segment_continues_the_previous_one_if_the_batch_fits(
    size: int, room: int, continues: bool, capacity: int
) -> None:
    storage = MemoryStorage(MEMORY_BYTES)
    log = PartitionLog("t-0", LogConfig(AppendConfig(), segment_bytes=1000), storage)
    segment = storage.begin_segment(log, 0, size, room, NOW_MS)
    assert (segment.continues, segment.capacity, segment.charged_bytes) == (continues, capacity, capacity)


def test_deleted_log_is_charged_no_memory() -> None:
    storage, log = storage_and_log()
    segments = [storage.begin_segment(log, base_offset, 10, 0, NOW_MS) for base_offset in (0, 1)]
    storage.forget(log, segments)
    assert storage.budget.used_bytes == 0


@pytest.mark.parametrize("is_read", [False, True], ids=["memory reused", "memory with a reader"])
def test_deleted_segment_has_no_batches(is_read: bool) -> None:
    # A cleaning that was suspended before the deletion still references it.
    storage = MemoryStorage(64 * MAPPED_FROM_BYTES)
    log = PartitionLog("t-0", LogConfig(AppendConfig()), storage)
    segment = storage.begin_segment(log, 0, MAPPED_FROM_BYTES, 0, NOW_MS)
    for offset in range(3):
        segment.append(build_batch([Record(offset, NOW_MS, None, b"v")], base_offset=offset), offset, NOW_MS, NOW_MS)
    read = segment.batches(0)
    held = next(read) if is_read else None
    storage.forget(log, [segment])
    storage.begin_segment(log, 0, MAPPED_FROM_BYTES, 0, NOW_MS).append(bytes(1000), 0, NOW_MS, NOW_MS)
    assert list(segment.batches(0)) == []
    assert [header.base_offset for header, _ in read] == ([1, 2] if held else [])
