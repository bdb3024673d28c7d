"""The parts of the broker that the network layer uses. Imported by type checkers only."""

from collections.abc import Callable
from typing import Protocol

from sluice.broker.log.segment_memory import RetainedMemory
from sluice.broker.requests.channel import Channel
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.turn_queue import TurnQueue
from sluice.broker.security.services import SaslExchange, SaslHost
from sluice.config.broker_config import Endpoint
from sluice.purgatory.timer import Timer
from sluice.quotas.quota_managers import QuotaManagers
from sluice.quotas.store import QuotaStores

from .connection import ConnectionExchange


class HostExchange(ConnectionExchange, SaslExchange, Protocol):
    """The exchange, as connections and their authenticators use it."""


class ConnectionJournal(Protocol):
    def opened(self, ctx: RequestContext) -> None: ...
    def refused(self, ctx: RequestContext, reason: str, throttle_ms: int) -> None: ...
    def closed(self, ctx: RequestContext) -> None: ...


class HostCluster(Protocol):
    @property
    def quota_stores(self) -> QuotaStores: ...
    @property
    def turns(self) -> TurnQueue: ...
    @property
    def retained_by(self) -> list[Callable[[RetainedMemory], None]]:
        """Functions that limit the memory of deleted segments which responses reference."""


class NetworkHost(SaslHost, Protocol):
    @property
    def node_id(self) -> int: ...
    @property
    def cluster(self) -> HostCluster: ...
    @property
    def timer(self) -> Timer: ...
    @property
    def exchange(self) -> HostExchange: ...
    @property
    def journal(self) -> ConnectionJournal | None: ...
    @property
    def quotas(self) -> QuotaManagers: ...
    @property
    def endpoints(self) -> dict[str, Endpoint]: ...
    @property
    def on_configured(self) -> list[Callable[[], None]]: ...
    def quota_time_ms(self) -> int: ...
    def disconnected(self, channel: Channel) -> None: ...
    def close(self) -> None: ...
