"""Server-sent events: what is new, to one viewer, until the viewer goes or the broker stops.

A browser's EventSource cannot send the token that a port beyond loopback asks for, so the page reads this with `fetch`;
the format is the same.
"""

from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from .feed import Feed
from .view import View
from .viewer import Viewer

EVENTS = "text/event-stream"
# A comment: sent where there is nothing new, so that both sides notice when the other one is gone.
_SIGN_OF_LIFE = b":\n\n"
_NOTHING = b"{}"


class EventStream(StreamingResponse):
    """The answer to one viewer."""

    def __init__(self, feed: Feed, view: View) -> None:
        super().__init__((), media_type=EVENTS, headers={"cache-control": "no-store"})
        self._feed = feed
        self._view = view

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Around all of it: what is written into an answer is not told when the client of the answer goes.
        with self._feed.watching(self._view) as viewer:
            self.body_iterator = self._events(viewer)
            await super().__call__(scope, receive, send)

    async def _events(self, viewer: Viewer) -> AsyncIterator[bytes]:
        snapshot = self._feed.newest
        while (snapshot := await self._feed.after(snapshot)) is not None:
            message = viewer.message(snapshot)
            yield _SIGN_OF_LIFE if message == _NOTHING else b"data: %b\n\n" % message
