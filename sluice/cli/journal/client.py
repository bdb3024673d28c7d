"""A client of the admin port for journal events as lines of JSON, in pages or as a stream."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from http.client import HTTPResponse
from urllib.parse import urlencode
from urllib.request import Request

import msgspec

from sluice.cli.admin_client import TIMEOUT_S, admin_address, open_response, token_header

_PAGE = 1000
_STREAM_TIMEOUT_S = 10.0  # twice the interval of the broker's heartbeats

Filters = Mapping[str, tuple[str | int, ...] | int | None]


class _Page(msgspec.Struct):
    events: list[msgspec.Raw]
    after: int
    last: int


class JournalClient:
    """The journal behind one admin port. A failed request raises SluiceError."""

    def __init__(self, admin: str, token: str | None) -> None:
        self._admin = admin_address(admin)
        self._headers = token_header(token)

    def lines(self, filters: Filters, on_page: Callable[[int, int], None] = lambda seq, last: None) -> Iterator[str]:
        """Yield events so far; `on_page` receives the `seq` reached and the last one."""
        query = {**filters, "limit": _PAGE}
        end: int | None = None
        while True:
            page = self._page(query)
            yield from (bytes(event).decode() for event in page.events)
            end = page.last if end is None else end  # later events are not waited for
            on_page(min(page.after, end), end)
            if page.after >= end:
                return
            query = {**filters, "last": None, "after": page.after, "limit": _PAGE}

    def follow(self, filters: Filters) -> Iterator[str]:
        self._page({"limit": 1})  # reports a silent port after TIMEOUT_S: the stream has a longer timeout
        with self._open({**filters, "follow": "true"}, _STREAM_TIMEOUT_S) as answer:
            for line in answer:
                if line.strip():
                    yield line.decode().rstrip("\n")

    def _page(self, query: Mapping[str, object]) -> _Page:
        with self._open(query) as answer:
            return msgspec.json.decode(answer.read(), type=_Page)

    def _open(self, query: Mapping[str, object], timeout_s: float = TIMEOUT_S) -> AbstractContextManager[HTTPResponse]:
        given = {name: value for name, value in query.items() if value is not None}
        request = Request(f"{self._admin}/api/v1/journal?{urlencode(given, doseq=True)}", headers=self._headers)  # noqa: S310  (by admin_address)
        return open_response(request, self._admin, timeout_s)
