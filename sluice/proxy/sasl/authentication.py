"""The proxy's own SASL authentication on a connection to an upstream broker.

It precedes the client's requests, and is repeated before the session expires (KIP-368, `connections.max.reauth.ms`).
As in Kafka's SaslClientAuthenticator, this happens between two requests of the client, not on an idle connection.
"""

from collections.abc import Callable
from math import inf
from struct import Struct

from sluice.client.network.sasl import Conversation, request_of
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from sluice.protocol.codec.compile import decoder
from sluice.protocol.message import Message
from sluice.protocol.request_frame import frame_parts

CLIENT_ID = "sluice-proxy"
# Since this version, SaslAuthenticate returns the session lifetime.
LIFETIME_SINCE = 1
# Kafka's clients re-authenticate after 85 to 95 % of the lifetime.
_LIFETIME_USED = 0.85
_CORRELATION_ID = Struct(">i")


class Authentication:
    """The exchanges on one connection; `version` is that of SaslAuthenticate, at most LIFETIME_SINCE."""

    def __init__(self, conversation: Callable[[], Conversation], version: int) -> None:
        self._new_conversation = conversation
        self._conversation = conversation()
        self._version = version
        self._sent: Message | None = None
        self._lifetime_ms = 0

    @property
    def is_running(self) -> bool:
        return self._sent is not None

    def first_request(self) -> bytes:
        self._conversation = self._new_conversation()
        return self._frame_of(next(self._conversation))

    def next_request(self, response: memoryview) -> bytes | None:
        """Return the frame to send after a response, or None after success.

        Raises:
            KafkaException: The broker refuses the proxy.
            RemoteProtocolError: The response is malformed.
        """
        sent = self._sent
        assert sent is not None
        if len(response) < _CORRELATION_ID.size or _CORRELATION_ID.unpack_from(response) != (0,):
            raise RemoteProtocolError(f"{type(sent).__name__}: expected a response with correlation id 0")
        answer = decoder(request_of(sent).api.response, self._version_of(sent))(
            response, _CORRELATION_ID.size, len(response)
        )
        if isinstance(answer, SaslAuthenticateResponse):
            self._lifetime_ms = answer.session_lifetime_ms
        try:
            return self._frame_of(self._conversation.send(answer))
        except StopIteration:
            self._sent = None
            return None

    def repeat_at_ms(self, now_ms: float) -> float:
        """Return when to authenticate again, after success at `now_ms`."""
        return now_ms + self._lifetime_ms * _LIFETIME_USED if self._lifetime_ms > 0 else inf

    def _version_of(self, message: Message) -> int:
        return self._version if isinstance(message, SaslAuthenticateRequest) else request_of(message).latest

    def _frame_of(self, message: Message) -> bytes:
        self._sent = message
        parts, _ = frame_parts(message, self._version_of(message), client_id=CLIENT_ID, correlation_id=0)
        return b"".join(parts)
