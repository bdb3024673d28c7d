"""A client as the page shows it: its names, its usage of quotas, and its last two minutes."""

from collections import deque
from collections.abc import Iterator, Mapping

import msgspec

from sluice.broker.broker import Broker
from sluice.quotas.manager import ClientQuotaManager

from .meter import Meter, MeterSeen

# Two snapshots a second for two minutes.
POINTS = 240
ClientKey = tuple[str, str]
# Snapshot number, bytes per second since the previous snapshot, 1 if throttled. Points of idle clients are omitted.
Point = tuple[int, int, int]
_BYTES = ("Produce", "Fetch")


class Limit(msgspec.Struct, frozen=True, gc=False):
    """The quota that would apply to a client, for a kind without recorded usage. Fields as of MeterSeen."""

    kind: str
    bound: float
    user: str | None
    client_id: str | None


class ClientSeen(msgspec.Struct, frozen=True, gc=False):
    """The state of a client.

    id: number of the client in this feed
    meters: one for each kind of quota with recorded usage
    limits: one for each quota for bytes without recorded usage
    connections: number of connections
    waiting: number of connections that wait for a throttle time or a response
    """

    id: int
    user: str
    client_id: str
    software: str
    connections: int
    waiting: int
    meters: list[MeterSeen]
    limits: list[Limit]


class ClientRow:
    __slots__ = (
        "_meters", "client_id", "connections", "encoded", "folded", "id", "last_active_ms", "limits", "meters",
        "points", "read_ms", "snapshot_number", "software", "user", "waiting",
    )  # fmt: skip

    def __init__(self, number: int, key: ClientKey) -> None:
        self.id = number
        self.user, self.client_id = key
        self.folded = f"{self.client_id}\n{self.user}".casefold()  # for the search
        self.software = ""
        self.connections = self.waiting = 0
        self.last_active_ms = 0.0
        self.snapshot_number = -1  # of the last read
        self.read_ms = 0.0
        self.meters: list[MeterSeen] = []
        self.limits: list[Limit] = []
        self.points: deque[Point] = deque(maxlen=POINTS)
        self.encoded = b""
        self._meters: dict[tuple[int, str], Meter] = {}

    @property
    def rate(self) -> float:
        return sum(meter.rate for meter in self.meters if meter.kind in _BYTES)

    @property
    def share(self) -> float:
        return max((meter.share for meter in self.meters), default=0.0)

    @property
    def throttled_total_ms(self) -> int:
        return sum(meter.throttled_total_ms for meter in self.meters)

    @property
    def may_have_changed(self) -> bool:
        if self.snapshot_number < 0 or self.last_active_ms > self.read_ms:
            return True
        return any(meter.rate or meter.held_until_ms for meter in self.meters)

    def read(
        self, brokers: Mapping[int, Broker], mutation: ClientQuotaManager | None, number: int, now_ms: float
    ) -> None:
        nearest: dict[str, MeterSeen] = {}
        charged = 0.0
        is_held = False
        for node_id, broker in brokers.items():
            wall_ms = broker.throttler.time.peek(broker.clock.wall_ms())
            managers = [*broker.quotas] if mutation is None else [*broker.quotas, mutation]
            mutation = None  # read once: it belongs to the controller, not to a broker
            for manager in managers:
                meter = self._meter(manager, node_id)
                if meter is None:
                    continue
                seen = meter.read(manager.kind, node_id, manager.rules.bucket(self.user, self.client_id), wall_ms)
                charged += meter.charged if manager.kind in _BYTES else 0
                is_held = is_held or seen.held_until_ms > 0
                best = nearest.get(manager.kind)
                if best is None or (seen.held_until_ms, seen.share, seen.rate) > (
                    best.held_until_ms,
                    best.share,
                    best.rate,
                ):
                    nearest[manager.kind] = seen
        self.meters = [*nearest.values()]
        self.limits = [*self._limits(next(iter(brokers.values())), nearest)]
        self._note(number, now_ms, charged, is_held=is_held)
        self.encoded = msgspec.json.encode(self._seen())

    def _meter(self, manager: ClientQuotaManager, node_id: int) -> Meter | None:
        sensors = manager.peek_sensors(manager.rules.bucket(self.user, self.client_id))
        if sensors is None:
            return None
        meter = self._meters.get((node_id, manager.kind))
        if meter is None or not meter.is_of(sensors):
            meter = self._meters[node_id, manager.kind] = Meter(sensors)
        return meter

    def _limits(self, broker: Broker, used: Mapping[str, MeterSeen]) -> Iterator[Limit]:
        for manager in broker.quotas:
            if manager.kind in _BYTES and manager.kind not in used:
                bucket = manager.rules.bucket(self.user, self.client_id)
                bound = manager.rules.limit(bucket)
                if bound is not None:
                    yield Limit(manager.kind, bound, *bucket)

    def _note(self, number: int, now_ms: float, charged: float, *, is_held: bool) -> None:
        """Add a point for each snapshot since the last read, with the charges spread evenly."""
        elapsed_ms = now_ms - self.read_ms
        per_s = max(0, round(charged / elapsed_ms * 1000)) if self.snapshot_number >= 0 and elapsed_ms > 0 else 0
        if per_s or is_held:
            first = number if self.snapshot_number < 0 else max(self.snapshot_number + 1, number - POINTS)
            self.points.extend((each, per_s, int(is_held)) for each in range(first, number + 1))
        self.snapshot_number, self.read_ms = number, now_ms

    def _seen(self) -> ClientSeen:
        return ClientSeen(
            id=self.id,
            user=self.user,
            client_id=self.client_id,
            software=self.software,
            connections=self.connections,
            waiting=self.waiting,
            meters=self.meters,
            limits=self.limits,
        )
