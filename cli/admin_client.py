"""Asks the admin port of a running broker, as JSON."""

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
    """The admin port of one broker. What cannot be had raises SluiceError, one line; ConfigError if it is our doing."""

    def __init__(self, admin: str, token: str | None, option: str = "--admin") -> None:
        """`option` is what names it on the command line."""
        self._admin = admin_address(admin, option)
        self._headers = _SENDER | token_header(token)

    def get(self, path: str, answer: type[_T]) -> _T:
        """What is there."""
        return self._ask("GET", path, None, answer)

    def post(self, path: str, body: object, answer: type[_T]) -> _T:
        """What came of it."""
        return self._ask("POST", path, msgspec.json.encode(body), answer)

    def put(self, path: str, body: object, answer: type[_T]) -> _T:
        """What is there now."""
        return self._ask("PUT", path, msgspec.json.encode(body), answer)

    def delete(self, path: str, answer: type[_T]) -> _T:
        """What was there."""
        return self._ask("DELETE", path, None, answer)

    def _ask(self, method: str, path: str, body: bytes | None, answer: type[_T]) -> _T:
        request = Request(f"{self._admin}{quote(path)}", data=body, headers=self._headers, method=method)  # noqa: S310  (by admin_address)
        with answer_to(request, self._admin) as response:
            return msgspec.json.decode(response.read(), type=answer)


def admin_address(given: str, option: str = "--admin") -> str:
    """What paths are put behind: an address as a browser shows it may end with a slash. Raises ConfigError."""
    try:
        parts = urlsplit(given)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # no port, or no address
        fine = False
    if not fine or not given.isascii() or not given.isprintable() or " " in given:
        raise ConfigError(f"{option}: {given}: must be http://HOST:PORT or https://HOST:PORT")
    return given.rstrip("/")


def token_header(token: str | None) -> dict[str, str]:
    """What shows the token, where there is one."""
    return {"authorization": f"Bearer {token}"} if token else {}


@contextmanager
def answer_to(request: Request, admin: str, timeout_s: float = TIMEOUT_S) -> Iterator[HTTPResponse]:
    """The answer, to be read; SluiceError where there is none, or what is read is none."""
    try:
        with urlopen(request, timeout=timeout_s) as answer:  # noqa: S310  (by admin_address)
            yield answer
    except HTTPError as error:
        raise _refusal(admin, error) from None
    except (OSError, HTTPException, msgspec.MsgspecError) as error:
        raise SluiceError(f"{admin}: {_why(error)}") from None


def _refusal(admin: str, error: HTTPError) -> SluiceError:
    """Why the admin port does not do it, as it says itself."""
    try:
        told = str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError):
        told = error.reason
    # What the broker cannot take was given here: wrong usage.
    return ConfigError(told) if error.code == 400 else SluiceError(f"{admin}: {error.code}: {told}")


def _why(error: Exception) -> str:
    if isinstance(error, URLError):
        reason = error.reason
        return f"no connection: {(reason.strerror if isinstance(reason, OSError) else None) or reason}"
    return str(error)
