"""What a client fetches: its settings, its positions, and what the responses contain."""

from collections import Counter

from sluice.journal_events import ConnectionClosed, Request, TopicPartition

from .domain import Domain, Handlers
from .measures.bursts import Burst
from .measures.examples import Examples
from .measures.fields import number
from .topics import Topics

_TEN_SECONDS = 10.0
# 10 per second. With the default wait of 500 ms, an idle consumer sends 2.
_UNWAITING = 100
# 100 per second: at lower rates, the cost of a request does not matter.
_TINY = 1000
# A broker without data responds at once to a request that does not wait, and no earlier than the wait to one that does.
_SHORTEST_WAIT_MS = 50
# Defaults of max.partition.fetch.bytes and its equivalents in all clients: a fetch cut by it is no choice of the user.
DEFAULT_PARTITION_MAX_BYTES = 1024 * 1024
# A response with less is mostly header: with one record of 1 KiB, half of a request's bytes are not the record's.
_TINY_BYTES = 1024
# Lag is compared at this interval: shorter than one default commit interval, longer than several default fetch waits.
_LAG_STEP_NS = 5_000_000_000
# The positions of more partitions are not kept: no client of a test or service reads as many.
_MOST_POSITIONS = 4096
_OFFSET_OUT_OF_RANGE = 1
_READ_COMMITTED = 1


class LagGrowth:
    """The longest time in which the lag of a partition grew at each step.

    from_lag, to_lag: the lag at its start and end
    """

    __slots__ = ("from_lag", "from_ns", "to_lag", "to_ns")

    def __init__(self, at_ns: int, lag: int) -> None:
        self.from_ns = self.to_ns = at_ns
        self.from_lag = self.to_lag = lag

    @property
    def seconds(self) -> float:
        return (self.to_ns - self.from_ns) / 1e9


class Position:
    """Where a client reads a partition.

    highest: highest offset that it requested
    lowest_since_commit: lowest offset that it requested after its last commit for the partition; -1 without a request
    fetches_since_commit: number of those requests
    high_watermark: highest one that was returned
    data_ns: times of the first and the last response with records; 0 without one
    data_since_commit_ns: time of the first one after its last commit for the partition; 0 without one
    reads_uncommitted: number of responses with records to requests with isolation level read_uncommitted
    growth: the longest growth of the lag
    """

    __slots__ = (
        "_growing",
        "data_ns",
        "data_since_commit_ns",
        "fetches_since_commit",
        "growth",
        "high_watermark",
        "highest",
        "lowest_since_commit",
        "reads_uncommitted",
    )

    def __init__(self, at_ns: int, lag: int) -> None:
        self.highest = self.lowest_since_commit = self.high_watermark = -1
        self.fetches_since_commit = self.reads_uncommitted = self.data_since_commit_ns = 0
        self.data_ns = (0, 0)
        self.growth = self._growing = LagGrowth(at_ns, lag)

    def committed(self) -> None:
        """Start counting anew, after a commit for the partition."""
        self.lowest_since_commit, self.fetches_since_commit, self.data_since_commit_ns = -1, 0, 0

    def requested(self, offset: int) -> None:
        if offset > self.highest:
            self.highest = offset
        self.fetches_since_commit += 1
        if offset < self.lowest_since_commit or self.lowest_since_commit < 0:
            self.lowest_since_commit = offset

    def lags(self, at_ns: int, lag: int) -> None:
        growing = self._growing
        if at_ns - growing.to_ns < _LAG_STEP_NS:
            return
        if lag <= growing.to_lag:
            self._growing = LagGrowth(at_ns, lag)
            return
        growing.to_ns, growing.to_lag = at_ns, lag
        if growing.seconds > self.growth.seconds:
            self.growth = growing


class _Answered:
    """The last response for a partition on a connection: what the next request of the partition shows about it."""

    __slots__ = ("end", "is_limited", "offset")

    def __init__(self, offset: int, end: int, *, is_limited: bool) -> None:
        self.offset, self.end, self.is_limited = offset, end, is_limited


class _Connection:
    __slots__ = ("answered", "partition_max_bytes")

    def __init__(self) -> None:
        self.partition_max_bytes = 0  # of the latest request that names it; those of a fetch session do not
        self.answered: dict[tuple[str, int], _Answered] = {}


class Fetching(Domain):
    """The fetches of a client, without those of followers.

    max_wait_ms, min_bytes, max_bytes, partition_max_bytes, isolation_level: number of requests by value
    positions: by topic and partition
    unlisted: number of requests of which the journal left partitions off
    unwaiting: empty responses that came at once, because the request did not wait
    limited, cut: responses with records to requests with less than the default limits; those of them that left off
        records that the partition had
    smallest_limit: the lowest of these limits, in bytes; 0 without one
    tiny: responses with less than 1 KiB of records
    out_of_range: number of requests for an offset that the partition does not have
    """

    def __init__(self) -> None:
        self.max_wait_ms: Counter[int] = Counter()
        self.min_bytes: Counter[int] = Counter()
        self.max_bytes: Counter[int] = Counter()
        self.partition_max_bytes: Counter[int] = Counter()
        self.isolation_level: Counter[int] = Counter()
        self.positions: dict[tuple[str, int], Position] = {}
        self.unlisted = self.limited = self.cut = self.smallest_limit = self.out_of_range = 0
        self.unwaiting, self.tiny = Burst(_UNWAITING, _TEN_SECONDS), Burst(_TINY, _TEN_SECONDS)
        self.cut_examples, self.out_of_range_examples = Examples(), Examples()
        self._connections: dict[int, _Connection] = {}

    def handlers(self) -> Handlers:
        return {"Fetch": self._fetch, "connection-closed": self._closed}

    def contribute(self, topics: Topics) -> None:
        for (topic, partition), position in self.positions.items():
            facts = topics[topic]
            facts.is_unlisted = facts.is_unlisted or self.unlisted > 0
            if position.data_ns[1]:
                facts.note_read(partition, position.data_ns)
                facts.reads_uncommitted += position.reads_uncommitted

    def _closed(self, event: ConnectionClosed) -> None:
        self._connections.pop(event.connection, None)

    def _fetch(self, event: Request) -> None:
        sent = event.sent
        if "max_wait_ms" not in sent or "replica_id" in sent:
            return
        if event.partitions_left_off:
            self.unlisted += 1
        connection = self._connections.get(event.connection)
        if connection is None:
            connection = self._connections[event.connection] = _Connection()
        is_limited = self._settings(event, connection)
        if event.error_codes:
            if _OFFSET_OUT_OF_RANGE in event.error_codes and not event.rule_id:
                self.out_of_range += 1
                self.out_of_range_examples.note(event)
            return
        size = 0
        for each in event.partitions:
            if each.offset >= 0:
                size += self._partition(event, connection, each, is_limited=is_limited)
        if not event.returned or event.partitions_left_off:  # what was returned is not known
            return
        if not size:
            self._empty(event)
        elif size < _TINY_BYTES:
            self.tiny.add(event)

    def _settings(self, event: Request, connection: _Connection) -> bool:
        """Count the settings, and return whether the limits are below the defaults."""
        sent = event.sent
        max_bytes, limit = number(sent, "max_bytes"), number(sent, "partition_max_bytes")
        self.max_wait_ms[number(sent, "max_wait_ms")] += 1
        self.min_bytes[number(sent, "min_bytes")] += 1
        self.max_bytes[max_bytes] += 1
        self.isolation_level[number(sent, "isolation_level")] += 1
        if limit:
            self.partition_max_bytes[limit] += 1
            connection.partition_max_bytes = limit
        lowest = min(connection.partition_max_bytes, max_bytes)
        if not 0 < lowest < DEFAULT_PARTITION_MAX_BYTES:
            return False
        self.smallest_limit = min(self.smallest_limit or lowest, lowest)
        return True

    def _partition(self, event: Request, connection: _Connection, one: TopicPartition, *, is_limited: bool) -> int:
        key, offset, returned = (one.topic, one.partition), one.offset, one.fetched
        previous = connection.answered.pop(key, None)
        if previous is not None and previous.is_limited and offset > previous.offset:
            self.limited += 1
            if offset < previous.end:
                self.cut += 1
                self.cut_examples.note(event)
        lag = returned.high_watermark - offset if returned is not None else 0
        position = self.positions.get(key)
        if position is None:
            position = Position(event.at_ns, lag)
            if len(self.positions) < _MOST_POSITIONS:
                self.positions[key] = position
        position.requested(offset)
        if returned is None:
            return 0
        position.lags(event.at_ns, lag)
        if returned.high_watermark > position.high_watermark:
            position.high_watermark = returned.high_watermark
        if returned.bytes:
            reads_committed = event.sent.get("isolation_level") == _READ_COMMITTED
            position.data_ns = position.data_ns[0] or event.at_ns, event.at_ns
            position.data_since_commit_ns = position.data_since_commit_ns or event.at_ns
            if not reads_committed:
                position.reads_uncommitted += 1
            end = returned.high_watermark if not reads_committed else returned.last_stable_offset
            connection.answered[key] = _Answered(offset, end, is_limited=is_limited)
        return returned.bytes

    def _empty(self, event: Request) -> None:
        if number(event.sent, "max_wait_ms") < _SHORTEST_WAIT_MS or number(event.sent, "min_bytes") <= 0:
            self.unwaiting.add(event)
