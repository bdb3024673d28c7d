"""What a handler is given, and what it may return besides a response."""

from collections.abc import Callable, Collection, Hashable, Mapping
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol

from sluice.config.broker_config import EVERYWHERE, Endpoint
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory

if TYPE_CHECKING:
    from sluice.broker.dispatch.dispatcher import Route
    from sluice.broker.handlers.records.fetch import Fetch
    from sluice.broker.journal.about import About
    from sluice.broker.journal.journal import Seen, Special
    from sluice.broker.network.connection import Connection
    from sluice.broker.security.sasl.authenticator import SaslAuthenticator
    from sluice.broker.server.broker import Broker
    from sluice.quotas.client_throttle_times import Told

# The name of whoever did not authenticate (KafkaPrincipal.ANONYMOUS).
ANONYMOUS = "ANONYMOUS"


# API key and version as one number, which is looked up as one; correlation id.
FIXED_HEADER = ">Ii"


def header_of(id_bytes: int) -> Struct:
    """Reads a request header whose client id has `id_bytes` bytes: two numbers, then the id behind its length."""
    return Struct(f"{FIXED_HEADER}{2 + id_bytes}s")


class Node(Protocol):
    """A broker of the cluster, as clients see it."""

    @property
    def node_id(self) -> int: ...
    @property
    def endpoints(self) -> Mapping[str, Endpoint]: ...


class Responder(Protocol):
    """The dispatcher, as operations that respond later see it."""

    def answer(self, ctx: "RequestContext", outcome: "Message | Outcome") -> None:
        """Encode and send a response; NO_RESPONSE is counted and not sent."""

    def send(self, ctx: "RequestContext", body: list[bytes | memoryview], size: int) -> None:
        """Send an encoded response of `size` bytes; an empty body is no response."""

    def complete(self, ctx: "RequestContext", answer: "Callable[[], Message | Outcome]") -> None:
        """Resume a parked request: `answer` returns its response, or parks it again."""


class Outcome:
    """What a handler returns when there is nothing to send now."""

    __slots__ = ()


PARKED: Final = Outcome()  # a delayed operation answers later
NO_RESPONSE: Final = Outcome()  # the request has no answer: Produce with acks=0


class RequestFault(Protocol):
    """The fault rules that one request hits, as the dispatcher and the handler of Fetch see them."""

    @property
    def fetch_error(self) -> Callable[[str, int], ErrorCode | None] | None:
        """What returns the error that a fetch finds in a partition (topic, index); None if no rule fails fetches."""

    def after(self, outcome: Message | Outcome) -> Message | Outcome:
        """Return the outcome in place of the handler's."""

    def answering(self, body: list[bytes | memoryview]) -> list[bytes | memoryview]:
        """Return the encoded response in place of `body`."""

    def send(self, head: bytes, body: list[bytes | memoryview]) -> None:
        """Send the response, or what replaces it."""


class RequestContext:
    """The request in flight on one connection, and who sent it. There is one per connection, used again for each
    request.
    """

    __slots__ = (
        "about",
        "api",
        "broker",
        "charged_bytes",
        "client_id",
        "client_software",
        "connection",
        "correlation_id",
        "error_code",
        "fault",
        "fault_counts",
        "fetch",
        "header",
        "id_as_sent",
        "now_ms",
        "request_bytes",
        "responder",
        "route",
        "sasl",
        "seen",
        "special",
        "started_ms",
        "told",
        "user",
        "version",
        "worked_ms",
    )

    def __init__(self, broker: "Broker", connection: "Connection", responder: "Responder") -> None:
        self.broker = broker
        self.responder = responder
        self.connection = connection
        self.user = ANONYMOUS
        self.sasl: SaslAuthenticator | None = None  # who has yet to find out, or will again, whose connection it is
        self.client_id = ""  # null is "" (Kafka's RequestHeader.parse)
        self.client_software = ("", "")  # name and version, as ApiVersions tells them since v3 (KIP-511)
        # Of the last request header: the client id as it came, with its length, and how such a header is read.
        self.id_as_sent = b"\0\0"
        self.header = header_of(0)
        self.route: Route  # of the request in flight; there is none before the first
        self.api = ""  # "Produce v9", for people; empty while a header is read
        self.version = 0
        self.correlation_id = 0
        self.request_bytes = 0  # what Kafka counts: header and body, without the size prefix
        self.now_ms = 0  # wall clock: when its turn began or, after waiting, when the wait was over
        self.fetch: Fetch | None = None  # the fetch in flight
        self.charged_bytes = 0  # what a held fetch was charged before it read
        self.started_ms = 0.0  # when its turn began, monotonic
        self.told: Told | None = None  # the throttle times in its answers, while there are quotas
        self.worked_ms = 0.0  # how long the thread worked on it before it was parked, while request quotas ask for it
        self.error_code = 0  # the first error in the response, for the metrics
        self.fault: RequestFault | None = None  # the fault rules that the request in flight hits
        self.fault_counts: dict[Hashable, int] | None = None  # requests of this connection by the rule that counts them
        # For the journal, while there is one: what the request in flight is about (None: it is not to be in the
        # journal), and what is special about it; and whose the connection is (None: that has to be looked at anew).
        self.about: About | None = None
        self.special: Special | None = None
        self.seen: Seen | None = None

    def park(
        self, operation: DelayedOperation, purgatory: DelayedOperationPurgatory, keys: Collection[Hashable]
    ) -> Outcome:
        """Hands the request to a purgatory, which answers it at once if it can; returns what the handler returns."""
        self.connection.park(operation.force_complete)
        purgatory.try_complete_else_watch(operation, keys)
        return PARKED

    def park_for_more(
        self, operation: DelayedOperation, purgatory: DelayedOperationPurgatory, keys: Collection[Hashable]
    ) -> Outcome:
        """As `park`, where it is known that the request cannot be answered yet."""
        self.connection.park(operation.force_complete)
        purgatory.watch(operation, keys)
        return PARKED

    def endpoint_of(self, node: Node) -> Endpoint:
        """Return the address of a broker for this client: its listener of the same name as the client's own.

        For this broker, and for others that listen on all addresses, the host is the one that the client connected to.
        """
        here = self.connection.advertised
        if node.node_id == self.broker.node_id:
            return here
        there = node.endpoints[here.name]
        return Endpoint(here.name, here.host, there.port) if there.host in EVERYWHERE else there

    @property
    def principal(self) -> str:
        """Who sent the request, as access control lists name them: "User:alice"."""
        return f"User:{self.user}"

    @property
    def client_host(self) -> str:
        """Where the request came from, as Java prints an address: "/127.0.0.1"."""
        address = self.connection.peer.rpartition(":")[0]
        return f"/{_as_java_prints(address) if ':' in address else address}"

    def wait_for_answer(self) -> Outcome:
        """Parks the request without an operation: whoever keeps it answers it by `Dispatcher.complete`, not within this
        call of the handler. That its client leaves changes nothing for those who keep it.
        """
        self.connection.park(_nothing)
        return PARKED


def _as_java_prints(address: str) -> str:
    """An IPv6 address without a shorthand for its zeros: hosts in access control lists are compared as text."""
    from ipaddress import IPv6Address  # most clients have none

    number, percent, scope = address.partition("%")
    packed = IPv6Address(number).packed
    groups = (f"{int.from_bytes(packed[at : at + 2]):x}" for at in range(0, len(packed), 2))
    return f"{':'.join(groups)}{percent}{scope}"


def _nothing() -> None:
    pass
