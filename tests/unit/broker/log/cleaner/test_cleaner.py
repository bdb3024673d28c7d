"""A cleaning has the same result as Apache Kafka 4.4's Cleaner on the same log.

kafka_cleaner/CleanerCases.java writes kafka_cleaner/cases.json; its header has the command.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sluice.broker.log.cleaner.cleaner import LogCleaning, group_by_size
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.producer_state import AbortedTransaction, LastRecord
from sluice.protocol.records.batch import BatchHeader, ensure_valid, read_header
from sluice.protocol.records.log_validator import AppendConfig
from sluice.protocol.records.record import Record, iter_records

Cleaning = dict[str, Any]
Case = dict[str, Any]
CASES = json.loads((Path(__file__).parent / "kafka_cleaner" / "cases.json").read_text())


class ListedSegment:
    """A segment of a case, with its batches in a list."""

    last_append_ms = 0

    def __init__(self, base_offset: int, batches: Sequence[bytes]) -> None:
        self.base_offset = base_offset
        self.listed = list(batches)

    @property
    def size(self) -> int:
        return sum(map(len, self.listed))

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        for batch in self.listed:
            header = read_header(batch)
            if header.last_offset >= offset:
                yield header, memoryview(batch)

    def append(self, batch: memoryview | bytes, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        header = read_header(batch)
        assert (header.last_offset, header.max_timestamp) == (last_offset, max_timestamp)
        self.listed.append(bytes(batch))
        return True


class ListedLog:
    """A log of a case before one cleaning."""

    def __init__(self, case: Case, cleaning: Cleaning) -> None:
        self.config = LogConfig(AppendConfig(), delete_retention_ms=case["delete_retention_ms"])
        self.largest_segment_bytes = case["segment_bytes"]
        self.high_watermark = cleaning["high_watermark"]
        self.producers = {
            producer_id: LastRecord(offset, epoch) for producer_id, offset, epoch in cleaning["producers"]
        }
        batches = [bytes.fromhex(batch) for batch in case["batches"]]
        self.segments = [
            ListedSegment(segment["base_offset"], [batches[index] for index in segment["batches"]])
            for segment in cleaning["before"]["segments"]
        ]
        self.aborted = [AbortedTransaction(*aborted) for aborted in cleaning["before"]["aborted"]]

    def segments_before(self, offset: int) -> Sequence[ListedSegment]:
        return [segment for segment in self.segments if segment.base_offset < offset]

    def aborted_transactions(self, offset: int, upper_offset: int) -> Sequence[AbortedTransaction]:
        return [txn for txn in self.aborted if txn.last_offset >= offset and txn.first_offset < upper_offset]

    def last_records(self) -> Mapping[int, LastRecord]:
        return self.producers

    def begin_cleaned(self, group: Sequence[ListedSegment]) -> ListedSegment:
        return ListedSegment(group[0].base_offset, [])

    def save_cleaned(self, cleaned: ListedSegment, then: Callable[[], None]) -> None:
        then()

    def discard_cleaned(self, cleaned: ListedSegment) -> None:
        raise AssertionError("no save fails in these cases")

    def replace_group(
        self, group: Sequence[ListedSegment], cleaned: ListedSegment, aborted: Sequence[AbortedTransaction]
    ) -> bool:
        first = [segment.base_offset for segment in self.segments].index(group[0].base_offset)
        start, end = group[0].base_offset, self.segments[first + len(group)].base_offset
        self.segments[first : first + len(group)] = [cleaned]
        outside = [txn for txn in self.aborted if not start <= txn.last_offset < end]
        self.aborted = sorted([*outside, *aborted], key=lambda txn: txn.last_offset)
        return True


def content(batch: bytes) -> tuple[BatchHeader, list[Record]]:
    """Return header and records, without length and checksum if compressed: codec libraries produce different bytes."""
    ensure_valid(memoryview(batch))
    header = read_header(batch)
    records = list(iter_records(batch))
    if header.compression:
        header.length = header.crc = 0
    return header, records


CLEANINGS = [
    pytest.param(case, cleaning, id=f"{case['name']} ({number})")
    for case in CASES
    for number, cleaning in enumerate(case["cleanings"], 1)
]


@pytest.mark.parametrize(("case", "cleaning"), CLEANINGS)
def test_cleaning_has_the_same_result_as_kafka(case: Case, cleaning: Cleaning) -> None:
    log = ListedLog(case, cleaning)
    run = LogCleaning(
        log, cleaning["first_dirty_offset"], cleaning["first_uncleanable_offset"], cleaning["now_ms"], case["most_keys"]
    )
    for _ in run.steps():
        pass
    after = cleaning["after"]
    assert run.end_offset == cleaning["end_offset"]
    assert [segment.base_offset for segment in log.segments] == [s["base_offset"] for s in after["segments"]]
    for segment, expected in zip(log.segments, after["segments"], strict=True):
        batches = [bytes.fromhex(case["batches"][index]) for index in expected["batches"]]
        assert list(map(content, segment.listed)) == list(map(content, batches))
    assert [
        [txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset] for txn in log.aborted
    ] == after["aborted"]


class Sized(NamedTuple):
    base_offset: int
    size: int


@pytest.mark.parametrize(
    ("segments", "groups"),
    [
        pytest.param([Sized(0, 4), Sized(10, 6)], [[0, 10]], id="as many bytes as a segment may have"),
        pytest.param([Sized(0, 5), Sized(10, 6)], [[0], [10]], id="one byte more"),
        pytest.param([Sized(0, 7), Sized(10, 4), Sized(20, 6)], [[0], [10, 20]], id="the second group full"),
        pytest.param([Sized(0, 1), Sized(2**31 - 100, 1)], [[0, 2**31 - 100]], id="offsets that fit in 31 bits"),
        pytest.param([Sized(0, 1), Sized(2**31 - 99, 1)], [[0], [2**31 - 99]], id="one offset more"),
    ],
)
def test_segments_are_grouped_up_to_the_size_of_a_segment(segments: list[Any], groups: list[list[int]]) -> None:
    end = segments[-1].base_offset + 100
    assert [[each.base_offset for each in group] for group in group_by_size(segments, 10, end)] == groups
