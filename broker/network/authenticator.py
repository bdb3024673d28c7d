"""The authentication of one connection, between its Connection and the Exchange.

Follows SaslServerAuthenticator, KafkaChannel, Selector and SocketServer (KIP-43, KIP-152, KIP-306, KIP-368).

The connection passes its requests here first. Those in `_ACCEPTED` are passed to the exchange; the handlers call
back: SaslHandshake `choose`, SaslAuthenticate `evaluate`. After SaslHandshake v0, each frame is a token
without headers, and so is each response.

As in Kafka, an unexpected request ends the connection: at once before an exchange; during one with ILLEGAL_SASL_STATE,
if the API's response has a top-level error code. After a failed authentication, the response and the close are delayed
by `connection.failed.authentication.delay.ms`.

After a successful one, requests go directly to the exchange, unless the session expires (`connections.max.reauth.ms`,
or the token's expiration). Then SaslHandshake starts a re-authentication with the same mechanism and user; after the
expiration, any other request closes the connection.
"""

import logging
from enum import Enum, auto
from struct import Struct

from sluice.broker.exchange.exchange import Exchange
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.route import SASL_TOKEN
from sluice.broker.requests.session import FIXED_HEADER
from sluice.broker.security.sasl.listener import SaslListener
from sluice.broker.security.sasl.mechanism import Mechanism, SaslAuthenticationError, SaslError
from sluice.broker.security.sasl.refusal import refuse
from sluice.clock import Clock
from sluice.config.broker_config import Config
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis import API_KEYS, Api, ApiKey
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.purgatory.scheduler import Scheduler

from .connection import Connection

log = logging.getLogger("sluice.broker")

# SaslHandshake sooner than this after the last re-authentication gets ILLEGAL_SASL_STATE (KafkaChannel).
_MIN_REAUTH_INTERVAL_MS = 1_000
# Since this version, SaslAuthenticate returns the session lifetime, and clients re-authenticate (KIP-368).
_REAUTHENTICATES_SINCE = 1
# Since this version of SaslHandshake, tokens are sent in requests and responses (KIP-152).
_HEADERS_SINCE = 1
_HEADER = Struct(FIXED_HEADER)
_api_key_of = Struct(">h").unpack_from
_API_KEY_BYTES = 2


class State(Enum):
    """Kafka's SaslServerAuthenticator.SaslState."""

    INITIAL_REQUEST = auto()
    HANDSHAKE_OR_VERSIONS_REQUEST = auto()
    HANDSHAKE_REQUEST = auto()
    AUTHENTICATE = auto()
    COMPLETE = auto()
    FAILED = auto()
    REAUTH_PROCESS_HANDSHAKE = auto()
    REAUTH_BAD_MECHANISM = auto()


class Event(Enum):
    VERSIONS_RETURNED = auto()
    VERSIONS_UNSUPPORTED = auto()
    MECHANISM_CHOSEN = auto()
    MECHANISM_CHANGED = auto()
    TOKEN_ACCEPTED = auto()
    USER_AUTHENTICATED = auto()
    REAUTHENTICATION_STARTED = auto()
    REFUSED = auto()


_ACCEPTED = {
    State.INITIAL_REQUEST: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    State.HANDSHAKE_OR_VERSIONS_REQUEST: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    State.HANDSHAKE_REQUEST: frozenset({ApiKey.SASL_HANDSHAKE}),
    State.AUTHENTICATE: frozenset({ApiKey.SASL_AUTHENTICATE}),
}

_NEXT = {
    (State.INITIAL_REQUEST, Event.VERSIONS_RETURNED): State.HANDSHAKE_REQUEST,
    (State.INITIAL_REQUEST, Event.VERSIONS_UNSUPPORTED): State.HANDSHAKE_OR_VERSIONS_REQUEST,
    (State.INITIAL_REQUEST, Event.MECHANISM_CHOSEN): State.AUTHENTICATE,
    (State.INITIAL_REQUEST, Event.REFUSED): State.FAILED,
    (State.HANDSHAKE_OR_VERSIONS_REQUEST, Event.VERSIONS_RETURNED): State.HANDSHAKE_REQUEST,
    (State.HANDSHAKE_OR_VERSIONS_REQUEST, Event.VERSIONS_UNSUPPORTED): State.HANDSHAKE_OR_VERSIONS_REQUEST,
    (State.HANDSHAKE_OR_VERSIONS_REQUEST, Event.MECHANISM_CHOSEN): State.AUTHENTICATE,
    (State.HANDSHAKE_OR_VERSIONS_REQUEST, Event.REFUSED): State.FAILED,
    (State.HANDSHAKE_REQUEST, Event.MECHANISM_CHOSEN): State.AUTHENTICATE,
    (State.HANDSHAKE_REQUEST, Event.REFUSED): State.FAILED,
    (State.AUTHENTICATE, Event.TOKEN_ACCEPTED): State.AUTHENTICATE,
    (State.AUTHENTICATE, Event.USER_AUTHENTICATED): State.COMPLETE,
    (State.AUTHENTICATE, Event.REFUSED): State.FAILED,
    (State.COMPLETE, Event.REAUTHENTICATION_STARTED): State.REAUTH_PROCESS_HANDSHAKE,
    (State.REAUTH_PROCESS_HANDSHAKE, Event.MECHANISM_CHOSEN): State.AUTHENTICATE,
    (State.REAUTH_PROCESS_HANDSHAKE, Event.MECHANISM_CHANGED): State.REAUTH_BAD_MECHANISM,
    (State.REAUTH_PROCESS_HANDSHAKE, Event.REFUSED): State.FAILED,
    (State.REAUTH_BAD_MECHANISM, Event.REFUSED): State.FAILED,
}


class AuthenticationCounts:
    """Authentication counts of one listener, as in Kafka's socket-server-metrics."""

    def __init__(self) -> None:
        self.successful = 0
        self.successful_no_reauth = 0  # of these, by clients without support for re-authentication (KIP-368)
        self.failed = 0
        self.successful_again = 0
        self.failed_again = 0
        self.expired_connections_killed = 0


class SaslAuthenticator:
    def __init__(
        self,
        config: Config,
        scheduler: Scheduler,
        exchange: Exchange,
        listener: SaslListener,
        connection: Connection,
        counts: AuthenticationCounts,
    ) -> None:
        self.state = State.INITIAL_REQUEST
        self.session_lifetime_ms = 0  # as reported to the client; 0 means unlimited
        self._config = config
        self._scheduler = scheduler
        self._exchange = exchange
        self._listener = listener
        self._connection = connection
        self._counts = counts
        self._mechanism_name = ""
        self._mechanism: Mechanism | None = None
        self._has_headers = True
        self._reauthenticates = False
        self._user: str | None = None
        self._expires_at_ms: float | None = None  # end of the session, monotonic
        self._last_reauth_ms: float | None = None  # start of the last re-authentication, monotonic

    def begin(self) -> None:
        self._connection.ctx.session.authentication = self
        self._connection.request_handler = self
        self._limit_tokens()

    # -- called by the connection --------------------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        return self._exchange.clock

    def begin_read(self, ctx: RequestContext) -> float:
        return self._exchange.begin_read(ctx)

    def end_read(self) -> None:
        self._exchange.end_read()

    def dispatch(self, ctx: RequestContext, view: memoryview, start: int, end: int) -> None:
        """Handle one request. Raises RemoteProtocolError if the state does not accept it."""
        if self.state is State.AUTHENTICATE and not self._has_headers:
            self._handle_token_frame(ctx, bytes(view[start:end]))
            return
        api_key = _api_key_of(view, start)[0] if end - start >= _API_KEY_BYTES else None
        if self.state is State.COMPLETE:
            self._check_session(ctx, api_key)
        elif self.state is State.REAUTH_BAD_MECHANISM:
            self._refuse(ctx, None, "re-authentication with another mechanism")
            return
        elif api_key not in _ACCEPTED[self.state]:
            self._refuse_request(ctx, api_key, view, start, end)
            return
        self._exchange.dispatch(ctx, view, start, end)
        if api_key == ApiKey.API_VERSIONS and self.state is not State.COMPLETE:
            self._step(Event.VERSIONS_UNSUPPORTED if ctx.error_code else Event.VERSIONS_RETURNED)

    # -- called by the handlers ----------------------------------------------------------------------------------------

    @property
    def mechanisms(self) -> list[str]:
        return list(self._listener.mechanisms)

    def expects_handshake(self) -> bool:
        return (self.state, Event.MECHANISM_CHOSEN) in _NEXT

    def expects_token(self) -> bool:
        return self.state is State.AUTHENTICATE

    def choose(self, mechanism: str, handshake_version: int) -> bool:
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

    def evaluate(self, token: bytes, version: int) -> bytes:
        assert self._mechanism is not None
        if self._has_headers and version >= _REAUTHENTICATES_SINCE:
            self._reauthenticates = True
        answer = self._mechanism.evaluate(token)
        if self._mechanism.user is None:
            self._step(Event.TOKEN_ACCEPTED)
        else:
            self._complete(self._connection.ctx, self._mechanism.user, self._mechanism.expires_at_ms)
        return answer

    def client_message(self, error: Exception) -> str:
        """Return the mechanism's own message if it is meant for clients, else a general one."""
        if isinstance(error, SaslAuthenticationError):
            return error.client_message
        what = "authentication" if self._user is None else "re-authentication"
        mechanism = self._mechanism_name
        return f"Authentication failed during {what} due to invalid credentials with SASL mechanism {mechanism}"

    def failed(self, reason: str) -> int:
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
        return self._config.integer("connection.failed.authentication.delay.ms")

    # -- the session ---------------------------------------------------------------------------------------------------

    def _limit_tokens(self) -> None:
        self._connection.limit_frames(self._listener.max_receive_bytes, "sasl.server.max.receive.size")

    def _step(self, event: Event) -> None:
        self.state = _NEXT[self.state, event]

    def _handle_token_frame(self, ctx: RequestContext, token: bytes) -> None:
        ctx.route = SASL_TOKEN
        try:
            answer = self.evaluate(token, 0)
        except SaslError as error:
            self._refuse(ctx, None, error.reason)
            return
        self._exchange.send_token(ctx, answer)

    def _complete(self, ctx: RequestContext, user: str, credential_expires_at_ms: int | None) -> None:
        if self._user not in (None, user):
            raise SaslAuthenticationError(
                f"Cannot change principals during re-authentication from User.{self._user}: User.{user}"
            )
        self._step(Event.USER_AUTHENTICATED)
        if self._user is None:
            self._counts.successful += 1
            self._counts.successful_no_reauth += not self._reauthenticates
        else:
            self._counts.successful_again += 1
        self._user, self._mechanism = user, None
        ctx.session.set_user(user)
        max_bytes = self._config.integer("socket.request.max.bytes")
        self._connection.limit_frames(max_bytes, "socket.request.max.bytes")
        lifetime_ms = self._listener.session_lifetime_ms(self._mechanism_name, credential_expires_at_ms, ctx.now_ms)
        self.session_lifetime_ms = lifetime_ms or 0
        if lifetime_ms is None:
            self._expires_at_ms = None
            self._connection.request_handler = self._exchange
        else:
            self._expires_at_ms = self._connection.started_ms + lifetime_ms

    def _check_session(self, ctx: RequestContext, api_key: int | None) -> None:
        """Raise RemoteProtocolError after the session's end."""
        if self._expires_at_ms is None:
            return
        now_ms = self._connection.started_ms
        too_soon = self._last_reauth_ms is not None and now_ms - self._last_reauth_ms < _MIN_REAUTH_INTERVAL_MS
        if api_key == ApiKey.SASL_HANDSHAKE and not too_soon:
            self._last_reauth_ms = now_ms
            self._limit_tokens()
            self._step(Event.REAUTHENTICATION_STARTED)
        elif now_ms > self._expires_at_ms:
            self._counts.expired_connections_killed += 1
            raise RemoteProtocolError("SASL session expired (connections.max.reauth.ms) without re-authentication")

    def _refuse_request(self, ctx: RequestContext, api_key: int | None, view: memoryview, start: int, end: int) -> None:
        api = API_KEYS.get(api_key) if api_key is not None else None
        name = api.name if api is not None else f"API key {api_key}"
        if self.state is not State.AUTHENTICATE:
            raise RemoteProtocolError(f"{name} before SASL authentication; check the client's security.protocol")
        objection = self._mechanism.objection if self._mechanism is not None else ""
        reason = f"expected SaslAuthenticate, got {name}" + (f" after {objection}" if objection else "")
        self._refuse(ctx, self._illegal_state(ctx, api, view[start:end]), reason)

    def _refuse(self, ctx: RequestContext, response: Message | None, reason: str) -> None:
        self._exchange.begin(ctx, refuse(ctx, self, self._scheduler, response, reason))

    def _illegal_state(self, ctx: RequestContext, api: Api | None, request: memoryview) -> Message | None:
        if api is None or len(request) < _HEADER.size or "error_code" not in api.response.__struct_fields__:
            return None
        api_and_version, correlation_id = _HEADER.unpack_from(request)
        route = self._exchange.routes.find(api_and_version)
        if route is None:
            return None
        ctx.route, ctx.correlation_id, ctx.error_code = route, correlation_id, ErrorCode.ILLEGAL_SASL_STATE
        return api.response(error_code=ErrorCode.ILLEGAL_SASL_STATE)  # type: ignore[call-arg]  # looked up above
