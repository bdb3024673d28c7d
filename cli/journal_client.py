"""Asks the admin port for events, as lines of JSON: those that are there, page by page, or those that come."""

import json
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPResponse
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import msgspec

from sluice.errors import ConfigError, SluiceError

_TIMEOUT_S = 10.0  # the first answer loads the HTTP stack; who follows is told every 5 s that the broker is there
_PAGE = 1000

Filters = Mapping[str, tuple[str | int, ...] | int | None]


class _Page(msgspec.Struct):
    events: list[msgspec.Raw]
    after: int
    last: int


class JournalClient:
    """The journal of the broker behind one admin port. What cannot be had raises SluiceError, one line."""

    def __init__(self, admin: str, token: str | None) -> None:
        if not admin.startswith(("http://", "https://")):
            raise ConfigError(f"--admin: {admin}: must begin with http:// or https://")
        self._admin = admin
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def lines(self, filters: Filters, told: Callable[[int, int], None] = lambda seq, last: None) -> Iterator[str]:
        """The events that are there now, oldest first; `told` hears the `seq` up to which they came, and the last."""
        asked = {**filters, "limit": _PAGE}
        end: int | None = None
        while True:
            page = self._page(asked)
            yield from (bytes(event).decode() for event in page.events)
            end = page.last if end is None else end  # what comes meanwhile is not waited for
            told(min(page.after, end), end)
            if page.after >= end:
                return
            asked = {**filters, "last": None, "after": page.after, "limit": _PAGE}

    def follow(self, filters: Filters) -> Iterator[str]:
        """The events that are there, and those that come, until the broker stops."""
        with self._open({**filters, "follow": "true"}) as answer:
            try:
                for line in answer:
                    if line.strip():
                        yield line.decode().rstrip("\n")
            except OSError as error:
                raise SluiceError(f"{self._admin}: {error}") from None

    def _page(self, asked: Mapping[str, object]) -> _Page:
        with self._open(asked) as answer:
            try:
                return msgspec.json.decode(answer.read(), type=_Page)
            except (OSError, msgspec.MsgspecError) as error:
                raise SluiceError(f"{self._admin}: {error}") from None

    def _open(self, asked: Mapping[str, object]) -> HTTPResponse:
        given = {name: value for name, value in asked.items() if value is not None}
        request = Request(f"{self._admin}/api/v1/journal?{urlencode(given, doseq=True)}", headers=self._headers)  # noqa: S310  (checked above)
        try:
            answer: HTTPResponse = urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310  (as above)
        except HTTPError as error:
            raise _refusal(self._admin, error) from None
        except OSError as error:  # URLError is one
            raise SluiceError(f"{self._admin}: {getattr(error, 'reason', error)}") from None
        return answer


def _refusal(admin: str, error: HTTPError) -> SluiceError:
    try:
        told = json.loads(error.read())["error"]
    except (ValueError, KeyError, TypeError):
        told = error.reason
    # What the broker cannot read of it was given here: wrong usage.
    return ConfigError(str(told)) if error.code == 400 else SluiceError(f"{admin}: {error.code}: {told}")
