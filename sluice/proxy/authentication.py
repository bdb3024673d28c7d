"""The proxy's own SASL authentication on a connection to an upstream broker, before the client's requests."""

from struct import Struct

from sluice.client.errors import KafkaException
from sluice.client.network.sasl import Conversation, request_of
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis.header import RequestHeader
from sluice.protocol.codec.compile import decoder, encoder
from sluice.protocol.message import Message

CLIENT_ID = "sluice-proxy"
_SIZE = Struct(">i")
_CORRELATION_ID_BYTES = 4


class Authentication:
    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._sent: Message | None = None

    def first_request(self) -> bytes:
        return self._framed(next(self._conversation))

    def next_request(self, response: memoryview) -> bytes | None:
        """Return the frame to send after a response, or None after success. Raises RemoteProtocolError."""
        assert self._sent is not None
        request = request_of(self._sent)
        answer = decoder(request.api.response, request.latest)(response, _CORRELATION_ID_BYTES, len(response))
        try:
            return self._framed(self._conversation.send(answer))
        except StopIteration:
            return None
        except KafkaException as error:
            raise RemoteProtocolError(f"authentication of the proxy: {error}") from None

    def _framed(self, message: Message) -> bytes:
        self._sent = message
        request = request_of(message)
        header = RequestHeader(
            request_api_key=request.api.key, request_api_version=request.latest, correlation_id=0, client_id=CLIENT_ID
        )
        parts: list[bytes | memoryview] = []
        encoder(RequestHeader, request.api.request_header_version(request.latest))(header, parts)
        encoder(type(message), request.latest)(message, parts)
        return _SIZE.pack(sum(map(len, parts))) + b"".join(parts)
