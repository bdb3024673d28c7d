"""The routes of the page on the admin port: `/`, its files, and its data at `/api/v1/stream`.

The files contain no data of the broker and need no token. The data needs the token, if one is configured; an
EventSource cannot send one, so the page reads the server-sent events with `fetch`. The policy of the files forbids
inline scripts and styles. `require-trusted-types-for` also forbids turning text into HTML.
"""

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sluice.broker.admin.operation import AdminContext, AdminExtension, Nothing, Operation
from sluice.broker.server.cluster_server import ClusterServer

from .feed import Feed
from .message import Message
from .view import View, ViewQuery
from .viewer import Viewer

_FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"
_CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",  # revalidated on each use; unchanged files return 304
}


class Asset(NamedTuple):
    content: bytes
    headers: dict[str, str]

    @property
    def etag(self) -> str:
        return self.headers["etag"]


def assets() -> dict[str, Asset]:
    return {file.name: _asset(file) for file in sorted(_FOLDER.iterdir())}


def _asset(file: Path) -> Asset:
    content = file.read_bytes()
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    return Asset(content, {**_HEADERS, "content-type": _CONTENT_TYPES[file.suffix], "etag": etag})


_SERVED = assets()  # read at import, when no client waits


def page(server: ClusterServer) -> AdminExtension:
    return AdminExtension([_stream(Feed(server))], [Route("/", _get_page), Route("/page/{name}", _get_file)])


def _stream(feed: Feed) -> Operation:

    async def get_stream(context: AdminContext, params: ViewQuery, body: Nothing) -> Response:
        return EventStream(feed, params.view)

    summary = "The data of the web page as server-sent events; each message has the changes since the previous one."
    return Operation.of("GET", "/api/v1/stream", summary, get_stream, media={EVENTS: Message})


async def _get_page(request: Request) -> Response:
    return _served(_SERVED[INDEX], request)


async def _get_file(request: Request) -> Response:
    asset = _SERVED.get(request.path_params["name"])
    return Response(status_code=404) if asset is None else _served(asset, request)


def _served(asset: Asset, request: Request) -> Response:
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=asset.headers)
    return Response(asset.content, headers=asset.headers)


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
