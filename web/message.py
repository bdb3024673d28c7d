"""What `/api/v1/stream` sends: as its OpenAPI document tells it. It is put together in viewer.py."""

from msgspec import UNSET, Struct, UnsetType

from .brokers import BrokerNow
from .client_row import ClientSeen, Point
from .journal_tail import Line
from .panels import Connections, Faults, Quotas
from .snapshots import ClusterSeen


class ClientsSent(Struct, frozen=True, gc=False):
    """The clients of a page.

    total: how many there are
    matched: how many of them have what is searched for
    order: the ids of those that are shown
    rows: of these the ones that are new or have changed
    points: of those shown, by id, what has come since: look, bytes per second since the one before, 1 if it was held
    """

    total: int
    matched: int
    order: list[int]
    rows: list[ClientSeen]
    points: dict[str, list[Point]]


class LinesSent(Struct, frozen=True, gc=False):
    """What is new in the journal.

    left_off: how many events there were besides
    """

    lines: list[Line]
    left_off: int


class Message(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The data of one event: what has changed since the one before. The first has everything.

    look: counts the looks at the cluster
    at_ms: when this one was, wall clock
    """

    look: int
    at_ms: float
    cluster: ClusterSeen | UnsetType = UNSET
    brokers: list[BrokerNow] | UnsetType = UNSET
    clients: ClientsSent | UnsetType = UNSET
    quotas: Quotas | UnsetType = UNSET
    faults: Faults | UnsetType = UNSET
    connections: Connections | UnsetType = UNSET
    journal: LinesSent | UnsetType = UNSET
