"""The records of aborted transactions, which share groups with `read_committed` skip.

Follows SharePartition.fetchAbortedTransactionRecordBatches and filterRecordBatchesFromAcquiredRecords.
"""

from collections.abc import Iterable, Iterator, Sequence

from sluice.broker.log.producer_state import AbortedTransaction
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.build import ABORT
from sluice.protocol.records.record import control_type

from .delivery import Acquired, FetchedBatch


def fetched_batches(parts: Iterable[memoryview]) -> list[FetchedBatch]:
    return [
        FetchedBatch(
            header.base_offset,
            header.last_offset,
            header.producer_id,
            header.is_transactional,
            header.is_control,
            part[position : position + header.size_in_bytes],
        )
        for part in parts
        for position, header in iter_batches(part)
    ]


def aborted_batches(
    batches: Iterable[FetchedBatch], aborted: Sequence[AbortedTransaction]
) -> Iterator[tuple[int, int]]:
    starts = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
    producers: set[int] = set()
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while starts and starts[-1].first_offset <= batch.last_offset:
            producers.add(starts.pop().producer_id)
        if batch.is_control:
            if control_type(batch.data) == ABORT:
                producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            yield batch.base_offset, batch.last_offset


def without(acquired: Iterable[Acquired], removed: Sequence[tuple[int, int]]) -> list[Acquired]:
    kept = []
    for one in acquired:
        first = one.first_offset
        for start, end in removed:
            if end < first:
                continue
            if start > one.last_offset:
                break
            if start > first:
                kept.append(one._replace(first_offset=first, last_offset=start - 1))
            first = end + 1
        if first <= one.last_offset:
            kept.append(one._replace(first_offset=first))
    return kept
