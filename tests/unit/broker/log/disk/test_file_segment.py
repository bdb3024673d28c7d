"""A segment in a file returns the same results as one in memory, with any index; and the limit of open files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.log.disk.file_records import MAPPED_FROM_BYTES
from sluice.broker.log.disk.file_segment import FileSegment
from sluice.broker.log.disk.open_files import OpenFiles
from sluice.broker.log.disk.partition_directory import PartitionDirectory
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.segment import Segment
from sluice.broker.log.segment_memory import allocate
from sluice.protocol.records.batch import PLACE
from sluice.protocol.records.log_validator import AppendConfig
from tests.support.disk_logs import NOW_MS, batch

BASE = 100
ROOM = 10**7


def directory_at(path: Path, interval_bytes: int = 200, open_files: OpenFiles | None = None) -> PartitionDirectory:
    config = LogConfig(AppendConfig(), index_interval_bytes=interval_bytes)
    return PartitionDirectory(str(path), config, OpenFiles(100) if open_files is None else open_files)


def placed(offset: int, records: int, value: bytes, timestamp: int) -> memoryview:
    """Return a batch as a log stores it."""
    data = batch([value] * records, timestamp=timestamp)
    PLACE.pack_into(data, 0, offset, len(data) - 12, 0)
    return data


def first_at(segment: FileSegment | Segment, timestamp: int) -> int:
    """Return the base offset of the first batch with this timestamp or a later one; -1 if none."""
    found = (header for header, _ in segment.batches_from_timestamp(timestamp, BASE))
    return next((header.base_offset for header in found if header.max_timestamp >= timestamp), -1)


def extent(segment: FileSegment | Segment) -> tuple[int, int, int]:
    return segment.size, segment.next_offset, segment.max_timestamp


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("segments")


@given(
    batches=st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 120), st.integers(-3, 9)), max_size=25
    ),
    interval_bytes=st.sampled_from([0, 150, 1000, 10**6]),
    reopens=st.booleans(),
    data=st.data(),
)
def test_file_segment_equals_segment_in_memory(
    folder: Path, batches: list[tuple[int, int, int, int]], interval_bytes: int, reopens: bool, data: st.DataObject
) -> None:
    directory = directory_at(folder, interval_bytes)
    file_segment = FileSegment.create(directory, BASE, ROOM, NOW_MS)
    memory_segment = Segment(BASE, allocate(ROOM // 100), NOW_MS)
    for gap, records, value_bytes, later_ms in batches:
        first = file_segment.next_offset + gap
        stored = placed(first, records, bytes(value_bytes), NOW_MS + later_ms)
        for segment in (file_segment, memory_segment):
            assert segment.append(stored, first + records - 1, NOW_MS + later_ms, NOW_MS)
    if reopens:
        file_segment.filled()
        file_segment.save_index()
        file_segment.close()
        file_segment = FileSegment(directory, BASE, file_segment.next_offset, file_segment.size, NOW_MS)
    assert extent(file_segment) == extent(memory_segment)
    for _ in range(5):
        offset = data.draw(st.integers(BASE, file_segment.next_offset + 2))
        limits = data.draw(st.integers(-1, 700)), data.draw(st.integers(offset, file_segment.next_offset + 2))
        at_least_one = data.draw(st.booleans())
        start, end, next_offset = file_segment.span(offset, *limits, at_least_one)
        expected = memory_segment.span(offset, *limits, at_least_one)
        assert (start, end) == expected[:2]
        if end > start:
            assert file_segment.slice(start, end) == memory_segment.slice(start, end)
            # Before a gap, only the segment in a file continues after the gap.
            assert next_offset >= expected[2]
        assert [bytes(stored) for _, stored in file_segment.batches(offset)] == [
            bytes(stored) for _, stored in memory_segment.batches(offset)
        ]
        timestamp = NOW_MS + data.draw(st.integers(-4, 10))
        assert first_at(file_segment, timestamp) == first_at(memory_segment, timestamp)
    cut = data.draw(st.integers(BASE, file_segment.next_offset + 1))
    file_segment.truncate_to(cut)
    memory_segment.truncate_to(cut)
    assert extent(file_segment) == extent(memory_segment)
    file_segment.close()


def test_large_slice_is_mapped_and_outlives_the_segment(tmp_path: Path) -> None:
    segment = FileSegment.create(directory_at(tmp_path), 0, ROOM, NOW_MS)
    for number in range(3):
        segment.append(placed(number, 1, bytes([number]) * MAPPED_FROM_BYTES, NOW_MS), number, NOW_MS, NOW_MS)
    start, end, _ = segment.span(1, ROOM, 3, True)
    part = segment.slice(start, end)
    before = bytes(part)
    assert part.obj is not None
    assert type(part.obj).__name__ == "mmap"
    segment.truncate_to(1)
    segment.append(placed(1, 1, b"other" * 100_000, NOW_MS), 1, NOW_MS, NOW_MS)
    segment.close()
    assert bytes(part) == before, "returned records are not overwritten"


def test_open_files_stay_within_the_limit(tmp_path: Path) -> None:
    open_files = OpenFiles(4)
    directory = directory_at(tmp_path, open_files=open_files)
    segments = [FileSegment.create(directory, base, ROOM, NOW_MS) for base in range(0, 200, 10)]
    for index in range(3):
        for segment in segments:
            offset = segment.base_offset + index
            assert segment.append(placed(offset, 1, b"v", NOW_MS), offset, NOW_MS, NOW_MS)
            assert len(open_files) <= 4
    for segment in segments:
        base = segment.base_offset
        assert [header.base_offset for header, _ in segment.batches(base)] == [base, base + 1, base + 2]
        assert len(open_files) <= 4
