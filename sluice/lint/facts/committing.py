"""The offsets that a client commits, compared with those that it fetches."""

from typing import NamedTuple

import msgspec

from sluice.journal_events import Request, TopicPartition
from sluice.protocol.errors import ErrorCode

from .domain import Domain, Handlers
from .fetching import Fetching, Position
from .measures.bursts import Burst
from .measures.distribution import Distribution
from .measures.examples import Examples
from .measures.fields import text

_NS_PER_MS = 1_000_000
# 5 per second: at a lower rate, a commit per record is a choice.
_SINGLE, _SINGLE_SECONDS = 50, 10.0
# Committed offsets of more partitions are not kept.
_MOST_OFFSETS = 4096

# One may overtake the rebalance in which its consumer takes part; a rebalance takes less than this.
_OUTDATED, _OUTDATED_SECONDS = 2, 60.0
# So many records are read again without a commit that it matters: two full polls with the default max.poll.records.
MANY_RECORDS = 1000

# The first may have been sent before the commit, on another connection.
_FETCHES_AFTER = 2

OffsetKey = tuple[str, str, int]  # group id, topic, partition


class Interval(msgspec.Struct):
    """The time from a response with records to the next commit for the partition, and the records committed by it."""

    ns: int = 0
    records: int = 0


class Offset(msgspec.Struct):
    """The offset that a client committed last for a partition.

    highest_fetched: the highest offset that it had requested from the partition at that time
    longest: the longest interval with at least MANY_RECORDS
    """

    committed: int = -1
    highest_fetched: int = -1
    longest: Interval = msgspec.field(default_factory=Interval)


class Ahead(NamedTuple):
    """A committed offset, and the highest offset that the client had requested two fetches later."""

    committed: int
    fetched: int


class Committing(Domain):
    """The OffsetCommit requests of a client.

    interval_ms: time between two requests for a group
    single: requests that commit exactly one more record
    several: number of those that commit more
    backward: number of offsets below the one committed before, without a fetch from there in between
    removed: number of requests that failed because the client was no longer a member of the group
    outdated: requests that failed because the client was a member of an earlier generation
    offsets: by group, topic and partition
    """

    def __init__(self, fetching: Fetching) -> None:
        self.interval_ms = Distribution()
        self.single = Burst(_SINGLE, _SINGLE_SECONDS)
        self.several = self.backward = self.removed = 0
        self.outdated = Burst(_OUTDATED, _OUTDATED_SECONDS)
        self.backward_examples, self.rejected_examples, self.ahead_examples = Examples(), Examples(), Examples()
        self.offsets: dict[OffsetKey, Offset] = {}
        self._positions = fetching.positions
        self._ahead: dict[OffsetKey, Ahead] = {}
        self._requests: dict[str, int] = {}  # time of the last one, by group

    def handlers(self) -> Handlers:
        return {"OffsetCommit": self._commit}

    @property
    def ahead(self) -> dict[OffsetKey, Ahead]:
        """Offsets that the client committed without having read the records before."""
        found = dict(self._ahead)
        for key, offset in self.offsets.items():
            position = self._positions.get(key[1:])
            if position is not None and self._is_ahead(offset, position):
                found.setdefault(key, Ahead(offset.committed, position.highest))
        return found

    def _is_ahead(self, offset: Offset, position: Position) -> bool:
        if position.fetches_since_commit < _FETCHES_AFTER or offset.committed <= position.highest:
            return False
        if len(self._requests) > 1:
            return False  # it may be another consumer that reads
        # A client that goes back (seek) may have read the records before.
        return offset.committed > position.high_watermark or position.lowest_since_commit >= offset.highest_fetched

    def _commit(self, event: Request) -> None:
        if event.error_codes or event.answered_ns is None:
            # librdkafka commits without a member id after it has left in a rebalance.
            if text(event.sent, "member_id") and not event.rule_id:
                self._failed(event)
            return
        previous_ns = self._requests.get(event.group_id)
        if previous_ns is not None:
            self.interval_ms.add((event.received_ns - previous_ns) // _NS_PER_MS)
        if previous_ns is not None or len(self._requests) < _MOST_OFFSETS:
            self._requests[event.group_id] = event.received_ns
        records = sum(self._partition(event, each) for each in event.partitions if each.offset >= 0)
        if records == 1:
            self.single.add(event, event.connection)
        elif records > 1:
            self.several += 1

    def _failed(self, event: Request) -> None:
        if ErrorCode.UNKNOWN_MEMBER_ID in event.error_codes:
            self.removed += 1
        elif ErrorCode.ILLEGAL_GENERATION in event.error_codes:
            self.outdated.add(event, event.connection)
        else:
            return
        self.rejected_examples.note(event)

    def _partition(self, event: Request, one: TopicPartition) -> int:
        """Return the number of records that the client commits more than before; 0 for its first commit."""
        key = event.group_id, one.topic, one.partition
        position, offset = self._positions.get(key[1:]), self.offsets.get(key)
        if offset is None:
            offset, records = Offset(), 0
            if len(self.offsets) < _MOST_OFFSETS:
                self.offsets[key] = offset
        else:
            records = one.offset - offset.committed
            if position is not None and self._is_ahead(offset, position):
                self._ahead[key] = Ahead(offset.committed, position.highest)
                self.ahead_examples.note(event)
            if records < 0:
                self._backward(event, one, position)
        if position is not None:
            self._interval(event, one, offset, position)
            offset.highest_fetched = position.highest
            position.committed()
        offset.committed = one.offset
        return max(records, 0)

    def _interval(self, event: Request, one: TopicPartition, offset: Offset, position: Position) -> None:
        began = offset.committed if offset.committed >= 0 else position.lowest_since_commit
        records = one.offset - began
        if began >= 0 and records >= MANY_RECORDS and position.data_since_commit_ns:
            interval = Interval(event.received_ns - position.data_since_commit_ns, records)
            offset.longest = max(offset.longest, interval, key=lambda each: each.ns)

    def _backward(self, event: Request, one: TopicPartition, position: Position | None) -> None:
        if position is None or 0 <= position.lowest_since_commit <= one.offset:
            return  # the client does not read the partition, or it went back before (seek)
        if len(self._requests) > 1:
            return  # the client may have gone back before it committed for another group
        self.backward += 1
        self.backward_examples.note(event)
