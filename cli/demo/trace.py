"""What a client of the demo saw, and what follows from it: whole cycles, and the same requests in virtual time.

Pure: times are parameters, in milliseconds. The arithmetic of the replay is the broker's own (`sluice.quotas`).

Theory. A windowed sensor forgets what a client sent 11 s after the last event of its sample, not earlier and not bit by
bit. So a client that sends as fast as it may does not get an even rate: a fresh sensor lets ten seconds' worth through
at once, then each further request waits for its own size, and after 11 to 12 s, when the burst is forgotten, there is
room for the next one. One second alone shows anything from 0 to 11 times the quota; only an average over whole cycles,
from the start of one burst to the start of another, says what the client got.

Where a cycle is cut matters little, as hardly anything passes before a burst. Simulated with requests of 5 and 10 % of
a second's quota, clients 3 to 60 times as fast as their quota and timers up to 20 ms late, two whole cycles gave
producers 0.998 to 1.000 of their quota and consumers 0.99 to 1.04; a fixed 24 s gave 0.92 to 1.40.
"""

from bisect import bisect_left
from itertools import cycle, pairwise
from statistics import median

from msgspec import Struct

from sluice.quotas.entity import QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig

# A burst is a stretch of time of which every second lets more than the quota pass, and one more than 1.5 times as much:
# held clients get a few requests in a second at most, and released ones ten seconds' worth as fast as they can.
_SECOND_MS = 1000.0
_IN_BURST, _PEAK_OF_BURST = 1.0, 1.5
# It may begin in two or three steps, a second apart, as the samples of the last one are forgotten one after the other.
_STEPS_APART_MS = 1500.0
# What comes sooner is the same burst, of a client that had to wait for a processor: no sample is forgotten within 11 s.
_SHORTEST_CYCLE_MS = 8000.0

PRODUCE, FETCH = "Produce", "Fetch"  # Kafka's QuotaType, as the metrics spell it


class Exchange(Struct, frozen=True, gc=False):
    """One request that a quota is charged for, as its client saw it."""

    sent_ms: float
    answered_ms: float
    payload_bytes: int  # record bytes that got through; 0 when a throttled fetch came back empty
    throttle_ms: int  # `throttle_time_ms` of the answer


class Cycles(Struct, frozen=True):
    """The whole cycles after the first burst, and the average rate over them in bytes/s."""

    count: int
    start_ms: float
    end_ms: float
    byte_rate: float


class Trace:
    """All exchanges of one client, in the order of their answers."""

    __slots__ = ("_answered_ms", "_bytes_before", "exchanges")

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._answered_ms: list[float] = []
        self._bytes_before = [0]  # sums of the payloads before exchange 0, 1, ...

    @property
    def payload_bytes(self) -> int:
        """Record bytes that got through so far."""
        return self._bytes_before[-1]

    def add(self, exchange: Exchange) -> None:
        """Adds an exchange that was answered just now."""
        self.exchanges.append(exchange)
        self._answered_ms.append(exchange.answered_ms)
        self._bytes_before.append(self._bytes_before[-1] + exchange.payload_bytes)

    def bytes_between(self, start_ms: float, end_ms: float) -> int:
        """Payload of the exchanges that were answered from `start_ms` on and before `end_ms`."""
        first, end = (bisect_left(self._answered_ms, at_ms) for at_ms in (start_ms, end_ms))
        return self._bytes_before[end] - self._bytes_before[first]

    def byte_rate(self, start_ms: float, end_ms: float) -> float:
        """The average over a span of time, in bytes/s."""
        return self.bytes_between(start_ms, end_ms) / ((end_ms - start_ms) / 1e3)

    def burst_starts(self, quota: float) -> list[float]:
        """When each burst of a client with this quota (bytes/s) began."""
        starts: list[float] = []
        begin_ms = last_ms = float("-inf")
        for at_ms in self._answered_ms:
            if at_ms + _SECOND_MS > self._answered_ms[-1]:
                break  # its second is not over
            of_quota = self.byte_rate(at_ms, at_ms + _SECOND_MS) / quota
            if of_quota <= _IN_BURST:
                continue
            if at_ms - last_ms > _STEPS_APART_MS:
                begin_ms = at_ms
            last_ms = at_ms
            if of_quota > _PEAK_OF_BURST and (not starts or begin_ms - starts[-1] > _SHORTEST_CYCLE_MS):
                starts.append(begin_ms)
        return starts

    def whole_cycles(self, quota: float) -> Cycles | None:
        """The cycles after the first burst, which had an empty sensor; None when not even one is complete."""
        starts = self.burst_starts(quota)[1:]
        if len(starts) < 2:
            return None
        return Cycles(len(starts) - 1, starts[0], starts[-1], self.byte_rate(starts[0], starts[-1]))


class Client(Struct, eq=False):
    """One client of the demo: who it is, which quota holds it, and what it has seen."""

    name: str  # the client id
    library: str
    kind: str  # PRODUCE or FETCH
    quota: float  # bytes/s
    trace: Trace
    asks_for_more: bool = True  # than its quota


def replay(client: Client) -> Trace:
    """The same requests in virtual time: every throttle is served to the millisecond, and nothing else is late.

    A produce request is charged, then its client waits; a fetch that is over quota is un-recorded and asked again. What
    the client itself needed between two requests is taken from the trace: the demo's do not wait by themselves but send
    the next one, which the broker leaves unread. Should virtual time get ahead, the requests are taken from the start.
    """
    trace, kind, name = client.trace, client.kind, client.name
    manager = ClientQuotaManager(kind, QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(QuotaEntity(client_id=name), client.quota)
    virtual = Trace()
    now_ms, end_ms = trace.exchanges[0].answered_ms, trace.exchanges[-1].answered_ms
    for payload_bytes, own_ms in cycle(_steps(trace)):
        throttle_ms = manager.record("", name, payload_bytes, int(now_ms))
        while kind == FETCH and throttle_ms > 0:
            manager.unrecord("", name, payload_bytes, int(now_ms))
            virtual.add(Exchange(now_ms, now_ms, 0, throttle_ms))
            now_ms += throttle_ms
            throttle_ms = manager.record("", name, payload_bytes, int(now_ms))
        virtual.add(Exchange(now_ms, now_ms, payload_bytes, throttle_ms))
        now_ms += max(throttle_ms, own_ms)
        if now_ms > end_ms:
            return virtual
    raise AssertionError("a trace has exchanges, so its steps never end")


def _steps(trace: Trace) -> list[tuple[int, float]]:
    """What the client asked for, and how long it took until its next answer where no throttle was in the way."""
    exchanges = trace.exchanges
    free = [after.answered_ms - after.sent_ms for before, after in pairwise(exchanges) if not before.throttle_ms]
    service_ms = median(free) if free else 0.0
    steps = []
    for exchange, after in pairwise(exchanges):
        if not exchange.throttle_ms:
            steps.append((exchange.payload_bytes, after.answered_ms - exchange.answered_ms))
        elif exchange.payload_bytes:  # the next request waited for its turn: what it took by itself is not known
            steps.append((exchange.payload_bytes, after.sent_ms - exchange.answered_ms + service_ms))
    return steps
