"""One acquisition of fetched records: its limits, how new records are divided, and what was acquired."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from .delivery import Acquired, FetchedBatch
from .in_flight import InFlightState

SMALLEST_THROTTLED_COUNT = 2


class Acquisition(Struct):
    member_id: str
    by_record: bool
    batch_size: int
    most: int
    last: int
    fetched: Sequence[FetchedBatch]
    found: list[Acquired] = []
    count: int = 0

    @property
    def first(self) -> int:
        return self.fetched[0].base_offset

    @property
    def remaining(self) -> int:
        return self.most - self.count


def throttled_count(delivery_limit: int) -> int:
    return max(SMALLEST_THROTTLED_COUNT, (delivery_limit + 1) // 2)


def batch_end(fetched: Iterable[FetchedBatch], offset: int) -> int:
    for batch in fetched:
        if batch.base_offset <= offset <= batch.last_offset:
            return batch.last_offset
    return offset


def divided(acquisition: Acquisition, first: int, last: int) -> list[tuple[int, int]]:
    ranges = []
    size = acquisition.batch_size
    if not acquisition.by_record and last - first + 1 > size:
        for batch in acquisition.fetched:
            if batch.base_offset > last:
                break
            if batch.base_offset - first >= size:
                ranges.append((first, batch.base_offset - 1))
                first = batch.base_offset
    return [*ranges, (first, last)]


def joined(acquired: Iterable[tuple[int, InFlightState]]) -> list[Acquired]:
    joined: list[Acquired] = []
    for offset, state in acquired:
        count = state.delivery_count
        if joined and joined[-1].last_offset == offset - 1 and joined[-1].delivery_count == count:
            joined[-1] = joined[-1]._replace(last_offset=offset)
        else:
            joined.append(Acquired(offset, offset, count))
    return joined
