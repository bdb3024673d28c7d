"""What a client produces: its acknowledgments, batches, compression, timestamps and requests in flight.

A batch is the first one of a Produce request for a partition, of which the journal records the header.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from typing import Any

from sluice.journal_events import ConnectionClosed, ProducedBatch, Request, TopicPartition
from sluice.lint.clients import host_of
from sluice.protocol.errors import ErrorCode

from .domain import Domain, Handlers
from .measures.bursts import Burst
from .measures.distribution import Distribution
from .measures.examples import MOST_EXAMPLES, Examples
from .topics import Produced, Topics

_NS_PER_MS = 1_000_000
# A producer with linger.ms=5, the default since Kafka 4.0, sends at most 200 requests/s to a broker. Faster ones do not
# wait for more records.
_FAST_REQUESTS, _FAST_S = 400, 2.0
# A sixteenth and a half of the default batch.size (16,384).
_SMALL_BATCH_BYTES, _SMALL_RECORD_BYTES = 1024, 8192
# Kafka's time synchronization (NTP) is precise to milliseconds; a record this far ahead has a wrong timestamp.
AHEAD_MS = 10_000
_INITS, _INITS_S = 20, 60.0
_MOST_IN_FLIGHT, _MOST_CONNECTIONS = 16, 1024
_MOST_PARTITIONS = 4096
_TOO_LARGE = frozenset((ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE))


class _Produced:
    """As `Produced`, which takes longer to change."""

    __slots__ = ("batches", "bytes", "first_ns", "last_ns", "records", "transactional")

    def __init__(self, at_ns: int) -> None:
        self.batches = self.records = self.bytes = self.transactional = 0
        self.first_ns = self.last_ns = at_ns


class Producing(Domain):
    """The Produce requests of a client.

    acks, timeouts_ms: number of requests by acks and timeout_ms
    in_flight: highest number of requests in flight on a connection
    unordered: requests of a producer without idempotence during another one for the same partition
    batches, idempotent, transactional, message_sets: number of batches, and those of these kinds
    records, batch_bytes, linger_ms: records, size and span of timestamps of the batches
    compression: bytes by compression type
    single, small: successful requests with one record below half of batch.size, and with several ones in small batches
    too_large: requests with records that are too large for the topic
    ahead_ms, ahead_records: how far timestamps are ahead of the broker's clock, from `AHEAD_MS`; number of the records
    bad_timestamps: requests that were refused with INVALID_TIMESTAMP
    inits: InitProducerId requests
    """

    def __init__(self) -> None:
        self._settings: dict[tuple[Any, Any], int] = {}  # number of requests by acks and timeout_ms, both integers
        self._compression: dict[str, int] = {}  # a Counter takes longer to change
        self.in_flight = self.unordered = 0
        self.batches = self.idempotent = self.transactional = self.message_sets = self.too_large = 0
        self.records, self.batch_bytes, self.linger_ms = Distribution(), Distribution(), Distribution()
        self.single, self.small = Burst(_FAST_REQUESTS, _FAST_S), Burst(_FAST_REQUESTS, _FAST_S)
        self.ahead_ms = Distribution()
        self.ahead_records = self.bad_timestamps = 0
        self.inits = Burst(_INITS, _INITS_S)
        self.requests = 0
        self.examples: dict[str, Examples] = defaultdict(Examples)
        self._in_flight: dict[int, deque[tuple[int, str]]] = {}  # by connection: when responses were written, of what
        self._produced: dict[tuple[str, int], _Produced] = {}

    @property
    def acks(self) -> Counter[int]:
        return self._by(0)

    @property
    def timeouts_ms(self) -> Counter[int]:
        return self._by(1)

    def _by(self, index: int) -> Counter[int]:
        found = Counter[int]()
        for settings, count in self._settings.items():
            found[settings[index]] += count
        return found

    @property
    def compression(self) -> Counter[str]:
        return Counter(self._compression)

    def handlers(self) -> Handlers:
        return {"Produce": self._produce, "InitProducerId": self._init_producer_id, "connection-closed": self._closed}

    def _closed(self, event: ConnectionClosed) -> None:
        self._in_flight.pop(event.connection, None)

    def _init_producer_id(self, event: Request) -> None:
        if not event.error_codes and event.answered_ns is not None:
            self.inits.add(event, host_of(event.peer))

    def _produce(self, event: Request) -> None:
        self.requests += 1
        sent = event.sent
        acks = sent.get("acks")
        if acks is not None:
            settings = acks, sent["timeout_ms"]
            count = self._settings[settings] = self._settings.get(settings, 0) + 1
            if acks != -1 and count <= MOST_EXAMPLES:
                self.examples[f"acks={acks}"].note(event)
        records = self._batches(event)
        if event.error_codes:
            self._refused(event)
        elif records == 1 and event.request_bytes < _SMALL_RECORD_BYTES:
            self.single.add(event, event.connection)
        elif records > 1 and event.request_bytes < _SMALL_BATCH_BYTES * len(event.partitions):
            self.small.add(event, event.connection)
        self._note_in_flight(event)

    def _batches(self, event: Request) -> int:
        """Add the batches, and return the number of records."""
        total = 0
        received_ms = event.received_ns // _NS_PER_MS
        for one in event.partitions:
            batch = one.batch
            if batch is None:
                continue
            self.batches += 1
            nbytes = batch.bytes
            if not batch.compression:
                self.message_sets += 1
                continue
            total += batch.records
            self.records.add(batch.records)
            self.batch_bytes.add(nbytes)
            self._compression[batch.compression] = self._compression.get(batch.compression, 0) + nbytes
            if one.producer_id >= 0:
                self.idempotent += 1
                if batch.is_transactional:
                    self.transactional += 1
            latest_ms = batch.max_timestamp_ms
            self.linger_ms.add(latest_ms - batch.first_timestamp_ms)
            if latest_ms - received_ms > AHEAD_MS:
                self.ahead_ms.add(latest_ms - received_ms)
                self.ahead_records += 1 if batch.first_timestamp_ms - received_ms <= AHEAD_MS else batch.records
                self.examples["ahead"].note(event)
            if not event.error_codes:
                self._add_produced(one, batch, event.at_ns)
        return total

    def _add_produced(self, one: TopicPartition, batch: ProducedBatch, at_ns: int) -> None:
        where = one.topic, one.partition
        found = self._produced.get(where)
        if found is None:
            if len(self._produced) >= _MOST_PARTITIONS:
                return
            found = self._produced[where] = _Produced(at_ns)
        found.batches += 1
        found.records += batch.records
        found.bytes += batch.bytes
        if batch.is_transactional:
            found.transactional += 1
        found.last_ns = at_ns

    def _refused(self, event: Request) -> None:
        if not _TOO_LARGE.isdisjoint(event.error_codes):
            self.too_large += 1
            self.examples["too large"].note(event)
        if ErrorCode.INVALID_TIMESTAMP in event.error_codes:
            self.bad_timestamps += 1
            self.examples["ahead"].note(event)

    def _note_in_flight(self, event: Request) -> None:
        before = self._in_flight.get(event.connection)
        if before is None:
            if len(self._in_flight) >= _MOST_CONNECTIONS:
                del self._in_flight[next(iter(self._in_flight))]
            before = self._in_flight[event.connection] = deque(maxlen=_MOST_IN_FLIGHT)
        received_ns = event.received_ns
        if before and before[-1][0] > received_ns:
            others = [attempt for until_ns, attempt in before if until_ns > received_ns]
            self.in_flight = max(self.in_flight, len(others) + 1)
            is_retried = event.written_ns is not None  # not with acks=0
            has_order = any(one.producer_id >= 0 for one in event.partitions)
            if is_retried and not has_order and _have_common(event.attempt_key, others):
                self.unordered += 1
                self.examples["unordered"].note(event)
        else:
            self.in_flight = self.in_flight or 1
        before.append((event.written_ns or event.at_ns, event.attempt_key))

    def contribute(self, topics: Topics) -> None:
        for (topic, partition), one in self._produced.items():
            topics[topic].produced[partition] = Produced(
                batches=one.batches,
                records=one.records,
                bytes=one.bytes,
                transactional=one.transactional,
                span=(one.first_ns, one.last_ns),
            )


def _have_common(attempt: str, others: Iterable[str]) -> bool:
    wanted = set(attempt.split(","))
    return any(not wanted.isdisjoint(other.split(",")) for other in others)
