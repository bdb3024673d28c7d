"""The arguments of a handler, and its results other than a response."""

from collections.abc import Callable, Collection, Hashable, Iterable
from functools import partial
from typing import Final, Protocol, TypeVar

from sluice.clock import Clock
from sluice.protocol.apis import API_KEYS
from sluice.protocol.codec.compile import encode_in_slices
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory

from .long_request import LongRequest
from .route import NO_API, ApiRoute
from .session import Session

K = TypeVar("K")
T = TypeVar("T")


class RequestHandler(Protocol):
    @property
    def clock(self) -> Clock: ...

    def begin_read(self, ctx: "RequestContext") -> float:
        """Start a read with requests; return monotonic milliseconds."""

    def dispatch(self, ctx: "RequestContext", view: memoryview, start: int, end: int) -> None:
        """Handle one request. Raises RemoteProtocolError if it cannot be decoded."""

    def end_read(self) -> None: ...


class Outcome:
    """A handler's result if nothing is sent now. Not a Struct: each request asks for its type, and that is slower."""

    __slots__ = ()


class Wait(Outcome):
    """The outcome of a request that waits: its connection is parked, then the wait begins.

    Args:
        cancel: Called if the connection ends meanwhile; None if nothing is waited for.
        begin: Begins the wait, which ends with `RequestContext.resume`; None if it has begun.

    `on_next` is called with the client's next request if it arrives meanwhile and is of the same API and version.
    A fault rule sets `mutes` if the connection is not read meanwhile, and `is_unanswered` if no response will follow,
    so that the client's half-close ends the connection.
    """

    __slots__ = ("begin", "cancel", "is_unanswered", "mutes", "on_next")

    def __init__(self, cancel: "Callable[[], object] | None", begin: "Callable[[], object] | None" = None) -> None:
        self.on_next: Callable[[Message], object] | None = None
        self.cancel = cancel
        self.begin = begin
        self.mutes = self.is_unanswered = False


class FetchOutcome(Outcome):
    """The response to a Fetch or ShareFetch, and what it has read, which depends on what is sent.

    Args:
        charged_bytes: The bytes that were charged before the read (KIP-13).
    """

    __slots__ = ()
    response: Message
    is_from_follower: bool = False
    charged_bytes: int = 0

    @property
    def read_bytes(self) -> int:
        raise NotImplementedError

    def sent(self) -> bool:
        """Record that the response is sent; return whether it was changed, to open a session."""
        raise NotImplementedError

    def throttled(self, throttle_time_ms: int) -> Message:
        """Return an empty response to a client above its quota."""
        raise NotImplementedError


class LastResponse(Outcome):
    """The outcome after which the connection ends: its last response, or None to end it at once."""

    __slots__ = ("response",)

    def __init__(self, response: Message | None) -> None:
        self.response = response


ENDED: Final = Wait(None)  # nothing is left to do: the response is sent, or the connection has ended
NO_RESPONSE: Final = Outcome()  # Produce with acks=0


class RequestFault(Protocol):
    @property
    def fetch_error(self) -> Callable[[str, int], ErrorCode | None] | None:
        """Function (topic, index) -> injected fetch error; None without such rules."""

    def after(self, outcome: Message | Outcome) -> Message | Outcome:
        """Return the outcome to use in place of the handler's."""

    def answering(self, body: list[bytes | memoryview]) -> list[bytes | memoryview]:
        """Return the encoded response to use instead."""

    def leaving(self, frame: bytes) -> Iterable[bytes]:
        """Return the frames to send instead."""

    def sent(self) -> Wait | None:
        """Act after the frames are sent; may end the connection. Return the wait for which it is muted, if any."""


class Sliced(Protocol):
    """`RequestContext.sliced`, for functions without the context."""

    def __call__(self, elements: Iterable[T]) -> Iterable[T]: ...


def at_once(elements: Iterable[T]) -> Iterable[T]:
    return elements


class RequestContext:
    """The request in flight, reused for the next one of its connection."""

    __slots__ = (
        "_resume",
        "correlation_id",
        "error_code",
        "fault",
        "long",
        "now_ms",
        "request_bytes",
        "route",
        "session",
        "version",
    )

    def __init__(
        self, session: Session, resume: "Callable[[RequestContext, Callable[[], Message | Outcome], bool], None]"
    ) -> None:
        self.session = session
        self._resume = resume
        self.route: ApiRoute = NO_API
        self.version = 0
        self.correlation_id = 0
        self.request_bytes = 0  # as in Kafka: header and body, without the size prefix
        self.now_ms = 0  # wall clock at the start of the read, or at the end of a wait
        self.error_code = 0  # the first error in the response, for the metrics
        self.fault: RequestFault | None = None
        self.long: LongRequest | None = None  # until the response is sent, if the request may be suspended

    @property
    def api(self) -> str:
        """The API and version for log lines, such as "Produce v9"; empty while a header is decoded."""
        return f"{self.route.api_name} v{self.version}" if self.route.api_key >= 0 else self.route.api_name

    def encode(self, response: "Message | Outcome") -> list[bytes | memoryview]:
        if self.long is not None and self.long.suspended and isinstance(response, Message):
            api = API_KEYS[self.route.api_key]
            parts = encode_in_slices(api.response, self.route.version, response, self.long.pause)
            self.long.free(response)
            return parts
        body: list[bytes | memoryview] = []
        if response is not NO_RESPONSE:
            self.route.encode(response, body)
        return body

    def sliced(self, elements: Iterable[T]) -> Iterable[T]:
        return elements if self.long is None else self.long.sliced(elements)

    def array(self, elements: Iterable[T] = ()) -> list[T]:
        """Return a list of results which, like the arrays of the request, pauses a long request when iterated over."""
        return list(elements) if self.long is None else self.long.array(elements)

    def mapping(self) -> dict[K, T]:
        """Return an empty dict, which pauses a long request when it is iterated over."""
        return {} if self.long is None else self.long.mapping()

    def kept_mapping(self) -> dict[K, T]:
        """Return an empty dict that does not pause, for a change of state or to be kept in it."""
        return {} if self.long is None else self.long.kept_mapping()

    def counts(self, elements: Iterable[T]) -> dict[T, int]:
        """Return how often each element occurs, as such a dict."""
        counts: dict[T, int] = self.mapping()
        for element in elements:
            counts[element] = counts.get(element, 0) + 1
        return counts

    def pause(self) -> None:
        if self.long is not None:
            self.long.pause()

    def resume(self, respond: "Callable[[], Message | Outcome]", *, survives_disconnect: bool = False) -> None:
        """Resume the parked request: `respond` returns its response, or parks it again.

        If the client has left, `respond` is called only with `survives_disconnect`.
        """
        self._resume(self, respond, survives_disconnect)

    def park(
        self, operation: DelayedOperation, purgatory: DelayedOperationPurgatory, keys: Collection[Hashable]
    ) -> Wait:
        return Wait(operation.force_complete, partial(purgatory.try_complete_else_watch, operation, keys))

    def park_for_more(
        self, operation: DelayedOperation, purgatory: DelayedOperationPurgatory, keys: Collection[Hashable]
    ) -> Outcome:
        """Park a request that is known to be incomplete."""
        return Wait(operation.force_complete, partial(purgatory.watch, operation, keys))

    def park_until_resumed(self) -> Outcome:
        return _UNTIL_RESUMED


def _nothing() -> None:
    pass


_UNTIL_RESUMED = Wait(_nothing)
