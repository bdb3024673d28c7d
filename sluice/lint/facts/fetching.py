"""What a client fetches: its settings, its positions, and what the responses contain."""

from collections import Counter

import msgspec

from sluice.journal_events import ConnectionClosed, Request, TopicPartition, Value
from sluice.protocol.errors import ErrorCode

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
_READ_COMMITTED = 1

# The values of these fields of a request, which most requests of a client have in common.
_FIELDS = ("max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "partition_max_bytes")
_MOST_SETTINGS, _MOST_CONNECTIONS = 256, 1024
_Settings = tuple[Value | None, ...]


class LagGrowth(msgspec.Struct):
    """The longest time in which the lag of a partition grew at each step.

    from_lag, to_lag: the lag at its start and end
    """

    from_ns: int
    to_ns: int
    from_lag: int
    to_lag: int

    @classmethod
    def at(cls, at_ns: int, lag: int) -> "LagGrowth":
        return cls(at_ns, at_ns, lag, lag)

    @property
    def seconds(self) -> float:
        return (self.to_ns - self.from_ns) / 1e9


class Position(msgspec.Struct):
    """Where a client reads a partition.

    highest: highest offset that it requested
    lowest_since_commit: lowest offset that it requested after its last commit for the partition; -1 without a request
    fetches_since_commit: number of those requests
    high_watermark: highest one that was returned
    first_data_ns, last_data_ns: times of the first and the last response with records; 0 without one
    data_since_commit_ns: time of the first one after its last commit for the partition; 0 without one
    reads_uncommitted: number of responses with records to requests with isolation level read_uncommitted
    growth, growing: the longest growth of the lag, and the current one
    """

    growth: LagGrowth
    growing: LagGrowth
    highest: int = -1
    lowest_since_commit: int = -1
    fetches_since_commit: int = 0
    high_watermark: int = -1
    first_data_ns: int = 0
    last_data_ns: int = 0
    data_since_commit_ns: int = 0
    reads_uncommitted: int = 0

    def committed(self) -> None:
        """Start counting anew, after a commit for the partition."""
        self.lowest_since_commit, self.fetches_since_commit, self.data_since_commit_ns = -1, 0, 0

    def returned(self, at_ns: int) -> None:
        """Note a response with records."""
        self.last_data_ns = at_ns
        if not self.data_since_commit_ns:
            self.data_since_commit_ns = at_ns
            self.first_data_ns = self.first_data_ns or at_ns

    def requested(self, offset: int) -> None:
        if offset > self.highest:
            self.highest = offset
        self.fetches_since_commit += 1
        if offset < self.lowest_since_commit or self.lowest_since_commit < 0:
            self.lowest_since_commit = offset

    def lags(self, at_ns: int, lag: int) -> None:
        growing = self.growing
        if at_ns - growing.to_ns < _LAG_STEP_NS:
            return
        if lag <= growing.to_lag:
            self.growing = LagGrowth.at(at_ns, lag)
            return
        growing.to_ns, growing.to_lag = at_ns, lag
        if growing.seconds > self.growth.seconds:
            self.growth = growing


class _Answered(msgspec.Struct):
    """The last response for a partition on a connection, to a request with low limits.

    The next request of the partition shows whether the response left off records.
    """

    offset: int
    end: int


class _Connection(msgspec.Struct):
    """A connection with fetches.

    settings: those of the latest request
    is_limited: whether its limits are below the defaults
    """

    partition_max_bytes: int = 0  # of the latest request that names it; those of a fetch session do not
    settings: _Settings = ()
    is_limited: bool = False
    answered: dict[tuple[str, int], _Answered] = {}


class Fetching(Domain):
    """The fetches of a client, without those of followers.

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
        self.positions: dict[tuple[str, int], Position] = {}
        self.unlisted = self.limited = self.cut = self.smallest_limit = self.out_of_range = 0
        self.unwaiting, self.tiny = Burst(_UNWAITING, _TEN_SECONDS), Burst(_TINY, _TEN_SECONDS)
        self.cut_examples, self.out_of_range_examples = Examples(), Examples()
        self._settings: dict[_Settings, int] = {}  # number of requests
        self._connections: dict[int, _Connection] = {}

    def by(self, field: str) -> Counter[int]:
        """Return the number of requests by the value of a field, such as max_wait_ms."""
        index, found = _FIELDS.index(field), Counter[int]()
        for settings, count in self._settings.items():
            value = settings[index]
            if isinstance(value, int):
                found[value] += count
        return found

    def handlers(self) -> Handlers:
        return {"Fetch": self._fetch, "connection-closed": self._closed}

    def contribute(self, topics: Topics) -> None:
        for (topic, partition), position in self.positions.items():
            facts = topics[topic]
            facts.is_unlisted = facts.is_unlisted or self.unlisted > 0
            if position.last_data_ns:
                facts.note_read(partition, (position.first_data_ns, position.last_data_ns))
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
            if len(self._connections) >= _MOST_CONNECTIONS:
                del self._connections[next(iter(self._connections))]
            connection = self._connections[event.connection] = _Connection()
        settings = tuple(map(sent.get, _FIELDS))
        if settings != connection.settings:
            self._new_settings(connection, settings)
        self._settings[settings] = self._settings.get(settings, 0) + 1
        if event.error_codes:
            if ErrorCode.OFFSET_OUT_OF_RANGE in event.error_codes and not event.rule_id:
                self.out_of_range += 1
                self.out_of_range_examples.note(event)
            return
        size = 0
        for each in event.partitions:
            if each.offset >= 0:
                size += self._partition(event, connection, each)
        if not event.returned or event.partitions_left_off:  # what was returned is not known
            return
        if not size:
            self._empty(event)
        elif size < _TINY_BYTES:
            self.tiny.add(event, event.connection)

    def _new_settings(self, connection: _Connection, settings: _Settings) -> None:
        if len(self._settings) >= _MOST_SETTINGS:
            self._settings.pop(next(iter(self._settings)))
        connection.settings = settings
        max_bytes, limit = settings[2], settings[4]
        if isinstance(limit, int) and limit:
            connection.partition_max_bytes = limit
        lowest = min(connection.partition_max_bytes, max_bytes if isinstance(max_bytes, int) else 0)
        connection.is_limited = 0 < lowest < DEFAULT_PARTITION_MAX_BYTES
        if connection.is_limited:
            self.smallest_limit = min(self.smallest_limit or lowest, lowest)

    def _partition(self, event: Request, connection: _Connection, one: TopicPartition) -> int:
        key, offset, returned, at_ns = (one.topic, one.partition), one.offset, one.fetched, event.at_ns
        if connection.answered:
            self._compare(event, connection.answered.pop(key, None), offset)
        position = self.positions.get(key)
        if position is None:
            growth = LagGrowth.at(at_ns, returned.high_watermark - offset if returned is not None else 0)
            position = Position(growth, growth)
            if len(self.positions) < _MOST_POSITIONS:
                self.positions[key] = position
        position.requested(offset)
        if returned is None:
            return 0
        high_watermark = returned.high_watermark
        position.lags(at_ns, high_watermark - offset)
        if high_watermark > position.high_watermark:
            position.high_watermark = high_watermark
        nbytes = returned.bytes
        if nbytes:
            reads_committed = connection.settings[3] == _READ_COMMITTED
            position.returned(at_ns)
            if not reads_committed:
                position.reads_uncommitted += 1
            if connection.is_limited:
                end = returned.last_stable_offset if reads_committed else high_watermark
                connection.answered[key] = _Answered(offset, end)
        return nbytes

    def _compare(self, event: Request, previous: _Answered | None, offset: int) -> None:
        """Note whether the previous response to the partition left off records."""
        if previous is not None and offset > previous.offset:
            self.limited += 1
            if offset < previous.end:
                self.cut += 1
                self.cut_examples.note(event)

    def _empty(self, event: Request) -> None:
        if number(event.sent, "max_wait_ms") < _SHORTEST_WAIT_MS or number(event.sent, "min_bytes") <= 0:
            self.unwaiting.add(event, event.connection)
