"""What the admin port serves of the page: `/`, its files, and `/api/v1/stream`, what they show.

The files are for everyone: they hold nothing of the broker's. What they ask for needs the token, if there is one.
"""

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .assets import INDEX, Asset, assets
from .feed import Feed
from .stream import EventStream
from .view import parse_view

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluice.broker.cluster_server import ClusterServer


_FILES = assets()  # read as this is imported, which keeps no client waiting


def routes(server: "ClusterServer") -> list[Route]:
    """The page of these brokers."""
    feed = Feed(server)

    async def get_page(request: "Request") -> Response:
        return _served(_FILES[INDEX], request)

    async def get_file(request: "Request") -> Response:
        asset = _FILES.get(request.path_params["name"])
        return Response(status_code=404) if asset is None else _served(asset, request)

    async def get_stream(request: "Request") -> Response:
        try:
            view = parse_view(parse_qs(request.url.query, keep_blank_values=True))
        except ValueError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        return EventStream(feed, view)

    return [Route("/", get_page), Route("/page/{name}", get_file), Route("/api/v1/stream", get_stream)]


def _served(asset: Asset, request: "Request") -> Response:
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=asset.headers)
    return Response(asset.content, headers=asset.headers)
