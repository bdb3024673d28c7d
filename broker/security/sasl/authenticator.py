"""Who a client of a SASL listener is: what stands between its Connection and the Dispatcher until that is known.

Follows SaslServerAuthenticator, and what KafkaChannel, Selector and SocketServer do with it (KIP-43, KIP-152, KIP-306,
KIP-368).

Theory of operation
-------------------
A connection hands its requests here first. Which API may come depends on the state (`_ACCEPTED`); one that may goes to
the dispatcher as any request does, and its handler comes back here: SaslHandshake to `choose`, SaslAuthenticate to
`evaluate`, both to `refuse`. What happened leads to the next state (`_NEXT`). After SaslHandshake v0 the exchange has
no headers: each frame is a token, and so is each answer.

A request that may not come ends the connection, as in Kafka: at once where no exchange has begun, and in an exchange
with ILLEGAL_SASL_STATE, where the API's response has a place for an error of the whole request.

Whoever is refused is told so, and loses the connection, only after `connection.failed.authentication.delay.ms`: until
then its requests wait. Whoever is known talks to the dispatcher directly, unless that does not hold for ever
(`connections.max.reauth.ms`, a token that expires): then each request is looked at here. SaslHandshake begins a new
exchange, of the same mechanism and with the same user in the end; any other request ends the connection once the time
is over.

    INITIAL_REQUEST ------------> HANDSHAKE_REQUEST, or AUTHENTICATE
    HANDSHAKE_OR_VERSIONS_REQUEST (versions of ApiVersions are being found out)
    HANDSHAKE_REQUEST ----------> AUTHENTICATE
    AUTHENTICATE ---------------> COMPLETE
    COMPLETE -------------------> REAUTH_PROCESS_HANDSHAKE
    REAUTH_PROCESS_HANDSHAKE ---> AUTHENTICATE, or REAUTH_BAD_MECHANISM
    every one but COMPLETE -----> FAILED
"""

import logging
from enum import Enum, auto
from struct import Struct
from typing import TYPE_CHECKING

from sluice.broker.requests.context import FIXED_HEADER, PARKED, Outcome, RequestContext
from sluice.broker.security.authentication_counts import AuthenticationCounts
from sluice.clock import Clock
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis import API_KEYS, Api, ApiKey
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation

from .listener import SaslListener
from .mechanism import Mechanism, SaslAuthenticationError, SaslError

if TYPE_CHECKING:
    from sluice.broker.security.services import SaslConnection, SaslHost

log = logging.getLogger("sluice.broker")

# A client that authenticates anew more often than this is told ILLEGAL_SASL_STATE (KafkaChannel).
_MIN_REAUTH_INTERVAL_MS = 1_000
# Since this version of SaslAuthenticate a client is told how long its session lasts, and authenticates anew (KIP-368).
_REAUTHENTICATES_SINCE = 1
# Since this version of SaslHandshake tokens are in requests and responses (KIP-152).
_HEADERS_SINCE = 1
_HEADER = Struct(FIXED_HEADER)
_api_key_of = Struct(">h").unpack_from
_API_KEY_BYTES = 2
_pack_size = Struct(">i").pack


class State(Enum):
    """Kafka's names (SaslServerAuthenticator.SaslState)."""

    INITIAL_REQUEST = auto()
    HANDSHAKE_OR_VERSIONS_REQUEST = auto()
    HANDSHAKE_REQUEST = auto()
    AUTHENTICATE = auto()
    COMPLETE = auto()
    FAILED = auto()
    REAUTH_PROCESS_HANDSHAKE = auto()
    REAUTH_BAD_MECHANISM = auto()


class Event(Enum):
    """What leads from one state to the next."""

    VERSIONS_TOLD = auto()
    VERSIONS_REFUSED = auto()
    MECHANISM_CHOSEN = auto()
    MECHANISM_CHANGED = auto()
    TOKEN_TAKEN = auto()
    USER_KNOWN = auto()
    HANDSHAKE_AGAIN = auto()
    REFUSED = auto()


_ACCEPTED = {
    State.INITIAL_REQUEST: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    State.HANDSHAKE_OR_VERSIONS_REQUEST: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    State.HANDSHAKE_REQUEST: frozenset({ApiKey.SASL_HANDSHAKE}),
    State.AUTHENTICATE: frozenset({ApiKey.SASL_AUTHENTICATE}),
}

_NEXT = {
    (State.INITIAL_REQUEST, Event.VERSIONS_TOLD): State.HANDSHAKE_REQUEST,
    (State.INITIAL_REQUEST, Event.VERSIONS_REFUSED): State.HANDSHAKE_OR_VERSIONS_REQUEST,
    (State.INITIAL_REQUEST, Event.MECHANISM_CHOSEN): State.AUTHENTICATE,
    (State.INITIAL_REQUEST, Event.REFUSED): State.FAILED,
    (State.HANDSHAKE_OR_VERSIONS_REQUEST, Event.VERSIONS_TOLD): State.HANDSHAKE_REQUEST,
    (State.HANDSHAKE_OR_VERSIONS_REQUEST, Event.VERSIONS_REFUSED): State.HANDSHAKE_OR_VERSIONS_REQUEST,
    (State.HANDSHAKE_OR_VERSIONS_REQUEST, Event.MECHANISM_CHOSEN): State.AUTHENTICATE,
    (State.HANDSHAKE_OR_VERSIONS_REQUEST, Event.REFUSED): State.FAILED,
    (State.HANDSHAKE_REQUEST, Event.MECHANISM_CHOSEN): State.AUTHENTICATE,
    (State.HANDSHAKE_REQUEST, Event.REFUSED): State.FAILED,
    (State.AUTHENTICATE, Event.TOKEN_TAKEN): State.AUTHENTICATE,
    (State.AUTHENTICATE, Event.USER_KNOWN): State.COMPLETE,
    (State.AUTHENTICATE, Event.REFUSED): State.FAILED,
    (State.COMPLETE, Event.HANDSHAKE_AGAIN): State.REAUTH_PROCESS_HANDSHAKE,
    (State.REAUTH_PROCESS_HANDSHAKE, Event.MECHANISM_CHOSEN): State.AUTHENTICATE,
    (State.REAUTH_PROCESS_HANDSHAKE, Event.MECHANISM_CHANGED): State.REAUTH_BAD_MECHANISM,
    (State.REAUTH_PROCESS_HANDSHAKE, Event.REFUSED): State.FAILED,
    (State.REAUTH_BAD_MECHANISM, Event.REFUSED): State.FAILED,
}


class _FailedAuthentication(DelayedOperation):
    """The answer to a client that was refused, and the end of its connection, once the delay is over (KIP-306)."""

    __slots__ = ("_ctx", "_response")

    def __init__(self, ctx: RequestContext, response: Message | None, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self._ctx = ctx
        self._response = response

    def on_complete(self) -> None:
        if self._response is not None:
            self._ctx.responder.answer(self._ctx, self._response)
        self._ctx.connection.abort()


class SaslAuthenticator:
    """The authentication of one connection: a RequestHandler in front of the dispatcher."""

    def __init__(
        self, host: "SaslHost", listener: SaslListener, connection: "SaslConnection", counts: AuthenticationCounts
    ) -> None:
        self.state = State.INITIAL_REQUEST
        self.session_lifetime_ms = 0  # what the client is told of; 0: as long as the connection
        self._host = host
        self._dispatcher = host.dispatcher
        self._listener = listener
        self._connection = connection
        self._counts = counts
        self._mechanism_name = ""
        self._mechanism: Mechanism | None = None  # from SaslHandshake until the user is known
        self._has_headers = True
        self._reauthenticates = False  # whether the client can
        self._user: str | None = None  # once it is known
        self._expires_at_ms: float | None = None  # the session, monotonic
        self._last_reauth_ms: float | None = None  # when the last one began, monotonic

    def begin(self) -> None:
        """Meets the connection's first request."""
        self._connection.ctx.authenticator = self
        self._connection.set_request_handler(self)
        self._connection.limit_frames(self._listener.max_receive_bytes, "sasl.server.max.receive.size")

    # -- what the connection calls -------------------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        return self._dispatcher.clock

    def begin_read(self, ctx: RequestContext) -> float:
        return self._dispatcher.begin_read(ctx)

    def end_read(self) -> None:
        self._dispatcher.end_read()

    def dispatch(self, ctx: RequestContext, view: memoryview, start: int, end: int) -> None:
        """Handles the request in `view[start:end]`, if it may come now. Raises RemoteProtocolError if not."""
        if self.state is State.AUTHENTICATE and not self._has_headers:
            self._take_token(ctx, bytes(view[start:end]))
            return
        api_key = _api_key_of(view, start)[0] if end - start >= _API_KEY_BYTES else None
        if self.state is State.COMPLETE:
            self._look_at_session(ctx, api_key)
        elif self.state is State.REAUTH_BAD_MECHANISM:
            self.refuse(ctx, None, "another mechanism than before")
            return
        elif api_key not in _ACCEPTED[self.state]:
            self._refuse_request(ctx, api_key, view, start, end)
            return
        self._dispatcher.dispatch(ctx, view, start, end)
        if api_key == ApiKey.API_VERSIONS and self.state is not State.COMPLETE:
            self._step(Event.VERSIONS_REFUSED if ctx.error_code else Event.VERSIONS_TOLD)

    # -- what the handlers call ----------------------------------------------------------------------------------------

    @property
    def mechanisms(self) -> list[str]:
        """The mechanisms that are enabled."""
        return list(self._listener.mechanisms)

    def expects_handshake(self) -> bool:
        """Whether SaslHandshake may come now."""
        return (self.state, Event.MECHANISM_CHOSEN) in _NEXT

    def expects_token(self) -> bool:
        """Whether SaslAuthenticate may come now."""
        return self.state is State.AUTHENTICATE

    def choose(self, mechanism: str, handshake_version: int) -> bool:
        """Begins an exchange of this mechanism; false: it is not enabled."""
        new_mechanism = self._listener.mechanisms.get(mechanism)
        if new_mechanism is None:
            self._mechanism_name = mechanism
            return False
        self._has_headers = handshake_version >= _HEADERS_SINCE
        if self.state is State.REAUTH_PROCESS_HANDSHAKE and mechanism != self._mechanism_name:
            self._step(Event.MECHANISM_CHANGED)
            return True
        self._mechanism_name, self._mechanism = mechanism, new_mechanism()
        self.session_lifetime_ms = 0
        self._step(Event.MECHANISM_CHOSEN)
        return True

    def evaluate(self, token: bytes, ctx: RequestContext) -> bytes:
        """What the mechanism says to the client's token. Raises SaslError."""
        assert self._mechanism is not None
        if self._has_headers and ctx.version >= _REAUTHENTICATES_SINCE:
            self._reauthenticates = True
        answer = self._mechanism.evaluate(token)
        if self._mechanism.user is None:
            self._step(Event.TOKEN_TAKEN)
        else:
            self._complete(ctx, self._mechanism.user, self._mechanism.expires_at_ms)
        return answer

    def told(self, error: Exception) -> str:
        """What the client is told when it is refused: the words of its mechanism only where these are for it."""
        if isinstance(error, SaslAuthenticationError):
            return error.told
        what = "authentication" if self._user is None else "re-authentication"
        mechanism = self._mechanism_name
        return f"Authentication failed during {what} due to invalid credentials with SASL mechanism {mechanism}"

    def refuse(self, ctx: RequestContext, response: Message | None, reason: str) -> Outcome:
        """The client does not get in: one line in the log now, the response (None: none) and the end later."""
        self._step(Event.REFUSED)
        if self._user is None:
            self._counts.failed += 1
        else:
            self._counts.failed_again += 1
        log.warning(
            "authentication failed",
            extra={
                "peer": self._connection.peer,
                "listener": self._listener.name,
                "mechanism": self._mechanism_name,
                "reason": reason,
            },
        )
        delay_ms = self._host.config.integer("connection.failed.authentication.delay.ms")
        operation = _FailedAuthentication(ctx, response, delay_ms)
        self._connection.park(operation.force_complete)
        self._host.scheduler.delay(operation)
        return PARKED

    # -- what happens to the session -----------------------------------------------------------------------------------

    def _step(self, event: Event) -> None:
        self.state = _NEXT[self.state, event]

    def _take_token(self, ctx: RequestContext, token: bytes) -> None:
        ctx.api = "SASL token"
        try:
            answer = self.evaluate(token, ctx)
        except SaslError as error:
            self.refuse(ctx, None, error.reason)
            return
        self._connection.send(_pack_size(len(answer)), [answer] if answer else [], 4 + len(answer))

    def _complete(self, ctx: RequestContext, user: str, credential_expires_at_ms: int | None) -> None:
        if self._user not in (None, user):
            raise SaslAuthenticationError(
                f"Cannot change principals during re-authentication from User.{self._user}: User.{user}"
            )
        self._step(Event.USER_KNOWN)
        if self._user is None:
            self._counts.successful += 1
            self._counts.successful_no_reauth += not self._reauthenticates
        else:
            self._counts.successful_again += 1
        self._user, self._mechanism = user, None
        ctx.session.set_user(user)
        max_bytes = self._host.config.integer("socket.request.max.bytes")
        self._connection.limit_frames(max_bytes, "socket.request.max.bytes")
        lifetime_ms = self._listener.session_lifetime_ms(self._mechanism_name, credential_expires_at_ms, ctx.now_ms)
        self.session_lifetime_ms = lifetime_ms or 0
        if lifetime_ms is None:
            self._expires_at_ms = None
            self._connection.set_request_handler(self._dispatcher)
        else:
            self._expires_at_ms = ctx.started_ms + lifetime_ms

    def _look_at_session(self, ctx: RequestContext, api_key: int | None) -> None:
        """Of a request of a client that is known: whether it authenticates anew, or comes too late."""
        if self._expires_at_ms is None:
            return
        now_ms = ctx.started_ms
        too_soon = self._last_reauth_ms is not None and now_ms - self._last_reauth_ms < _MIN_REAUTH_INTERVAL_MS
        if api_key == ApiKey.SASL_HANDSHAKE and not too_soon:
            self._last_reauth_ms = now_ms
            self._step(Event.HANDSHAKE_AGAIN)
        elif now_ms > self._expires_at_ms:
            self._counts.expired_connections_killed += 1
            raise RemoteProtocolError(
                "its session is over (connections.max.reauth.ms), and it did not authenticate anew"
            )

    def _refuse_request(self, ctx: RequestContext, api_key: int | None, view: memoryview, start: int, end: int) -> None:
        api = API_KEYS.get(api_key) if api_key is not None else None
        name = api.name if api is not None else f"API key {api_key}"
        if self.state is not State.AUTHENTICATE:
            raise RemoteProtocolError(f"{name} before SASL authentication: a client of another security.protocol?")
        objection = self._mechanism.objection if self._mechanism is not None else ""
        reason = f"{name} in place of SaslAuthenticate" + (f", after {objection}" if objection else "")
        self.refuse(ctx, self._illegal_state(ctx, api, view[start:end]), reason)

    def _illegal_state(self, ctx: RequestContext, api: Api | None, request: memoryview) -> Message | None:
        """The API's response to a request out of place; None where it has none for the whole request."""
        if api is None or len(request) < _HEADER.size or "error_code" not in api.response.__struct_fields__:
            return None
        api_and_version, correlation_id = _HEADER.unpack_from(request)
        route = self._dispatcher.route(api_and_version)
        if route is None:
            return None
        ctx.route, ctx.correlation_id, ctx.error_code = route, correlation_id, ErrorCode.ILLEGAL_SASL_STATE
        return api.response(error_code=ErrorCode.ILLEGAL_SASL_STATE)  # type: ignore[call-arg]  # looked up above
