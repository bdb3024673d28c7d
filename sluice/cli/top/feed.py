"""The stream of `/api/v1/stream`, the messages of the web page, and the state that they describe."""

from collections import deque
from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from sluice.broker.admin.resources.faults import FaultShown
from sluice.cli.admin_client import AdminClient
from sluice.errors import SluiceError
from sluice.web.brokers import BrokerNow
from sluice.web.client_row import POINTS, ClientSeen, Point
from sluice.web.message import ClientsSent, Message
from sluice.web.panels import QuotaSeen
from sluice.web.snapshots import ClusterSeen

_MOST_CLIENTS = 100
_DATA = b"data: "


class Feed:
    """The stream of one view. A wrong address raises ConfigError."""

    def __init__(self, admin: str, token: str | None, search: str, sort: str) -> None:
        self._admin = AdminClient(admin, token)
        self._query = {"search": search, "sort": sort, "size": _MOST_CLIENTS}

    def messages(self) -> Iterator[Message | None]:
        """Yield messages, and None for each heartbeat. Raises SluiceError or ConfigError."""
        with self._admin.open("/api/v1/stream", self._query) as answer:  # heartbeats arrive twice a second
            for line in answer:
                if line.startswith(_DATA):
                    yield msgspec.json.decode(line[len(_DATA) :], type=Message)
                elif line.strip():
                    yield None
        raise SluiceError(f"{self._admin.address}: the broker has stopped")


class State:
    def __init__(self) -> None:
        self.look = 0
        self.at_ms = 0.0
        self.cluster: ClusterSeen | None = None
        self.brokers: list[BrokerNow] = []
        self.clients: list[ClientSeen] = []
        self.total = self.matched = 0
        self.quotas: list[QuotaSeen] = []
        self.faults: list[FaultShown] = []
        self._rows: dict[int, ClientSeen] = {}
        self._points: dict[int, deque[Point]] = {}

    def take(self, message: Message) -> None:
        self.look, self.at_ms = message.look, message.at_ms
        self.cluster = self.cluster if message.cluster is UNSET else message.cluster
        self.brokers = self.brokers if message.brokers is UNSET else message.brokers
        self.quotas = self.quotas if message.quotas is UNSET else message.quotas.rows
        self.faults = self.faults if message.faults is UNSET else message.faults.rows
        if message.clients is not UNSET:
            self._take_clients(message.clients)

    def points(self, client: ClientSeen) -> deque[Point]:
        return self._points.get(client.id, deque())

    def _take_clients(self, news: ClientsSent) -> None:
        self.total, self.matched = news.total, news.matched
        self._rows |= {row.id: row for row in news.rows}
        self._rows = {each: self._rows[each] for each in news.order if each in self._rows}
        self.clients = list(self._rows.values())
        for number, points in news.points.items():
            self._points.setdefault(int(number), deque(maxlen=POINTS)).extend(points)
        self._points = {number: points for number, points in self._points.items() if number in self._rows}
