"""Synthetic clients whose traffic is known, recorded with and without a quota, in virtual time.

A workload is a source of records and a client. The source is the same with and without a quota; the client batches,
queues, drops or waits as real ones do. The broker charges each request by its own arithmetic, and delays responses
(KIP-13) or mutes connections (KIP-219).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal

from sluice.broker.throttling.profile import PROFILES
from sluice.journal_events import AnyEvent, Throttle
from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.spark.charges.charges import Kind
from tests.support.journal_lines import produced

CLIENT_ID = "shop"
QUOTAS = (0.2, 2.0)  # of the demand
_BEGIN_MS = 1_700_000_000_000
_NS_PER_MS = 1_000_000
_RTT_MS = 2
_OVERHEAD_BYTES = 120  # of a request

Style = Literal["paced", "bursty", "backlogged", "closed loop"]
Mode = Literal["mute", "hold"]
Record = tuple[float, int]  # time in ms, bytes


@dataclass(frozen=True)
class Workload:
    """A client and its source.

    connections: they take records in turn
    linger_ms, batch_bytes: as of a producer
    buffer_bytes: records that do not fit are dropped
    timeout_ms: after it, a client that received no response connects and sends again
    reports: whether responses have the throttle time (not with acks=0)
    """

    seed: int
    style: Style
    seconds: int
    mode: Mode
    kind: Kind = "Produce"
    connections: int = 1
    linger_ms: int = 0
    batch_bytes: int = 16_384
    buffer_bytes: int = 1 << 40
    timeout_ms: int = 1 << 40
    reports: bool = True


def workload(seed: int) -> Workload:
    random = Random(seed)
    styles: tuple[Style, ...] = ("paced", "bursty", "backlogged", "closed loop")
    mode: Mode = random.choice(("mute", "mute", "hold"))
    kind: Kind = random.choice(("Produce", "Produce", "Produce", "Fetch"))
    return Workload(
        seed,
        styles[seed % 4],
        random.choice((115, 120, 180, 300)),
        mode,
        kind,
        connections=1 if kind == "Fetch" else random.choice((1, 1, 2, 3)),
        linger_ms=random.choice((0, 5, 50, 500)),
        batch_bytes=random.choice((16_384, 131_072, 1_048_576)),
        buffer_bytes=random.choice((1 << 40, 1 << 40, 2_000_000)),
        timeout_ms=random.choice((1 << 40, 30_000)) if mode == "hold" and kind == "Produce" else 1 << 40,
        reports=mode == "hold" or kind == "Fetch" or random.random() < 0.85,
    )


def sent_by(load: Workload) -> list[Record]:
    """Return the records of a source that does not wait for responses."""
    random = Random(load.seed)
    rate = 10 ** random.uniform(3, 6)  # bytes/s
    if load.style == "backlogged":
        nbytes = rate * load.seconds * random.uniform(0.3, 1.5)
        return [(0.0, int(nbytes / 500) + 1)] * 500
    every_ms, count = random.choice((100, 500, 2000)), 1
    if load.style == "bursty":
        every_ms, count = random.choice((2000, 5000, 10_000, 25_000)), random.choice((1, 10, 40))
    is_regular, at_ms, nbytes = random.random() < 0.5, random.uniform(0, 2000), rate * every_ms / 1000 / count
    records = []
    while at_ms < load.seconds * 1000:
        records += [(at_ms + number, int(nbytes * random.uniform(0.5, 1.5)) + 1) for number in range(count)]
        at_ms += every_ms if is_regular else random.expovariate(1 / every_ms)
    return records


def rounds_of(load: Workload) -> Iterator[tuple[float, list[int]]]:
    """Yield the pauses of a closed loop, and the sizes of the records sent after each."""
    random = Random(load.seed)
    pause_ms, count, nbytes = random.choice((20, 200, 2000)), random.choice((1, 3, 20)), 10 ** random.uniform(2, 5)
    while True:
        yield random.uniform(0.5, 1.5) * pause_ms, [int(nbytes * random.uniform(0.5, 1.5)) + 1 for _ in range(count)]


class _Connection:
    """A connection of the client, with one request in flight, and the records that wait for it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.coming: list[Record] = []  # the latest first
        self.queue: list[Record] = []
        self.again: list[Record] = []  # a batch to send again
        self.answered_ms = 0.0
        self.free_ms = 0.0  # when the next request can be sent

    def ready_ms(self, load: Workload) -> float | None:
        if self.again:
            return self.free_ms
        due = self.queue or self.coming[-1:]
        if not due:
            return None
        waiting, full_ms = sum(nbytes for _, nbytes in self.queue), due[0][0] + load.linger_ms
        for at_ms, nbytes in reversed(self.coming):
            if waiting >= load.batch_bytes or at_ms >= full_ms:
                break
            waiting += nbytes
            if waiting >= load.batch_bytes:
                full_ms = at_ms
        return max(self.free_ms, due[0][0] if waiting >= load.batch_bytes and self.queue else full_ms)

    def take(self, now_ms: float, load: Workload) -> list[Record]:
        queued = sum(nbytes for _, nbytes in self.queue)
        while self.coming and self.coming[-1][0] <= now_ms:
            record = self.coming.pop()
            if queued + record[1] <= load.buffer_bytes or not self.queue:
                self.queue.append(record)
                queued += record[1]
        count, nbytes = 1, self.queue[0][1]
        while count < len(self.queue) and nbytes + self.queue[count][1] <= load.batch_bytes:
            nbytes += self.queue[count][1]
            count += 1
        taken, self.queue = self.queue[:count], self.queue[count:]
        return taken


class Recording:
    """The journal of one workload, under `quota` or without one."""

    def __init__(self, load: Workload, quota: float | None) -> None:
        self.events: list[AnyEvent] = []
        self.bytes = 0  # of requests, without those sent again
        self.was_throttled = False
        self._load = load
        self._manager = ClientQuotaManager(load.kind, QuotaConfig(), QuotaTable(PROFILES["kafka-4.4"].empty_client_id))
        if quota is not None:
            self._manager.set_quota(QuotaEntity(client_id=DEFAULT), quota)
        self._connections = [_Connection(number) for number in range(1, load.connections + 1)]
        self._opened = load.connections
        self._rounds = rounds_of(load)
        if load.style != "closed loop":
            records = sent_by(load)
            for number, each in enumerate(self._connections):
                each.coming = records[number :: load.connections][::-1]
        self._run()

    @property
    def span_ms(self) -> float:
        return (self.events[-1].at_ns - self.events[0].at_ns) / _NS_PER_MS if self.events else 0.0

    def _run(self) -> None:
        load = self._load
        while True:
            ready = [(at_ms, each) for each in self._connections if (at_ms := each.ready_ms(load)) is not None]
            if not ready and load.style == "closed loop":
                self._begin_round()
                continue
            now_ms, connection = min(ready, default=(load.seconds * 1e3, None), key=lambda each: each[0])
            if now_ms >= load.seconds * 1000 or connection is None:
                self.events.sort(key=lambda event: event.at_ns)
                return
            is_new = not connection.again
            batch, connection.again = connection.again or connection.take(now_ms, load), []
            self._request(connection, batch, now_ms, is_new=is_new)

    def _begin_round(self) -> None:
        """Send the next records of a closed loop; its pause begins after the last response."""
        pause_ms, sizes = next(self._rounds)
        at_ms = max(each.answered_ms for each in self._connections) + pause_ms
        for number, nbytes in enumerate(sizes):
            self._connections[number % len(self._connections)].coming.insert(0, (at_ms, nbytes))

    def _request(self, connection: _Connection, batch: list[Record], now_ms: float, *, is_new: bool) -> None:
        load, nbytes = self._load, _OVERHEAD_BYTES + sum(nbytes for _, nbytes in batch)
        # A backlogged client is limited by its own rate.
        now_ms += nbytes / load.batch_bytes * 250 if load.style == "backlogged" else _RTT_MS / 2
        throttle_ms = self._manager.record("", CLIENT_ID, float(nbytes), _BEGIN_MS + int(now_ms))
        is_empty = bool(throttle_ms) and load.kind == "Fetch" and load.mode == "mute"
        if is_empty:
            self._manager.unrecord("", CLIENT_ID, float(nbytes), _BEGIN_MS + int(now_ms))
            connection.again = batch
        elif is_new:
            self.bytes += nbytes
        self.was_throttled |= bool(throttle_ms)
        delay_ms = throttle_ms if load.mode == "hold" else 0
        self._record(connection, now_ms, delay_ms, 0 if is_empty else nbytes, throttle_ms)
        connection.answered_ms = now_ms + delay_ms + _RTT_MS / 2
        connection.free_ms = now_ms + throttle_ms + _RTT_MS / 2
        if delay_ms > load.timeout_ms:  # send it again on another connection
            connection.again, connection.free_ms = batch, now_ms + load.timeout_ms
            self._opened += 1
            connection.number = self._opened

    def _record(self, connection: _Connection, now_ms: float, delay_ms: int, nbytes: int, throttle_ms: int) -> None:
        load, at_ns = self._load, (_BEGIN_MS * 1000 + int(now_ms * 1000)) * 1000
        is_fetch, delay_ns = load.kind == "Fetch", delay_ms * _NS_PER_MS
        event = produced(
            at_ns, client_id=CLIENT_ID, connection=connection.number, version=9, api=load.kind, api_key=int(is_fetch),
            received_ns=at_ns, started_ns=at_ns, answered_ns=at_ns + delay_ns, written_ns=at_ns + delay_ns,
            request_bytes=100 if is_fetch else nbytes, response_bytes=nbytes if is_fetch else 60,
            throttle_time_ms=throttle_ms if load.reports else 0,
        )  # fmt: skip
        self.events.append(event)
        if throttle_ms and not load.reports:
            fields = {name: getattr(event, name) for name in Throttle.__struct_fields__ if hasattr(event, name)}
            self.events.append(Throttle(**fields | {"quota": load.kind, "throttle_time_ms": throttle_ms}))
