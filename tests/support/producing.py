"""Our producer and our broker in virtual time, with the journal's events of the producer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

from sluice import Broker
from sluice.client.errors import KafkaException
from sluice.client.producer import Producer, RecordMetadata
from sluice.journal_events import ConnectionClosed, Fault, Request
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.record import iter_records

TOPIC = "t"


class Nobody:
    """The future of a record whose outcome no caller awaits."""

    def done(self) -> bool:
        return True

    def set_result(self, result: RecordMetadata, /) -> None: ...

    def set_exception(self, exception: KafkaException, /) -> None: ...


@dataclass
class End:
    """The outcome of a record, and its time in ms since the producer started."""

    at_ms: float
    metadata: RecordMetadata | None = None
    error: BaseException | None = None


@dataclass
class Stage:
    """A broker with a topic, whose metadata the producer has."""

    broker: Broker
    producer: Producer
    began_s: float
    ends: dict[bytes, End] = field(default_factory=dict)  # by value, in order of time

    @property
    def now_ms(self) -> float:
        return round((asyncio.get_running_loop().time() - self.began_s) * 1e3, 3)

    async def send(self, value: bytes = b"v", *, partition: int | None = 0) -> asyncio.Future[RecordMetadata]:
        """Send a record, and note its outcome."""
        future = await self.producer.send(TOPIC, value, partition=partition)
        future.add_done_callback(lambda done: self._note(value, done))
        return future

    def _note(self, value: bytes, done: asyncio.Future[RecordMetadata]) -> None:
        error = done.exception()
        self.ends[value] = End(self.now_ms, None if error else done.result(), error)

    async def ended(self, *futures: asyncio.Future[RecordMetadata]) -> None:
        await asyncio.gather(*futures, return_exceptions=True)
        await asyncio.sleep(0)

    @property
    def produced(self) -> list[Request]:
        """Return the Produce requests from the journal, answered or not."""
        return self.broker.journal.requests(api="Produce")[1:]

    @property
    def produced_at_ms(self) -> list[float]:
        return [self._in_ms(request.received_ns) for request in self.produced]

    @property
    def hits(self) -> list[tuple[float, int]]:
        """Return the times and connections of fault hits on Produce requests, answered or not."""
        events = self.broker.journal.events(kind="fault")
        return [(self._in_ms(event.at_ns), event.connection) for event in events if isinstance(event, Fault)]

    @property
    def in_flight(self) -> int:
        return self.producer._network.client.in_flight()

    def _in_ms(self, time_ns: int) -> float:
        """Return a time of the journal in ms since the producer started."""
        return round(time_ns / 1e6 - _WALL_START_MS - (self.began_s - _LOOP_START_S) * 1e3, 1)

    @property
    def closed_at_ms(self) -> list[float]:
        """Return the times at which connections with Produce requests were closed."""
        used = {request.connection for request in self.produced}
        events = self.broker.journal.events(kind="connection-closed")
        return [
            self._in_ms(event.at_ns)
            for event in events
            if isinstance(event, ConnectionClosed) and event.connection in used
        ]

    def log(self, partition: int = 0) -> list[bytes]:
        """Return the values in a partition's log, without the first one."""
        return values_in(self.broker, partition)[partition == 0 :]


_COMMITTED = bytes((0, 0, 0, 1))  # the key of a marker: version and type
_WALL_START_MS = 1_700_000_000_000.0
_LOOP_START_S = 10_000.0


def values_in(broker: Broker, partition: int) -> list[bytes]:
    found = broker._running.cluster.metadata.partition(TOPIC, partition)
    assert found is not None
    log = found.log
    values: list[bytes] = []
    while (offset := len(values)) < log.log_end_offset:
        data = b"".join(log.read(offset, 1 << 30, log.log_end_offset, True).parts)
        for position, header in iter_batches(data):
            batch = data[position : position + header.size_in_bytes]
            values += [record.value or b"" for record in iter_records(batch)]
    return values


def committed_in(broker: Broker, partition: int) -> list[bytes]:
    """Return the values that a read_committed consumer reads."""
    found = broker._running.cluster.metadata.partition(TOPIC, partition)
    assert found is not None
    log = found.log
    assert log.last_stable_offset == log.log_end_offset, "a transaction is open"
    values: list[bytes] = []
    open_ones: dict[int, list[bytes]] = {}  # of transactions, by their producers
    offset = 0
    while offset < log.log_end_offset:
        data = b"".join(log.read(offset, 1 << 30, log.log_end_offset, True).parts)
        for position, header in iter_batches(data):
            offset = header.last_offset + 1
            records = list(iter_records(data[position : position + header.size_in_bytes]))
            if header.is_control:
                ended = open_ones.pop(header.producer_id, [])
                values += ended if records[0].key == _COMMITTED else []
            else:
                open_ones.setdefault(header.producer_id, []).extend(record.value or b"" for record in records)
    return values


@asynccontextmanager
async def producing(
    config: dict[str, str | int] | None = None,
    *,
    broker_config: dict[str, str | float] | None = None,
    seed: int = 0,
    random: Random | None = None,
) -> AsyncIterator[Stage]:
    """Start a broker and a producer of this configuration. `random` replaces the seeded generator."""
    async with Broker(config=broker_config or {}, seed=seed) as broker:
        await broker.cluster.create_topic(TOPIC)
        given = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0, **(config or {})}
        async with Producer(given, random=random or Random(seed)) as producer:
            await producer.partitions_for(TOPIC)
            await (await producer.send(TOPIC, b"first", partition=0))
            yield Stage(broker, producer, asyncio.get_running_loop().time())
