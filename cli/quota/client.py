"""Asks a Kafka broker, over one blocking connection: as much of a client as `sluice quota` needs."""

import socket
from typing import Self, TypeVar

from sluice.errors import ConfigError, SluiceError
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sluice.protocol.apis.header import RequestHeader
from sluice.protocol.codec.compile import decode_prefix, encoder
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

CLIENT_ID = "sluice-quota"
QUOTA_KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
_TIMEOUT_S = 30.0  # an answer of a controller that is being elected takes seconds
_LARGEST_ANSWER = 100 * 2**20
_LARGEST_PORT = 65535

_Answer = TypeVar("_Answer", bound=Message)


class QuotaClient:
    """One connection to a broker, asked in the newest version that both sides know."""

    def __init__(self, bootstrap: str) -> None:
        """`bootstrap` is HOST:PORT. Raises SluiceError, a line that says what could not be done, or what is wrong."""
        self._bootstrap = bootstrap
        self._correlation_id = 0
        host, colon, port = bootstrap.rpartition(":")
        if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) <= _LARGEST_PORT):
            raise ConfigError(f"--bootstrap: {bootstrap}: must be HOST:PORT")
        try:
            self._socket = socket.create_connection((host.strip("[]"), int(port)), _TIMEOUT_S)
        except OSError as error:
            raise SluiceError(f"{bootstrap}: no connection: {_why(error)}") from None
        try:
            answer = self._exchange(ApiVersionsRequest(), ApiKey.API_VERSIONS, 0, ApiVersionsResponse)
        except SluiceError:
            self._socket.close()
            raise
        self._versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()

    def ask(self, request: Message, api_key: int, response: type[_Answer]) -> _Answer:
        """The answer to a request. Raises SluiceError where there is none."""
        api = API_KEYS[api_key]
        first, last = self._versions.get(api_key, (0, -1))
        version = min(last, api.max_version)
        if version < max(first, api.min_version):
            raise SluiceError(f"{self._bootstrap}: does not serve {api.name}")
        return self._exchange(request, api_key, version, response)

    def _exchange(self, request: Message, api_key: int, version: int, response: type[_Answer]) -> _Answer:
        api = API_KEYS[api_key]
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=CLIENT_ID,
        )
        parts: list[bytes | memoryview] = []
        encoder(RequestHeader, api.request_header_version(version))(header, parts)
        encoder(type(request), version)(request, parts)
        body = b"".join(parts)
        try:
            self._socket.sendall(len(body).to_bytes(4) + body)
            size = int.from_bytes(self._read(4))
            if not 4 <= size <= _LARGEST_ANSWER:
                raise SluiceError(f"{self._bootstrap}: what answers is no Kafka broker")
            answer = memoryview(self._read(size))
        except OSError as error:
            raise SluiceError(f"{self._bootstrap}: no answer to {api.name}: {_why(error)}") from None
        start = 5 if api.response_header_version(version) else 4  # a count of tagged fields, which is 0
        try:
            message, _ = decode_prefix(response, version)(answer, start, size)
        except Exception as error:
            raise SluiceError(f"{self._bootstrap}: an answer to {api.name} that cannot be read: {error}") from None
        return message

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data


def told(code: int, message: str | None) -> str:
    """An error as a broker told it: its name and its words."""
    error = ErrorCode(code)
    return f"{error.name}: {message or error.message}"


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
