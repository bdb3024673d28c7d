"""What replica/ uses of a broker. Imported by type checkers only."""

from typing import Protocol

from sluice.purgatory.purgatory import DelayedOperationPurgatory


class BrokerLiveness(Protocol):
    """The controller's view of which brokers are alive."""

    def is_running(self, node_id: int) -> bool:
        """Return whether a broker is neither stopped nor isolated."""

    def has_stopped(self, node_id: int) -> bool:
        """Return whether a broker is stopped."""


class ClusterMembers(Protocol):
    """The cluster of a broker."""

    @property
    def controller_in_use(self) -> BrokerLiveness | None: ...


class Peer(Protocol):
    """A broker, as another broker of its cluster sees it."""

    @property
    def node_id(self) -> int: ...
    @property
    def cluster(self) -> ClusterMembers: ...
    @property
    def produces(self) -> DelayedOperationPurgatory: ...
    def __hash__(self) -> int: ...
