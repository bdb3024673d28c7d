"""Snapshots of a cluster, each shared by all viewers."""

from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from sluice.broker.server.cluster_server import ClusterServer
from sluice.config.broker_config import EVERYWHERE
from sluice.version import __version__

from . import panels
from .brokers import Brokers
from .client_row import POINTS, ClientRow
from .clients import Clients
from .view import View


class ClusterSeen(msgspec.Struct, frozen=True, gc=False):
    """The properties of the cluster, which rarely change.

    bootstrap: bootstrap servers
    counting: whether any quota exists; without one no usage is counted
    quota_mode: value of sluice.quota.mode; with shadow, throttle times are recorded, but no client is throttled
    journal_size: number of events that the journal keeps; 0 without a journal
    looks_kept: number of snapshots that the points of a client cover
    upstream: at a proxy, the bootstrap servers of the cluster behind it
    only_clients, only_topics: at a proxy, patterns that limit all fault rules and quotas; empty without a limit
    """

    cluster_id: str
    version: str
    profile: str
    bootstrap: str
    counting: bool
    journal_size: int
    looks_kept: int
    upstream: str | None = None
    quota_mode: str = "enforce"
    only_clients: Sequence[str] = ()
    only_topics: Sequence[str] = ()


class Snapshot:
    """A cluster at one moment; each part is encoded once."""

    def __init__(self, server: ClusterServer, number: int, brokers: bytes) -> None:
        self.number = number
        self.at_ms = server.cluster.runtime.clock.wall_ms()
        self.brokers = brokers
        self.clients = 0
        self.pages: dict[View, tuple[list[ClientRow], int]] = {}  # view -> its rows, number of matching clients
        self._server = server

    @cached_property
    def cluster(self) -> bytes:
        server = self._server
        endpoints = [one.endpoints[0] for one in server.servers.values() if one.endpoints]
        bootstrap = ",".join(
            str(endpoint) if endpoint.host not in EVERYWHERE else f"localhost:{endpoint.port}" for endpoint in endpoints
        )
        journal, behind = server.cluster.journal, server.upstream_cluster_state()
        return msgspec.json.encode(
            ClusterSeen(
                cluster_id=server.cluster.cluster_id,
                version=__version__,
                profile=server.config.text("quota.profile"),
                bootstrap=bootstrap,
                counting=any(manager.quotas_enabled for broker in server.brokers.values() for manager in broker.quotas),
                journal_size=0 if journal is None else journal.size,
                looks_kept=POINTS,
                upstream=None if behind is None else behind.bootstrap,
                quota_mode=server.config.text("sluice.quota.mode"),
                only_clients=server.scope.clients,
                only_topics=server.scope.topics,
            )
        )

    @cached_property
    def quotas(self) -> bytes:
        return msgspec.json.encode(panels.quotas(self._server))

    @cached_property
    def faults(self) -> bytes:
        return msgspec.json.encode(panels.faults(self._server))

    def connections(self, search: str) -> bytes:
        return msgspec.json.encode(panels.connections(self._server, search))


class SnapshotTaker:
    def __init__(self, server: ClusterServer) -> None:
        self._server = server
        self._brokers = Brokers(server)
        self._clients = Clients(server)
        self._number = 0

    def take(self, views: Iterable[View]) -> Snapshot:
        number, self._number = self._number, self._number + 1
        found = Snapshot(self._server, number, msgspec.json.encode(self._brokers.read(number)))
        clients = self._clients
        clients.find(number)
        found.clients = len(clients)
        for view in set(views):
            rows = clients.found(view.search, view.sort)
            found.pages[view] = rows[view.page * view.size :][: view.size], len(rows)
        clients.read(number, (row for rows, _ in found.pages.values() for row in rows))
        return found
