"""Asks the admin port of a running broker, as JSON."""

import json
from http.client import HTTPException
from typing import TypeVar
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import click
import msgspec

from sluice.errors import ConfigError, SluiceError

_TIMEOUT_S = 10.0  # the first answer loads the HTTP stack

# What a page of another site cannot send; the admin port asks for it where something is changed.
_SENDER = {"X-Sluice-Request": "1", "Content-Type": "application/json"}

_T = TypeVar("_T")


def admin_options(command: click.decorators.FC) -> click.decorators.FC:
    """Where the admin port is, and what it asks for."""
    command = click.option("--token", help="The token that the admin port asks for (sluice.admin.token).")(command)
    return click.option(
        "--admin",
        envvar="SLUICE_ADMIN",
        default="http://127.0.0.1:9644",
        show_default=True,
        show_envvar=True,
        help="The broker's admin address.",
    )(command)


class AdminClient:
    """The admin port of one broker. What cannot be had raises SluiceError, one line; ConfigError if it is our doing."""

    def __init__(self, admin: str, token: str | None, option: str = "--admin") -> None:
        """`option` is what names it on the command line."""
        if not admin.startswith(("http://", "https://")):
            raise ConfigError(f"{option}: {admin}: must begin with http:// or https://")
        self._admin = admin.rstrip("/")
        self._headers = _SENDER | ({"authorization": f"Bearer {token}"} if token else {})

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
        request = Request(f"{self._admin}{quote(path)}", data=body, headers=self._headers, method=method)  # noqa: S310  (checked above)
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310  (as above)
                return msgspec.json.decode(response.read(), type=answer)
        except HTTPError as error:
            raise refusal(self._admin, error) from None
        except (OSError, HTTPException, msgspec.MsgspecError) as error:  # URLError is an OSError
            raise SluiceError(f"{self._admin}: {getattr(error, 'reason', error)}") from None


def refusal(admin: str, error: HTTPError) -> SluiceError:
    """Why the admin port does not do it, as it says itself."""
    try:
        told = str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError):
        told = error.reason
    # What the broker cannot take was given here: wrong usage.
    return ConfigError(told) if error.code == 400 else SluiceError(f"{admin}: {error.code}: {told}")
