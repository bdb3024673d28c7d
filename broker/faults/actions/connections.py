"""Actions on connections."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from .action import ConnectionAction

if TYPE_CHECKING:
    from sluice.broker.connection import Connection
    from sluice.broker.faults.fault import Fault
    from sluice.broker.server import Server


class RefuseConnections(ConnectionAction, frozen=True, tag="refuse-connections"):
    """Cuts new connections at once. To a client that is a connection which was refused or reset."""

    SUMMARY: ClassVar[str] = "Cuts new connections at once."

    def connected(self, fault: "Fault", server: "Server", connection: "Connection") -> Callable[[], None] | None:
        connection.reset(f"fault rule {fault.id}")
        return None
