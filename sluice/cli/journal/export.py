"""Events of the admin port as lines of JSON, in pages or as a stream, and their files: NDJSON, or Parquet."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import msgspec

from sluice.cli.admin_client import AdminClient
from sluice.errors import ConfigError, SluiceError
from sluice.journal_events import Gap, decode

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


# Returns the numbers of written and lost events.
Writer = Callable[[str, Iterable[str]], tuple[int, int]]


def writer_of(file: str) -> Writer:
    for ending, write in _WRITERS.items():
        if file.endswith(ending):
            if write is _write_parquet and find_spec("pyarrow") is None:
                raise SluiceError(f"{file}: Parquet needs pyarrow, which is not installed; install it, or use .ndjson")
            return write
    raise ConfigError(f"{file}: expected a name that ends in {' or '.join(_WRITERS)}")


def _write_ndjson(file: str, lines: Iterable[str]) -> tuple[int, int]:
    count = lost = 0
    # The first page is fetched before the file is created, so an unreachable broker leaves no file.
    found = iter(lines)
    first = next(found, None)
    with Path(file).open("w", encoding="utf-8") as out:
        while first is not None:
            out.write(first + "\n")
            count, lost = count + 1, lost + _lost(first)
            first = next(found, None)
    return count, lost


def _write_parquet(file: str, lines: Iterable[str]) -> tuple[int, int]:
    from sluice.spark.journal_parquet import write

    kept = list(lines)
    write(file, kept)
    return len(kept), sum(map(_lost, kept))


def _lost(line: str) -> int:
    event = decode(line)
    return event.lost if isinstance(event, Gap) else 0


_WRITERS: dict[str, Writer] = {".ndjson": _write_ndjson, ".parquet": _write_parquet}
