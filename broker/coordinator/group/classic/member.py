"""A member of a classic group. Follows Kafka's ClassicGroupMember."""

from collections.abc import Collection

from sluice.broker.coordinator.group.timer import GroupTimer
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.join_group import JoinGroupRequestProtocol


class ClassicMember:
    """One member: what it said when it joined, what it was assigned, and which requests of it wait."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: list[JoinGroupRequestProtocol],
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id  # of a static member (KIP-345), else None
        self.client_id = client_id
        self.client_host = client_host  # as Java prints an address: "/127.0.0.1"
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols  # what it can do, what it likes best first
        self.assignment = b""
        self.awaiting_join: RequestContext | None = None  # its JoinGroup that waits for the others
        self.awaiting_sync: RequestContext | None = None  # its SyncGroup that waits for the leader's
        self.is_new = False  # until its first JoinGroup is answered
        self.session: GroupTimer | None = None  # when it ends, the member is taken for dead

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def must_heartbeat(self) -> bool:
        """Whether silence means that it is dead: it does not heartbeat while a request of it waits.

        A new member does not know its id and could not be found again, so its first wait is bounded all the same.
        """
        return self.is_new or (self.awaiting_join is None and self.awaiting_sync is None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it said for this protocol, one of its own."""
        return next(protocol.metadata for protocol in self.protocols if protocol.name == protocol_name)

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate it likes best; it can do one of them."""
        return next(protocol.name for protocol in self.protocols if protocol.name in candidates)

    def end_session(self) -> None:
        """Stops waiting for its heartbeats."""
        if self.session is not None:
            self.session.cancel()
            self.session = None
