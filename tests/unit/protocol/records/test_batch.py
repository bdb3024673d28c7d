"""Batch headers: boundaries and the range of the checksum."""

import struct
import sys
from types import SimpleNamespace

import pytest

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records import batch, crc
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.legacy import build_message_set
from sluice.protocol.records.record import Record

RECORDS = [Record(40, 1000, b"key", b"value", (("name", b"content"),)), Record(41, 1001, None, None)]
BATCH = build_batch(
    RECORDS,
    base_offset=40,
    producer_id=7,
    producer_epoch=3,
    base_sequence=2**31 - 1,
    transactional=True,
    partition_leader_epoch=5,
)


@pytest.mark.parametrize(
    ("sequence", "increment", "expected"), [(0, 5, 5), (2**31 - 1, 0, 2**31 - 1), (2**31 - 1, 1, 0), (2**31 - 3, 10, 7)]
)
def test_sequences_wrap_after_the_largest_int32(sequence: int, increment: int, expected: int) -> None:
    assert batch.add_to_sequence(sequence, increment) == expected


def test_boundaries_skip_a_truncated_last_batch() -> None:
    message = build_message_set(RECORDS[1:], 1)
    data = BATCH + message + BATCH[:-1]
    assert list(batch.batch_bounds(data)) == [(0, len(BATCH), 2), (len(BATCH), len(message), 1)]


def test_truncated_batch_is_skipped() -> None:
    assert [size for size in range(len(BATCH)) if list(batch.batch_bounds(BATCH[:size]))] == []


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13])
def test_impossible_length_is_corrupt(length: int) -> None:
    data = BATCH + BATCH[:8] + struct.pack(">i", length) + BATCH[12:]
    bounds = batch.batch_bounds(data)
    assert next(bounds) == (0, len(BATCH), 2), "earlier batches are read first"
    with pytest.raises(InvalidRecords, match=f"Record size {length} is less than the minimum") as error:
        next(bounds)
    assert error.value.code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(("byte", "shown"), [(3, 3), (127, 127), (128, -128), (255, -1)])
def test_unknown_magic_is_corrupt_and_shown_as_signed(byte: int, shown: int) -> None:
    with pytest.raises(InvalidRecords, match=f"Invalid magic found in record: {shown} ") as error:
        list(batch.batch_bounds(BATCH[:16] + bytes((byte,)) + BATCH[17:]))
    assert error.value.code == ErrorCode.CORRUPT_MESSAGE


def test_batches_of_a_log_have_their_positions() -> None:
    second = build_batch([Record(50, 1, None, b"x")], base_offset=50)
    found = [(position, header.base_offset) for position, header in batch.iter_batches(BATCH + second)]
    assert found == [(0, 40), (len(BATCH), 50)]


def test_checksum_covers_each_bit_after_it_and_none_before() -> None:
    for bit in range(len(BATCH) * 8):
        flipped = bytearray(BATCH)
        flipped[bit // 8] ^= 1 << bit % 8
        if bit // 8 < 17:
            batch.ensure_valid(memoryview(flipped))
            continue
        with pytest.raises(InvalidRecords, match=r"Record is corrupt \(stored crc = \d+, computed crc = \d+\)"):
            batch.ensure_valid(memoryview(flipped))


def test_incomplete_header_is_corrupt() -> None:
    with pytest.raises(InvalidRecords, match="the size 60 is smaller than the minimum allowed overhead 61"):
        batch.ensure_valid(memoryview(BATCH)[: batch.HEADER_BYTES - 1])
    with pytest.raises(InvalidRecords, match="expected a header of 61 bytes, got 60"):
        batch.read_header(BATCH[: batch.HEADER_BYTES - 1])
    with pytest.raises(InvalidRecords, match="the size 60 is smaller"):
        batch.read_header(BATCH[:8] + struct.pack(">i", 48) + BATCH[12:])


def test_crc32c_is_castagnoli() -> None:
    for data in (b"123456789", bytearray(b"123456789"), memoryview(b"123456789")):
        assert crc.crc32c(data) == 0xE3069283


def test_crc32c_is_loaded_without_the_package_if_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "crc32c", raising=False)
    crc.load()
    assert "crc32c" not in sys.modules
    monkeypatch.setattr(crc, "PathFinder", SimpleNamespace(find_spec=lambda *_: None))
    crc.load()
    assert "crc32c" in sys.modules
    assert crc.crc32c(b"123456789") == 0xE3069283
