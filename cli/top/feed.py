"""A reader of `/api/v1/stream` in a thread; `sluice top` shows its messages."""

import threading
from collections.abc import Callable, Iterator
from urllib.parse import urlencode
from urllib.request import Request

import msgspec

from sluice.cli.admin_client import admin_address, open_response, token_header
from sluice.errors import SluiceError

from .state import Message

SORTS = ("activity", "quota", "throttled", "name")
_AGAIN_AFTER_S = 1.0
_MOST_CLIENTS = 100
_DATA = b"data: "


class View(msgspec.Struct, frozen=True):
    search: str = ""
    sort: str = SORTS[0]


class Source:
    def __init__(self, admin: str, token: str | None) -> None:
        self.admin = admin_address(admin)
        self._headers = token_header(token)

    def messages(self, view: View) -> Iterator[Message | None]:
        """Yield messages, and None for each heartbeat. Raises SluiceError or ConfigError."""
        query = urlencode({"search": view.search, "sort": view.sort, "size": _MOST_CLIENTS})
        request = Request(f"{self.admin}/api/v1/stream?{query}", headers=self._headers)  # noqa: S310  (by admin_address)
        with open_response(request, self.admin) as answer:  # heartbeats arrive twice a second
            for line in answer:
                if line.startswith(_DATA):
                    yield msgspec.json.decode(line[len(_DATA) :], type=Message)
                elif line.strip():
                    yield None
        raise SluiceError(f"{self.admin}: the broker has stopped")


class Feed:
    """A queue of messages for another thread; a new view restarts the stream."""

    def __init__(self, source: Source, wake: Callable[[], None]) -> None:
        """`wake` is called from the feed's thread when messages are available."""
        self._source = source
        self._wake = wake
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._number = 0
        self._news: list[Message | SluiceError] = []

    def watch(self, view: View) -> None:
        with self._lock:
            self._number += 1
            self._news.clear()
            number = self._number
        threading.Thread(target=self._run, args=(view, number), daemon=True).start()

    def stop(self) -> None:
        with self._lock:
            self._number += 1
        self._ended.set()

    def take(self) -> list[Message | SluiceError]:
        with self._lock:
            news, self._news = self._news, []
        return news

    def _run(self, view: View, number: int) -> None:
        while True:
            try:
                for message in self._source.messages(view):
                    if not self._deliver(message, number):
                        return
            except SluiceError as error:
                if not self._deliver(error, number) or self._ended.wait(_AGAIN_AFTER_S):
                    return

    def _deliver(self, news: Message | SluiceError | None, number: int) -> bool:
        """Return whether this thread is still the current one."""
        with self._lock:
            if number != self._number:
                return False
            if news is not None:
                self._news.append(news)
        self._wake()
        return True
