"""The other parts of the page: quotas, fault rules, connections."""

from collections.abc import Iterator

from msgspec import Struct

from sluice.broker.admin.resources.faults import FaultShown, describe
from sluice.broker.network.connection import Connection
from sluice.broker.server.cluster_server import ClusterServer
from sluice.quotas.client_quotas import CLIENT_ID, IP, USER
from sluice.quotas.entity import Default, QuotaEntity
from sluice.quotas.store import CONNECTION_CREATION_RATE, QuotaStores

_MOST = 100


class QuotaSeen(Struct, frozen=True, gc=False):
    """A quota in force; `entity` has the names of AlterClientQuotas.

    altered: true if it was set at runtime and can be removed; false if a broker property sets it
    """

    entity: dict[str, str | None]
    key: str
    value: float
    altered: bool


class Quotas(Struct, frozen=True, gc=False):
    """The first quotas of clients, and the number of all."""

    rows: list[QuotaSeen]
    total: int


class Faults(Struct, frozen=True, gc=False):
    """The first fault rules, and the number of all."""

    rows: list[FaultShown]
    total: int


class ConnectionNow(Struct, frozen=True, gc=False):
    """A connection.

    age_s: seconds since it was opened
    idle_s: seconds since bytes were last received
    """

    broker: int
    peer: str
    listener: str
    client_id: str
    user: str
    software: str
    api: str
    waiting: bool
    age_s: int
    idle_s: int


class Connections(Struct, frozen=True, gc=False):
    """The first matching connections, waiting ones before others, and the number of all that match."""

    rows: list[ConnectionNow]
    total: int


def quotas(server: ClusterServer) -> Quotas:
    cluster = server.cluster
    altered = {
        (frozenset(entity.items()), key)
        for entity, values in cluster.client_quotas.matching({}, (), strict=False)
        for key in values
    }
    rows = [
        QuotaSeen(entity, key, value, (frozenset(entity.items()), key) in altered)
        for entity, key, value in _holding(cluster.quota_stores)
    ]
    rows.sort(key=lambda row: ([(type_, name is not None, name or "") for type_, name in row.entity.items()], row.key))
    return Quotas(rows[:_MOST], len(rows))


def faults(server: ClusterServer) -> Faults:
    """Return the rules, oldest first, without creating the fault engine."""
    faults = ClusterServer.faults.if_made(server)
    rules = [] if faults is None else faults.list()
    return Faults([describe(fault) for fault in rules[:_MOST]], len(rules))


def connections(server: ClusterServer, text: str) -> Connections:
    folded = text.casefold()
    now_ms = server.cluster.runtime.clock.monotonic_ms()
    found = [
        (not connection.waiting, -connection.opened_ms, node_id, connection)
        for node_id, one in server.servers.items()
        for connection in one.connections
        if folded in f"{connection.ctx.session.client_id}\n{connection.ctx.session.user}".casefold()
    ]
    found.sort(key=lambda each: each[:3])
    return Connections([_seen(node_id, each, now_ms) for _, _, node_id, each in found[:_MOST]], len(found))


def _holding(stores: QuotaStores) -> Iterator[tuple[dict[str, str | None], str, float]]:
    for key, store in stores.of_clients.items():
        for entity, value in store.holding.items():
            yield dict(_parts(entity)), key, value
    for address, value in stores.of_addresses.holding.items():
        yield {IP: _name(address)}, CONNECTION_CREATION_RATE, value


def _parts(entity: QuotaEntity) -> Iterator[tuple[str, str | None]]:
    for type_, name in ((USER, entity.user), (CLIENT_ID, entity.client_id)):
        if name is not None:
            yield type_, _name(name)


def _name(name: str | Default) -> str | None:
    return None if isinstance(name, Default) else name


def _seen(node_id: int, connection: Connection, now_ms: float) -> ConnectionNow:
    ctx = connection.ctx
    return ConnectionNow(
        broker=node_id,
        peer=connection.peer,
        listener=connection.advertised.name,
        client_id=ctx.session.client_id,
        user=ctx.session.user,
        software=" ".join(filter(None, ctx.session.client_software)),
        api=ctx.api,
        waiting=connection.waiting,
        age_s=int((now_ms - connection.opened_ms) / 1000),
        idle_s=int((now_ms - connection.last_active_ms) / 1000),
    )
