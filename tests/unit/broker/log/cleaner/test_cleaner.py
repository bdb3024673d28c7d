"""A cleaning has the same result as Apache Kafka 4.4's Cleaner on the same log.

kafka_cleaner/CleanerCases.java writes kafka_cleaner/cases.json; its header has the command.
"""

import json
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sluice.broker.log.cleaner.cleaner import LogCleaning, group_by_size
from sluice.broker.log.leader_epochs import LeaderEpochs
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.log_storage import RestoredLog
from sluice.broker.log.memory_storage import MemoryStorage
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.producer_state import NO_OFFSET, AbortedTransaction, ProducerEntry, ProducerState, StoredBatch
from sluice.broker.log.segment import Segment
from sluice.broker.log.segment_memory import allocate
from sluice.protocol.records.batch import BatchHeader, ensure_valid, read_header
from sluice.protocol.records.log_validator import AppendConfig
from sluice.protocol.records.record import Record, iter_records

Cleaning = dict[str, Any]
Case = dict[str, Any]
CASES = json.loads((Path(__file__).parent / "kafka_cleaner" / "cases.json").read_text())


def log_before(case: Case, cleaning: Cleaning) -> PartitionLog:
    """Return the log of a case before one cleaning."""
    batches = [bytes.fromhex(batch) for batch in case["batches"]]
    segments = []
    for given in cleaning["before"]["segments"]:
        segment = Segment(given["base_offset"], allocate(1 << 20), 0)
        for batch in (batches[index] for index in given["batches"]):
            header = read_header(batch)
            assert segment.append(batch, header.last_offset, header.max_timestamp, 0)
        segments.append(segment)
    producers = ProducerState("t-0")
    aborted = [AbortedTransaction(*aborted) for aborted in cleaning["before"]["aborted"]]
    producers.restore(starmap(producer, cleaning["producers"]), aborted)
    config = LogConfig(
        AppendConfig(), segment_bytes=case["segment_bytes"], delete_retention_ms=case["delete_retention_ms"]
    )
    end_offset = segments[-1].next_offset
    restored = RestoredLog(segments, 0, end_offset, producers, LeaderEpochs())
    log = PartitionLog("t-0", config, MemoryStorage(1 << 30), restored)
    log.high_watermark = cleaning["high_watermark"]
    return log


def producer(producer_id: int, last_offset: int, epoch: int) -> tuple[int, ProducerEntry]:
    entry = ProducerEntry()
    entry.epoch = epoch
    if last_offset != NO_OFFSET:
        entry.batches.append(StoredBatch(0, 0, last_offset, last_offset, 0))
    return producer_id, entry


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
    log = log_before(case, cleaning)
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
        assert [content(bytes(batch)) for _, batch in segment.batches(0)] == list(map(content, batches))
    assert [
        [txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset]
        for txn in log.producers.aborted_between(0, 2**63 - 1)
    ] == after["aborted"]


class Sized(NamedTuple):
    base_offset: int
    size: int


GROUPS = {
    "as many bytes as a segment may have": ([Sized(0, 4), Sized(10, 6)], [[0, 10]]),
    "one byte more": ([Sized(0, 5), Sized(10, 6)], [[0], [10]]),
    "the second group full": ([Sized(0, 7), Sized(10, 4), Sized(20, 6)], [[0], [10, 20]]),
    "offsets that fit in 31 bits": ([Sized(0, 1), Sized(2**31 - 100, 1)], [[0, 2**31 - 100]]),
    "one offset more": ([Sized(0, 1), Sized(2**31 - 99, 1)], [[0], [2**31 - 99]]),
}


@pytest.mark.parametrize(("segments", "groups"), GROUPS.values(), ids=GROUPS)
def test_segments_are_grouped_up_to_the_size_of_a_segment(segments: list[Any], groups: list[list[int]]) -> None:
    end = segments[-1].base_offset + 100
    assert [[each.base_offset for each in group] for group in group_by_size(segments, 10, end)] == groups
