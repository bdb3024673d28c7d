"""What a handler is given, and what it may return besides a response."""

from collections.abc import Callable, Collection, Hashable
from struct import Struct
from typing import Final, Protocol

from sluice.clock import Clock
from sluice.protocol.apis.fetch import FetchResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory

from .channel import Channel
from .route import ApiRoute
from .session import Session
from .trace import RequestAnnotations, RequestSubject

# API key and version as one number, which is looked up as one; correlation id.
FIXED_HEADER = ">Ii"


def header_of(id_bytes: int) -> Struct:
    """Reads a request header whose client id has `id_bytes` bytes: two numbers, then the id behind its length."""
    return Struct(f"{FIXED_HEADER}{2 + id_bytes}s")


class Responder(Protocol):
    """The dispatcher, as operations that respond later see it."""

    def answer(self, ctx: "RequestContext", outcome: "Message | Outcome") -> None:
        """Encode and send a response; NO_RESPONSE is counted and not sent."""

    def send(self, ctx: "RequestContext", body: list[bytes | memoryview], size: int) -> None:
        """Send an encoded response of `size` bytes; an empty body is no response."""

    def complete(self, ctx: "RequestContext", answer: "Callable[[], Message | Outcome]") -> None:
        """Resume a parked request: `answer` returns its response, or parks it again."""


class RequestHandler(Protocol):
    """The recipient of a connection's requests: the dispatcher or, before it, an authenticator."""

    @property
    def clock(self) -> Clock: ...

    def begin_read(self, ctx: "RequestContext") -> float:
        """Note that a read brought requests; return monotonic milliseconds."""

    def dispatch(self, ctx: "RequestContext", view: memoryview, start: int, end: int) -> None:
        """Handle the request in `view[start:end]`. Raises RemoteProtocolError if it cannot be decoded."""

    def end_read(self) -> None:
        """Note that the requests of the read have been handled, as far as possible."""


class Outcome:
    """What a handler returns when there is nothing to send now."""

    __slots__ = ()


PARKED: Final = Outcome()  # a delayed operation answers later
NO_RESPONSE: Final = Outcome()  # the request has no answer: Produce with acks=0


class Authenticator(RequestHandler, Protocol):
    """SASL authentication of one connection, as its handlers see it."""

    session_lifetime_ms: int

    @property
    def mechanisms(self) -> list[str]:
        """The enabled mechanisms."""

    def expects_handshake(self) -> bool:
        """Return whether SaslHandshake may come now."""

    def expects_token(self) -> bool:
        """Return whether SaslAuthenticate may come now."""

    def choose(self, mechanism: str, handshake_version: int) -> bool:
        """Begin an exchange; return False if the mechanism is not enabled."""

    def evaluate(self, token: bytes, ctx: "RequestContext") -> bytes:
        """Return the mechanism's response to the client's token. Raises SaslError."""

    def client_message(self, error: Exception) -> str:
        """Return the error message for the client."""

    def refuse(self, ctx: "RequestContext", response: Message | None, reason: str) -> "Outcome":
        """Log a failed authentication; send the response and close the connection later (KIP-306)."""


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


class FetchInProgress(Protocol):
    """The fetch in flight, as the throttler sees it."""

    @property
    def is_from_follower(self) -> bool: ...
    @property
    def read_bytes(self) -> int:
        """The record bytes that were read."""

    def sent(self, response: FetchResponse) -> bool:
        """Record that `response` is sent; return whether it was changed, because it opens a session."""

    def throttled(self, throttle_time_ms: int) -> FetchResponse:
        """Return the empty response for a client above its quota."""


class RequestContext:
    """The request in flight on one connection. There is one for each connection, used again for each request."""

    __slots__ = (
        "annotations",
        "api",
        "authenticator",
        "charged_bytes",
        "connection",
        "correlation_id",
        "error_code",
        "fault",
        "fetch",
        "header",
        "id_as_sent",
        "now_ms",
        "request_bytes",
        "responder",
        "route",
        "session",
        "started_ms",
        "subject",
        "version",
        "worked_ms",
    )

    def __init__(self, session: Session, connection: Channel, responder: Responder) -> None:
        self.session = session
        self.connection = connection
        self.responder = responder
        self.authenticator: Authenticator | None = None  # of a connection to a SASL listener
        # Of the last request header: the client id with its length, as it was sent, and the decoder of such a header.
        self.id_as_sent = b"\0\0"
        self.header = header_of(0)
        self.route: ApiRoute  # unset before the first request
        self.api = ""  # "Produce v9", for log lines; empty while a header is decoded
        self.version = 0
        self.correlation_id = 0
        self.request_bytes = 0  # what Kafka counts: header and body, without the size prefix
        self.now_ms = 0  # wall clock: when the read began or, after a wait, when the wait was over
        self.started_ms = 0.0  # monotonic: when the read began
        self.worked_ms = 0.0  # processing time before the request was parked, while there are request quotas
        self.fetch: FetchInProgress | None = None
        self.charged_bytes = 0  # by a held fetch, before it read
        self.error_code = 0  # the first error in the response, for the metrics
        self.fault: RequestFault | None = None  # the fault rules that the request hits
        # For the journal, while there is one. A request without a subject is not recorded.
        self.subject: RequestSubject | None = None
        self.annotations: RequestAnnotations | None = None

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

    def wait_for_answer(self) -> Outcome:
        """Parks the request without an operation: whoever keeps it answers it by `Dispatcher.complete`, not within this
        call of the handler. That its client leaves changes nothing for those who keep it.
        """
        self.connection.park(_nothing)
        return PARKED


def _nothing() -> None:
    pass
