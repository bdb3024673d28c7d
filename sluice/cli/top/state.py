"""The state that `sluice top` shows, updated by the messages of `/api/v1/stream`, which contain only changes."""

from collections import deque

import msgspec

from sluice.cli.faults.text import FaultShown

# Number of the snapshot, bytes per second since the previous one, and whether the client was throttled.
Point = tuple[int, int, int]


class Cluster(msgspec.Struct, frozen=True):
    """Rarely changing values; without `counting`, no quota exists and rates are not counted."""

    version: str
    profile: str
    bootstrap: str
    counting: bool
    looks_kept: int


class Broker(msgspec.Struct, frozen=True):
    id: int
    state: str
    fenced: bool
    leads: int
    connections: int
    throttled: int
    requests_per_s: int
    in_per_s: int
    out_per_s: int


class Meter(msgspec.Struct, frozen=True):
    kind: str
    rate: float
    bound: float | None
    throttle_ms: int
    held_until_ms: int
    throttled_total_ms: int
    user: str | None
    client_id: str | None


class Client(msgspec.Struct, frozen=True):
    id: int
    user: str
    client_id: str
    connections: int
    waiting: int
    meters: list[Meter]


class Quota(msgspec.Struct, frozen=True):
    entity: dict[str, str | None]
    key: str
    value: float


class Faults(msgspec.Struct, frozen=True):
    rows: list[FaultShown]
    total: int


class Quotas(msgspec.Struct, frozen=True):
    rows: list[Quota]
    total: int


class Clients(msgspec.Struct, frozen=True):
    """The shown clients: `order` has their ids, `rows` the changed ones, `points` new points of each."""

    total: int
    matched: int
    order: list[int]
    rows: list[Client]
    points: dict[str, list[Point]]


class Message(msgspec.Struct, frozen=True):
    look: int
    at_ms: int
    cluster: Cluster | None = None
    brokers: list[Broker] | None = None
    clients: Clients | None = None
    quotas: Quotas | None = None
    faults: Faults | None = None


class State:
    def __init__(self) -> None:
        self.look = 0
        self.at_ms = 0
        self.cluster: Cluster | None = None
        self.brokers: list[Broker] = []
        self.clients: list[Client] = []
        self.total = self.matched = 0
        self.quotas: list[Quota] = []
        self.faults: list[FaultShown] = []
        self._rows: dict[int, Client] = {}
        self._points: dict[int, deque[Point]] = {}

    def take(self, message: Message) -> None:
        self.look, self.at_ms = message.look, message.at_ms
        self.cluster = message.cluster or self.cluster
        self.brokers = self.brokers if message.brokers is None else message.brokers
        self.quotas = self.quotas if message.quotas is None else message.quotas.rows
        self.faults = self.faults if message.faults is None else message.faults.rows
        if message.clients is not None:
            self._take_clients(message.clients)

    def points(self, client: Client) -> deque[Point]:
        return self._points.get(client.id, deque())

    def _take_clients(self, news: Clients) -> None:
        self.total, self.matched = news.total, news.matched
        self._rows |= {row.id: row for row in news.rows}
        self._rows = {each: self._rows[each] for each in news.order if each in self._rows}
        self.clients = list(self._rows.values())
        kept = 240 if self.cluster is None else self.cluster.looks_kept
        for number, points in news.points.items():
            self._points.setdefault(int(number), deque(maxlen=kept)).extend(points)
        self._points = {number: points for number, points in self._points.items() if number in self._rows}
