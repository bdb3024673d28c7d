"""The routes of the page on the admin port: `/`, its files, and its data at `/api/v1/stream`.

The files contain no data of the broker and need no token. The data needs the token, if one is configured.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sluice.broker.admin.operation import AdminContext, AdminExtension, Nothing, Operation
from sluice.broker.server.cluster_server import ClusterServer

from .assets import INDEX, Asset, assets
from .feed import Feed
from .message import Message
from .stream import EVENTS, EventStream
from .view import ViewQuery

_FILES = assets()  # read at import, when no client waits


def page(server: ClusterServer) -> AdminExtension:
    return AdminExtension([_stream(Feed(server))], [Route("/", _get_page), Route("/page/{name}", _get_file)])


def _stream(feed: Feed) -> Operation:

    async def get_stream(context: AdminContext, params: ViewQuery, body: Nothing) -> Response:
        return EventStream(feed, params.view)

    summary = "The data of the web page as server-sent events; each message has the changes since the previous one."
    return Operation.of("GET", "/api/v1/stream", summary, get_stream, media={EVENTS: Message})


async def _get_page(request: Request) -> Response:
    return _served(_FILES[INDEX], request)


async def _get_file(request: Request) -> Response:
    asset = _FILES.get(request.path_params["name"])
    return Response(status_code=404) if asset is None else _served(asset, request)


def _served(asset: Asset, request: Request) -> Response:
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=asset.headers)
    return Response(asset.content, headers=asset.headers)
