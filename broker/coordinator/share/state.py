"""The persisted state of one share partition, and how updates change it.

Follows Kafka's ShareGroupOffset, ShareCoordinatorShard.merge and PersisterStateBatchCombiner. Different on purpose:
consecutive batches with equal states are always joined.
"""

import itertools
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from sluice.protocol.uuids import uuid_from_printed

from .persisted import SharePartitionId, StateBatch
from .record_messages import ShareSnapshotValue, ShareUpdateValue
from .record_messages import StateBatch as StateBatchRecord

UNKNOWN = -1  # a start offset, count or epoch
_MAX_PARTITION = 2**31 - 1


def parse_coordinator_key(key: str) -> SharePartitionId | None:
    """Return the share partition of a key `group:topic id:partition`; None if it is invalid."""
    group_id, _, rest = key.rpartition(":")
    group_id, _, printed = group_id.rpartition(":")
    topic_id = uuid_from_printed(printed)
    if not group_id.strip() or topic_id is None or not rest.isdecimal() or int(rest) > _MAX_PARTITION:
        return None
    return SharePartitionId(group_id, topic_id, int(rest))


class ShareState(NamedTuple):
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]
    created_ms: int
    written_ms: int

    def snapshot(self) -> ShareSnapshotValue:
        return ShareSnapshotValue(
            snapshot_epoch=self.snapshot_epoch,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            create_timestamp=self.created_ms,
            write_timestamp=self.written_ms,
            state_batches=[StateBatchRecord(*batch) for batch in self.batches],
        )

    def updated(self, update: ShareUpdateValue) -> "ShareState":
        start_offset = self.start_offset if update.start_offset == UNKNOWN else update.start_offset
        return self._replace(
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            leader_epoch=self.leader_epoch if update.leader_epoch == UNKNOWN else update.leader_epoch,
            batches=combine([*self.batches, *_batches(update.state_batches)], start_offset),
        )


def state_of(snapshot: ShareSnapshotValue) -> ShareState:
    return ShareState(
        snapshot.snapshot_epoch,
        snapshot.state_epoch,
        snapshot.leader_epoch,
        snapshot.start_offset,
        snapshot.delivery_complete_count,
        list(_batches(snapshot.state_batches)),
        snapshot.create_timestamp,
        snapshot.write_timestamp,
    )


def combine(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Return batches from the start offset on; of overlapping ones, the higher delivery count, then state, wins."""
    waiting = sorted((max(one.first_offset, start_offset), one) for one in batches if one.last_offset >= start_offset)
    bounds = sorted({first for first, _ in waiting} | {one.last_offset + 1 for _, one in waiting})
    waiting.reverse()
    covering: list[tuple[int, int, int]] = []  # negative delivery count and state, last offset
    combined: list[StateBatch] = []
    for first, after in itertools.pairwise(bounds):
        while waiting and waiting[-1][0] == first:
            one = waiting.pop()[1]
            heappush(covering, (-one.delivery_count, -one.delivery_state, one.last_offset))
        while covering and covering[0][2] < first:
            heappop(covering)
        if covering:
            count, state, _ = covering[0]
            _add(combined, StateBatch(first, after - 1, -state, -count))
    return combined


def _add(combined: list[StateBatch], batch: StateBatch) -> None:
    if combined and combined[-1][2:] == batch[2:] and combined[-1].last_offset + 1 == batch.first_offset:
        combined[-1] = combined[-1]._replace(last_offset=batch.last_offset)
    else:
        combined.append(batch)


def _batches(records: Iterable[StateBatchRecord]) -> Iterable[StateBatch]:
    for one in records:
        yield StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
