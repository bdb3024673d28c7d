"""A client of the admin port of a running broker, which sends and receives JSON."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from typing import TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import msgspec

from sluice.errors import ConfigError, SluiceError

TIMEOUT_S = 10.0  # the first answer loads the HTTP stack

# What a page of another site cannot send; the admin port asks for it where something is changed.
_SENDER = {"X-Sluice-Request": "1", "Content-Type": "application/json"}

_T = TypeVar("_T")


class AdminClient:
    """A client of the admin port of one broker. A failed request raises SluiceError; wrong usage raises ConfigError."""

    def __init__(self, admin: str, token: str | None, option: str = "--admin") -> None:
        """`option` is the name of the address on the command line."""
        self._admin = admin_address(admin, option)
        self._headers = _SENDER | token_header(token)

    def get(self, path: str, answer: type[_T]) -> _T:
        """What is there."""
        return self._send("GET", path, None, answer)

    def post(self, path: str, body: object, answer: type[_T]) -> _T:
        """What came of it."""
        return self._send("POST", path, msgspec.json.encode(body), answer)

    def put(self, path: str, body: object, answer: type[_T]) -> _T:
        """What is there now."""
        return self._send("PUT", path, msgspec.json.encode(body), answer)

    def delete(self, path: str, answer: type[_T]) -> _T:
        """What was there."""
        return self._send("DELETE", path, None, answer)

    def _send(self, method: str, path: str, body: bytes | None, answer: type[_T]) -> _T:
        request = Request(f"{self._admin}{quote(path)}", data=body, headers=self._headers, method=method)  # noqa: S310  (by admin_address)
        with open_response(request, self._admin) as response:
            return msgspec.json.decode(response.read(), type=answer)


def admin_address(given: str, option: str = "--admin") -> str:
    """Return the address without a trailing slash, which a browser shows. Raises ConfigError."""
    try:
        parts = urlsplit(given)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # no port, or no address
        fine = False
    if not fine or not given.isascii() or not given.isprintable() or " " in given:
        raise ConfigError(f"{option}: {given}: must be http://HOST:PORT or https://HOST:PORT")
    return given.rstrip("/")


def token_header(token: str | None) -> dict[str, str]:
    """Return the header with the token; empty without a token."""
    return {"authorization": f"Bearer {token}"} if token else {}


@contextmanager
def open_response(request: Request, admin: str, timeout_s: float = TIMEOUT_S) -> Iterator[HTTPResponse]:
    """Open a response to be read. Raises SluiceError, also for what is wrong when it is read."""
    try:
        with urlopen(request, timeout=timeout_s) as answer:  # noqa: S310  (by admin_address)
            yield answer
    except HTTPError as error:
        raise _error_of_response(admin, error) from None
    except (OSError, HTTPException, msgspec.MsgspecError) as error:
        raise SluiceError(f"{admin}: {_describe(error)}") from None


def _error_of_response(admin: str, error: HTTPError) -> SluiceError:
    """Return the error with the reason that the admin port gave."""
    try:
        reason = str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError):
        reason = error.reason
    # 400: the values came from the command line, so this is wrong usage.
    return ConfigError(reason) if error.code == 400 else SluiceError(f"{admin}: {error.code}: {reason}")


def _describe(error: Exception) -> str:
    if isinstance(error, URLError):
        reason = error.reason
        return f"no connection: {(reason.strerror if isinstance(reason, OSError) else None) or reason}"
    return str(error)
