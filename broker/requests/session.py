"""The state of one client connection across requests."""

from collections.abc import Hashable
from ipaddress import IPv6Address
from struct import Struct
from typing import Protocol

from sluice.broker.metadata.cache import Node
from sluice.config.broker_config import EVERYWHERE, Endpoint
from sluice.quotas.client_throttle_times import ClientThrottleTimes

from .channel import Channel
from .trace import ClientIdentity, RequestTrace

# API key and version as one number; correlation id.
FIXED_HEADER = ">Ii"
# User name without authentication (KafkaPrincipal.ANONYMOUS).
ANONYMOUS = "ANONYMOUS"


class Authentication(Protocol):
    """The SASL authentication of a connection, which its requests advance."""

    session_lifetime_ms: int

    @property
    def mechanisms(self) -> list[str]: ...

    def expects_handshake(self) -> bool: ...

    def expects_token(self) -> bool: ...

    def choose(self, mechanism: str, handshake_version: int) -> bool:
        """Return False if the mechanism is not enabled."""

    def evaluate(self, token: bytes, version: int) -> bytes:
        """Return the mechanism's response. Raises SaslError."""

    def client_message(self, error: Exception) -> str: ...

    def failed(self, reason: str) -> int:
        """Log a failed authentication; return the delay in ms of its response and of the close (KIP-306)."""


def header_of(id_bytes: int) -> Struct:
    return Struct(f"{FIXED_HEADER}{2 + id_bytes}s")


class Session:
    # Not a Struct, whose fields are written more slowly.
    __slots__ = (
        "authentication",
        "client_id",
        "client_software",
        "connection",
        "fault_counts",
        "header",
        "id_as_sent",
        "identity",
        "node_id",
        "throttle_times",
        "trace",
        "user",
        "worked_ms",
    )

    def __init__(self, node_id: int, connection: Channel, trace: RequestTrace | None) -> None:
        self.node_id = node_id  # of the broker
        self.connection = connection
        self.user = ANONYMOUS
        self.authentication: Authentication | None = None  # with a SASL listener
        self.client_id = ""  # a null id is "" (Kafka's RequestHeader.parse)
        # The client id as sent, and the decoder of headers with its length.
        self.id_as_sent = b"\0\0"
        self.header = header_of(0)
        self.client_software = ("", "")  # name and version, from ApiVersions v3 and later (KIP-511)
        self.trace = trace  # with a journal
        self.identity: ClientIdentity | None = None  # for the journal; None if outdated
        self.worked_ms = 0.0  # processing time of the request in flight before its wait, if there are request quotas
        self.throttle_times: ClientThrottleTimes | None = None  # as sent to the client, if there are quotas
        self.fault_counts: dict[Hashable, int] | None = None  # requests, by the fault rule that counts them

    @property
    def principal(self) -> str:
        """Principal in the form of access control lists: "User:alice"."""
        return f"User:{self.user}"

    @property
    def client_host(self) -> str:
        """Client address in Java's format: "/127.0.0.1"."""
        address = self.connection.peer.rpartition(":")[0]
        return f"/{_java_ipv6(address) if ':' in address else address}"

    def set_user(self, user: str) -> None:
        self.user = user
        self.identity = None

    def set_client_software(self, name: str, version: str) -> None:
        self.client_software = name, version
        self.identity = None

    def identify(self) -> ClientIdentity:
        if self.identity is None:
            connection = self.connection
            self.identity = ClientIdentity(
                self.node_id,
                connection.number,
                connection.advertised.name,
                connection.peer,
                self.client_id,
                self.client_software,
                self.user,
            )
        return self.identity

    def endpoint_of(self, node: Node) -> Endpoint:
        """Return a broker's address on the listener that this client uses."""
        here = self.connection.advertised
        if node.node_id == self.node_id:
            return here
        there = node.endpoints[here.name]
        return Endpoint(here.name, here.host, there.port) if there.host in EVERYWHERE else there


def _java_ipv6(address: str) -> str:
    # Without zero compression, because access control lists compare hosts as text.
    number, percent, scope = address.partition("%")
    packed = IPv6Address(number).packed
    groups = (f"{int.from_bytes(packed[at : at + 2]):x}" for at in range(0, len(packed), 2))
    return f"{':'.join(groups)}{percent}{scope}"
