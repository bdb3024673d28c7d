"""A client of the admin port for journal events as lines of JSON, in pages or as a stream."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from sluice.cli.admin_client import AdminClient

_PATH = "/api/v1/journal"
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
        self._admin = AdminClient(admin, token)

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
        self._page({"limit": 1})  # reports a silent port early: the stream has a longer timeout
        with self._admin.open(_PATH, {**filters, "follow": "true"}, _STREAM_TIMEOUT_S) as answer:
            for line in answer:
                if line.strip():
                    yield line.decode().rstrip("\n")

    def _page(self, query: Mapping[str, object]) -> _Page:
        return self._admin.get(_PATH, _Page, query)
