"""The requests of a demo client, its cycles of throttling, and a replay of the requests in virtual time. Pure.

A windowed sensor drops a sample 11 s after its last event, all at once. So a client that sends as fast as possible has
no constant rate: an empty sensor admits ten seconds' worth at once, then each request is delayed for its size. After 11
to 12 s, the sensor drops the burst, and the next one follows. A single second shows 0 to 11 times the quota. Only an
average over whole cycles, from the start of one burst to the start of another, is meaningful.

In simulations, two cycles gave 0.99 to 1.04 of the quota; a fixed 24 s gave 0.92 to 1.40.
"""

from bisect import bisect_left
from itertools import cycle, pairwise
from statistics import median

from msgspec import Struct

from sluice.quotas.entity import QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig

# In a burst, every second exceeds the quota, and one second exceeds 1.5 times the quota; throttled clients pass at most
# a few requests per second.
_SECOND_MS = 1000.0
_IN_BURST, _PEAK_OF_BURST = 1.0, 1.5
# A burst may start in two or three steps, a second apart, as samples are dropped one after the other.
_STEPS_APART_MS = 1500.0
# A shorter time between two starts is one burst, interrupted while the client waited for a processor.
_SHORTEST_CYCLE_MS = 8000.0

# The longest time between two bursts, plus the second that shows a burst.
LONGEST_CYCLE_MS = 13_000.0

PRODUCE, FETCH = "Produce", "Fetch"  # Kafka's QuotaType, as the metrics spell it


class Exchange(Struct, frozen=True, gc=False):
    sent_ms: float
    answered_ms: float
    payload_bytes: int  # accepted or fetched record bytes; 0 for an empty response to a throttled fetch
    throttle_ms: int


class Cycles(Struct, frozen=True):
    """The whole cycles after the first burst, with their average rate in bytes/s."""

    count: int
    start_ms: float
    end_ms: float
    byte_rate: float


class Trace:
    __slots__ = ("_answered_ms", "_bytes_before", "exchanges")

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._answered_ms: list[float] = []
        self._bytes_before = [0]  # cumulative payloads before each exchange

    @property
    def payload_bytes(self) -> int:
        return self._bytes_before[-1]

    def add(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        self._answered_ms.append(exchange.answered_ms)
        self._bytes_before.append(self._bytes_before[-1] + exchange.payload_bytes)

    def bytes_between(self, start_ms: float, end_ms: float) -> int:
        first, end = (bisect_left(self._answered_ms, at_ms) for at_ms in (start_ms, end_ms))
        return self._bytes_before[end] - self._bytes_before[first]

    def byte_rate(self, start_ms: float, end_ms: float) -> float:
        return self.bytes_between(start_ms, end_ms) / ((end_ms - start_ms) / 1e3)

    def burst_starts(self, quota: float) -> list[float]:
        starts: list[float] = []
        begin_ms = last_ms = float("-inf")
        for at_ms in self._answered_ms:
            if at_ms + _SECOND_MS > self._answered_ms[-1]:
                break  # its second is not complete
            of_quota = self.byte_rate(at_ms, at_ms + _SECOND_MS) / quota
            if of_quota <= _IN_BURST:
                continue
            if at_ms - last_ms > _STEPS_APART_MS:
                begin_ms = at_ms
            last_ms = at_ms
            if of_quota > _PEAK_OF_BURST and (not starts or begin_ms - starts[-1] > _SHORTEST_CYCLE_MS):
                starts.append(begin_ms)
        return starts

    def whole_cycles(self, quota: float, at_most: int | None = None) -> Cycles | None:
        """Return the cycles after the first burst, which had an empty sensor, if any is whole."""
        starts = self.burst_starts(quota)[1:][: None if at_most is None else at_most + 1]
        if len(starts) < 2:
            return None
        return Cycles(len(starts) - 1, starts[0], starts[-1], self.byte_rate(starts[0], starts[-1]))


class Client(Struct, eq=False):
    name: str
    library: str
    kind: str
    quota: float
    trace: Trace
    exceeds_quota: bool = True  # whether it tries to send or receive more than its quota


def replay(client: Client, longer_ms: float = 0.0) -> Trace:
    """Return the trace of the same requests in virtual time, with exact throttling and no other delays.

    A produce request is charged, then its client waits; a fetch above the quota is un-recorded and retried. The time
    between requests comes from the trace. The requests repeat until `longer_ms` after the trace.
    """
    trace, kind, name = client.trace, client.kind, client.name
    manager = ClientQuotaManager(kind, QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(QuotaEntity(client_id=name), client.quota)
    virtual = Trace()
    now_ms, end_ms = trace.exchanges[0].answered_ms, trace.exchanges[-1].answered_ms + longer_ms
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
    """Return each payload, and the time until the next response if it were not throttled."""
    exchanges = trace.exchanges
    free = [after.answered_ms - after.sent_ms for before, after in pairwise(exchanges) if not before.throttle_ms]
    service_ms = median(free) if free else 0.0
    steps = []
    for exchange, after in pairwise(exchanges):
        if not exchange.throttle_ms:
            steps.append((exchange.payload_bytes, after.answered_ms - exchange.answered_ms))
        elif exchange.payload_bytes:  # the next request was delayed, so its own time is unknown
            steps.append((exchange.payload_bytes, after.sent_ms - exchange.answered_ms + service_ms))
    return steps
