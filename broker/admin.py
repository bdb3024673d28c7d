"""The admin HTTP port: `/metrics` for Prometheus, `/healthz`, `/api/v1` (admin_*.py, by what it is about), a web page.

The HTTP stack is loaded when someone first connects, in a thread, so that neither the start nor a running client waits
for it: the port is bound from the beginning, and whoever connects early waits in its backlog.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from .cluster_server import ClusterServer

    # What a part of the port serves; the function answers who may not ask, and is None for who may.
    Room = Callable[["ClusterServer", Callable[[Request], Response | None]], Sequence[BaseRoute]]
    # Imports one.
    LoadRoom = Callable[[], Room]

log = logging.getLogger("sluice.broker")


class AdminPort:
    """The admin port of all brokers. Any address but loopback asks for `sluice.admin.token` as a bearer token."""

    def __init__(
        self,
        server: "ClusterServer",
        listening: socket.socket,
        loop: asyncio.AbstractEventLoop,
        load_page: "LoadRoom | None",
    ) -> None:
        """`load_page`: of what is above the broker, and so handed in: the web page, if there is to be one."""
        self.host, self.port = listening.getsockname()[:2]
        self._server = server
        self._socket = listening
        self._loop = loop
        self._load_page = load_page
        self._task: asyncio.Task[None] | None = None
        self._http: uvicorn.Server | None = None
        self._stopped = False
        loop.add_reader(listening.fileno(), self._first_connection)

    async def stop(self) -> None:
        """Closes the port and what is open on it."""
        self._stopped = True
        self._loop.remove_reader(self._socket.fileno())
        if self._http is not None:
            self._http.should_exit = self._http.force_exit = True
        if self._task is not None:
            await asyncio.wait([self._task])
        self._socket.close()

    def _first_connection(self) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._task = self._loop.create_task(self._serve())

    async def _serve(self) -> None:
        page = await self._loop.run_in_executor(None, _load, self._load_page)
        if self._stopped:
            return
        self._http = _http_server(application(self._server, page))
        await self._http.serve(sockets=[self._socket])


def _load(load_page: "LoadRoom | None") -> "Room | None":
    # In a thread: what is imported here takes a quarter of a second.
    own = ("admin_cluster", "admin_journal", "metrics")
    for name in ("starlette.applications", "uvicorn", *(f"sluice.broker.{room}" for room in own)):
        import_module(name)
    return None if load_page is None else load_page()


def _http_server(app: "Starlette") -> "uvicorn.Server":
    import uvicorn

    class Http(uvicorn.Server):
        """Leaves the process's signals to the command that runs the broker."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=0)
    return Http(config)


def application(server: "ClusterServer", page: "Room | None" = None) -> "Starlette":
    """The HTTP application of a cluster, with the web page or without."""
    from hmac import compare_digest

    from prometheus_client.exposition import choose_encoder
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    from . import admin_cluster, admin_faults, admin_journal, admin_quotas, admin_scenarios
    from .metrics import registry

    metrics = registry(server.servers)
    token = server.config.text("sluice.admin.token")

    def may_read(request: "Request") -> bool:
        given = request.headers.get("authorization", "")
        return not token or compare_digest(given.encode(), f"Bearer {token}".encode())

    async def get_metrics(request: "Request") -> "Response":
        if not may_read(request):
            return _unauthorized()
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics), headers={"content-type": content_type})

    async def get_health(request: "Request") -> "Response":
        # Open to everyone: an orchestrator's probe has no token, and the answer tells nothing.
        return JSONResponse({"status": "ok"})

    def _unauthorized() -> "Response":
        message = "this port asks for the bearer token that sluice.admin.token names"
        return JSONResponse({"error": message}, status_code=401, headers={"www-authenticate": "Bearer"})

    def refused(request: "Request") -> "Response | None":
        return None if may_read(request) else _unauthorized()

    own = [Route("/metrics", get_metrics), Route("/healthz", get_health)]
    rooms = (admin_cluster, admin_faults, admin_journal, admin_quotas, admin_scenarios)
    of_rooms = [route for room in rooms for route in room.routes(server, refused)]
    of_page = [] if page is None else page(server, refused)
    return Starlette(routes=[*own, *of_rooms, *of_page])
