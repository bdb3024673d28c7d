"""Selection of a task's next record."""

import pytest

from sluice.streams.errors import StreamsException, TaskId
from sluice.streams.record_queue import NEVER_WAIT, PartitionGroup
from tests.support.streaming_fakes import IN0, IN1, record

TASK = TaskId(0, 0)


def group(lags: dict[object, int | None] | None = None, idle_ms: int = 0) -> PartitionGroup:
    return PartitionGroup(TASK, [IN0, IN1], lambda partition: (lags or {}).get(partition, 0), idle_ms)


def test_oldest_head_record_is_next() -> None:
    queues = group()
    queues.add(IN0, [record(b"5", timestamp=5), record(b"1", timestamp=1), record(b"7", timestamp=7)])
    queues.add(IN1, [record(b"3", timestamp=3, partition=IN1), record(b"7 too", timestamp=7, partition=IN1)])
    found = []
    while queues.is_ready(0):
        found.append(queues.next().value)
    assert found == [b"3", b"5", b"1", b"7", b"7 too"], (
        "order within a partition is kept; on a tie the first partition wins"
    )


DELAYS = {
    "known to be empty: at once": (0, 0, 0),
    "known to be empty: after max.task.idle.ms": (0, 500, 500),
    "records still to fetch: never": (3, 500, None),
    "end offset unknown: never": (None, 500, None),
    "max.task.idle.ms=-1: at once": (3, NEVER_WAIT, 0),
}


@pytest.mark.parametrize(("lag", "idle_ms", "ready_after_ms"), DELAYS.values(), ids=DELAYS)
def test_partition_without_records_delays_processing(lag: int | None, idle_ms: int, ready_after_ms: int | None) -> None:
    queues = group({IN1: lag}, idle_ms)
    queues.add(IN0, [record()])
    ready = [after_ms for after_ms in range(0, 2000, 100) if queues.is_ready(10_000 + after_ms)]
    assert ready[:1] == ([] if ready_after_ms is None else [ready_after_ms])


def test_idle_time_restarts_after_each_record() -> None:
    lags: dict[object, int | None] = {IN1: 0}
    queues = group(lags, 500)
    queues.add(IN0, [record()])
    assert not queues.is_ready(1000)
    lags[IN1] = 2
    assert not queues.is_ready(1400)
    lags[IN1] = 0
    assert not queues.is_ready(1600), "there were records in between"
    assert queues.is_ready(2100)


@pytest.mark.parametrize("idle_ms", [0, NEVER_WAIT])
def test_without_records_nothing_is_ready(idle_ms: int) -> None:
    queues = group(idle_ms=idle_ms)
    assert not queues.is_ready(0)
    queues.add(IN0, [record()])
    queues.clear()
    assert len(queues) == 0
    assert not queues.is_ready(0)


def test_record_without_a_timestamp_is_rejected() -> None:
    with pytest.raises(StreamsException, match=r"in-0 offset 7: the record has no timestamp \(-1\)"):
        group().add(IN0, [record(offset=7, timestamp=-1)])
