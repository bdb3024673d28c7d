"""Requests and responses as bytes, and a client that sends them over a socket."""

import socket
import ssl
from types import TracebackType
from typing import Any

from sluice.protocol.apis import API_KEYS, api_of
from sluice.protocol.apis.header import ResponseHeader
from sluice.protocol.codec.compile import decode_prefix, decoder
from sluice.protocol.message import Message
from sluice.protocol.request_frame import frame_parts

# Far longer than any response takes, also on a busy machine.
TIMEOUT_S = 240


def frame(request: Message, version: int, *, client_id: str | None, correlation_id: int = 1) -> bytes:
    """Return a request as bytes: size, header, body."""
    parts, _ = frame_parts(request, version, client_id=client_id, correlation_id=correlation_id)
    return b"".join(parts)


def error_codes(message: Message) -> list[int]:
    """Return every nonzero error code in a message, in order."""
    found = []
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name.endswith("error_code") and value:
            found.append(value)
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, Message):
                found += error_codes(part)
    return found


def read_response(body: memoryview, api_key: int, version: int) -> Any:
    """Return the response in a frame's body, typed Any: mypy cannot know the API."""
    api = API_KEYS[api_key]
    _, position = decode_prefix(ResponseHeader, api.response_header_version(version))(body, 0, len(body))
    return decoder(api.response, version)(body, position, len(body))


class WireClient:
    """One blocking connection to a broker, for requests of any version. A context manager."""

    def __init__(self, bootstrap: str, client_id: str | None = "wire", context: ssl.SSLContext | None = None) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.client_id = client_id
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout=TIMEOUT_S)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
        self._in_flight: list[tuple[int, int]] = []

    def __enter__(self) -> "WireClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, request: Message, version: int) -> None:
        """Send a request without waiting for the response."""
        self._in_flight.append((api_of(type(request)).key, version))
        self.socket.sendall(frame(request, version, client_id=self.client_id))

    def receive(self) -> Any:
        """Wait for the next response."""
        api_key, version = self._in_flight.pop(0)
        return read_response(memoryview(self.receive_bytes()), api_key, version)

    def receive_bytes(self) -> bytes:
        """Wait for the next response; return its header and body."""
        return self._read(int.from_bytes(self._read(4)))

    def call(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return self.receive()

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError(f"the broker closed the connection after {len(data)} of {size} bytes")
            data += piece
        return data
