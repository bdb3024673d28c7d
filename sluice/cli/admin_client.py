"""A client of the admin port of a running broker, which sends and receives JSON."""

import json
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.client import HTTPException, HTTPResponse
from ssl import SSLCertVerificationError, SSLError
from typing import TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

import msgspec

from sluice.errors import ConfigError, SluiceError
from sluice.text.error_text import expected

TIMEOUT_S = 5.0  # for the headers, and for each read; the first response loads the HTTP stack in about half a second
_PROBE_TIMEOUT_S = 1.0

# The admin port requires these headers for changes.
_SENDER = {"X-Sluice-Request": "1", "Content-Type": "application/json"}
# ApiVersions v0 with a correlation id and a null client id. Every Kafka broker responds to it, also before SASL.
_CORRELATION_ID = 0x51C3
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, _CORRELATION_ID, -1)

_T = TypeVar("_T")


class AdminClient:
    """A client of one broker's admin port. A failed request raises SluiceError; wrong usage raises ConfigError."""

    def __init__(self, admin: str, token: str | None, option: str = "--admin") -> None:
        """`option` is the name of the address on the command line."""
        self.address = admin_address(admin, option)
        self._headers = _SENDER | _token_header(token)

    def get(self, path: str, answer: type[_T], query: Mapping[str, object] | None = None) -> _T:
        with self.open(path, query) as response:
            return msgspec.json.decode(response.read(), type=answer)

    def open(
        self, path: str, query: Mapping[str, object] | None = None, timeout_s: float = TIMEOUT_S
    ) -> AbstractContextManager[HTTPResponse]:
        """Open a response to be read; fields of the query that are None are left out."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        url = f"{self.address}{quote(path)}" + (f"?{urlencode(given, doseq=True)}" if given else "")
        return _open_response(Request(url, headers=self._headers), self.address, timeout_s)  # noqa: S310  (by admin_address)

    def post(self, path: str, body: object, answer: type[_T]) -> _T:
        return self._send("POST", path, msgspec.json.encode(body), answer)

    def put(self, path: str, body: object, answer: type[_T]) -> _T:
        return self._send("PUT", path, msgspec.json.encode(body), answer)

    def delete(self, path: str, answer: type[_T]) -> _T:
        return self._send("DELETE", path, None, answer)

    def _send(self, method: str, path: str, body: bytes | None, answer: type[_T]) -> _T:
        request = Request(f"{self.address}{quote(path)}", data=body, headers=self._headers, method=method)  # noqa: S310  (by admin_address)
        with _open_response(request, self.address) as response:
            return msgspec.json.decode(response.read(), type=answer)


def admin_address(given: str, option: str = "--admin") -> str:
    """Remove a trailing slash, which browsers add. Raises ConfigError."""
    try:
        parts = urlsplit(given)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    if not fine or not given.isascii() or not given.isprintable() or " " in given:
        raise ConfigError(f"{option}: {expected('http://HOST:PORT or https://HOST:PORT', given)}")
    return given.rstrip("/")


def _token_header(token: str | None) -> dict[str, str]:
    """Raise ConfigError for a token that a header cannot transport."""
    if token and not (token.isascii() and token.isprintable()):
        raise ConfigError("--token: expected printable ASCII characters, which an HTTP header can transport")
    return {"authorization": f"Bearer {token}"} if token else {}


@contextmanager
def _open_response(request: Request, admin: str, timeout_s: float = TIMEOUT_S) -> Iterator[HTTPResponse]:
    """Raise SluiceError, also while the response is read."""
    try:
        with urlopen(request, timeout=timeout_s) as answer:  # noqa: S310  (by admin_address)
            yield answer
    except HTTPError as error:
        raise _error_of_response(admin, error) from None
    except TimeoutError:
        raise SluiceError(f"{admin}: no response within {timeout_s:g} s") from None
    except (OSError, HTTPException, msgspec.MsgspecError) as error:
        if isinstance(error, ConnectionError | HTTPException) and _is_kafka(admin):
            raise SluiceError(f"{admin}: expected the admin HTTP port, got a port of the Kafka protocol") from None
        raise SluiceError(f"{admin}: {_describe(error)}") from None


def _error_of_response(admin: str, error: HTTPError) -> SluiceError:
    try:
        reason = str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError):
        reason = error.reason
    # 400: the values came from the command line, so this is wrong usage.
    return ConfigError(reason) if error.code == 400 else SluiceError(f"{admin}: {error.code}: {reason}")


def _describe(error: Exception) -> str:
    if isinstance(error, URLError):
        reason = error.reason
        if isinstance(reason, SSLCertVerificationError):
            return f"no connection: {reason.verify_message}"
        if isinstance(reason, SSLError):
            return "no connection: TLS failed. Use http:// for a port without TLS."
        if isinstance(reason, ConnectionRefusedError):
            return f"no connection: {reason.strerror}. Start a broker with sluice serve, or set --admin."
        return f"no connection: {(reason.strerror if isinstance(reason, OSError) else None) or reason}"
    return str(error)


def _is_kafka(admin: str) -> bool:
    parts = urlsplit(admin)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), _PROBE_TIMEOUT_S) as connection:
            connection.sendall(_API_VERSIONS)
            response = connection.makefile("rb").read(8)
    except OSError:
        return False
    return response[4:] == struct.pack(">i", _CORRELATION_ID)
