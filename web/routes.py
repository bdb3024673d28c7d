"""What the admin port serves of the page: `/`, its files, and `/api/v1/stream`, what they show.

The files are for everyone: they hold nothing of the broker's. What they ask for needs the token, if there is one.
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

_FILES = assets()  # read as this is imported, which keeps no client waiting


def page(server: ClusterServer) -> AdminExtension:
    """The page of these brokers."""
    return AdminExtension([_stream(Feed(server))], [Route("/", _get_page), Route("/page/{name}", _get_file)])


def _stream(feed: Feed) -> Operation:
    """All viewers of these brokers share one feed."""

    async def get_stream(context: AdminContext, params: ViewQuery, body: Nothing) -> Response:
        return EventStream(feed, params.view)

    summary = "What the page shows, as it happens: server-sent events, each a message of what is new."
    return Operation.of(
        "GET",
        "/api/v1/stream",
        summary,
        get_stream,
        params=ViewQuery,
        body=Nothing,
        answer=None,
        media={EVENTS: Message},
    )


async def _get_page(request: Request) -> Response:
    return _served(_FILES[INDEX], request)


async def _get_file(request: Request) -> Response:
    asset = _FILES.get(request.path_params["name"])
    return Response(status_code=404) if asset is None else _served(asset, request)


def _served(asset: Asset, request: Request) -> Response:
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=asset.headers)
    return Response(asset.content, headers=asset.headers)
