"""The cluster and its brokers as fault rules see and change them."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.throttling.scope import EVERYTHING, Scope
from sluice.config.broker_config import Config
from sluice.errors import SluiceError

if TYPE_CHECKING:
    from sluice.broker.network.socket_server import SocketServer


class TargetInfo(NamedTuple):
    """What the check of a rule reads: the config and the node ids of the brokers.

    Brokers of a proxy only forward: the upstream cluster has topics, leaders, groups and disks.
    """

    config: Config
    node_ids: Collection[int]
    is_proxy: bool = False
    scope: Scope = EVERYTHING
    passes_sasl: bool = False  # whether clients authenticate with the upstream cluster


class FaultTarget(Protocol):
    @property
    def config(self) -> Config: ...
    @property
    def is_proxy(self) -> bool: ...
    @property
    def scope(self) -> Scope: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def brokers(self) -> Mapping[int, Broker]: ...
    @property
    def servers(self) -> Mapping[int, "SocketServer"]: ...
    @property
    def is_stopping(self) -> bool: ...

    def check_transition(self, node_id: int, event: str) -> None: ...
    def stop_broker(self, node_id: int, *, controlled: bool = True) -> None: ...
    def start_broker_soon(self, node_id: int, on_started: Callable[[SluiceError | None], None]) -> None: ...
    def isolate_broker(self, node_id: int) -> None: ...
    def rejoin_broker(self, node_id: int) -> None: ...
