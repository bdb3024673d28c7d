"""The server-sent events of one viewer, until the viewer disconnects or the broker stops.

An EventSource cannot send a token, so the page reads the same format with `fetch`.
"""

from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from .feed import Feed
from .view import View
from .viewer import Viewer

EVENTS = "text/event-stream"
# A comment, sent if nothing has changed, so that both sides notice a lost connection.
_KEEPALIVE = b":\n\n"
_NOTHING = b"{}"


class EventStream(StreamingResponse):
    def __init__(self, feed: Feed, view: View) -> None:
        super().__init__((), media_type=EVENTS, headers={"cache-control": "no-store"})
        self._feed = feed
        self._view = view

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Around the whole call, as the body iterator is not notified when the client disconnects.
        with self._feed.watching(self._view) as viewer:
            self.body_iterator = self._events(viewer)
            await super().__call__(scope, receive, send)

    async def _events(self, viewer: Viewer) -> AsyncIterator[bytes]:
        snapshot = self._feed.newest
        while (snapshot := await self._feed.after(snapshot)) is not None:
            message = viewer.message(snapshot)
            yield _KEEPALIVE if message == _NOTHING else b"data: %b\n\n" % message
