"""Actions on brokers."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, ClassVar

from .action import StateAction

if TYPE_CHECKING:
    from sluice.broker.cluster_server import ClusterServer
    from sluice.broker.faults.fault import Fault


class Isolate(StateAction, frozen=True, tag="isolate"):
    """Clients reach the broker; the controller and the other brokers do not."""

    SUMMARY: ClassVar[str] = "Cuts brokers off from the controller and the other brokers; clients still reach them."

    def begin(self, fault: "Fault", server: "ClusterServer") -> Callable[[], None]:
        brokers: Collection[int] = fault.match.brokers or list(server.servers)
        done: list[int] = []

        def undo() -> None:
            for node_id in done:
                server.rejoin_broker(node_id)

        for node_id in brokers:
            server.isolate_broker(node_id)
            done.append(node_id)
        return undo
