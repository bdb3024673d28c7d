"""The messages of `/api/v1/stream`, as its OpenAPI document describes them; viewer.py builds them."""

from msgspec import UNSET, Struct, UnsetType

from .brokers import BrokerNow
from .client_row import ClientSeen, Point
from .journal_tail import Line
from .panels import Connections, Faults, Quotas
from .snapshots import ClusterSeen


class ClientsSent(Struct, frozen=True, gc=False):
    """One page of the table of clients.

    total: number of clients
    matched: number of clients that match the search
    order: ids of the visible clients
    rows: visible clients that are new or have changed
    points: new points of the visible clients by id: snapshot, bytes per second since the one before, 1 if throttled
    """

    total: int
    matched: int
    order: list[int]
    rows: list[ClientSeen]
    points: dict[str, list[Point]]


class LinesSent(Struct, frozen=True, gc=False):
    """The new journal events.

    left_off: number of events that are omitted
    """

    lines: list[Line]
    left_off: int


class Message(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The data of one event: the changes since the previous one. The first event has everything.

    look: number of the snapshot
    at_ms: time of the snapshot, wall clock
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
